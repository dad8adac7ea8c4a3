#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::language {

struct Step;

enum class PragmaKind : uint8_t {
#define PRAGMA(Name, ...) Name,
#include "compiler/language/tables/pragmas.def"
#undef PRAGMA
};

enum class PragmaUse : uint8_t { Acts, Idle, Refused };

/// A row of the table of pragmas.
struct PragmaRow {
  PragmaKind kind;
  std::string_view spelling;
  PragmaUse use;
  int64_t most;  // the largest value, -1 where it says nothing
  std::string_view doc;
};

std::span<const PragmaRow> pragma_table();
const PragmaRow& row_of(PragmaKind kind);
std::optional<PragmaKind> find_pragma(std::string_view spelling);
/// Whether it is about the blocks of what is made of tiles, code or loops, in powers of two.
bool is_of_tiles(PragmaKind kind);
/// Such a step says nothing of loops: whatever becomes of its axis, it holds.
bool is_of_tiles(const Step& step);

/// What a nest of loops may be replaced by, as one instruction or as a tile of them.
enum class TensorIntrinsic : uint8_t {
#define INTRINSIC(Name, ...) Name,
#include "compiler/language/tables/intrinsics.def"
#undef INTRINSIC
};

/// A row of the table of tensor intrinsics.
struct IntrinsicRow {
  TensorIntrinsic kind;
  std::string_view spelling;
  std::string_view feature;  // of the CPU, as LLVM names it
  std::string_view doc;
};

std::span<const IntrinsicRow> intrinsic_table();
const IntrinsicRow& row_of(TensorIntrinsic kind);
std::optional<TensorIntrinsic> find_intrinsic(std::string_view spelling);

/// The spellings of a table, in its order.
template <typename Row>
std::vector<std::string_view> spellings_of(std::span<const Row> table) {
  std::vector<std::string_view> names;
  for (const Row& row : table)
    names.push_back(row.spelling);
  return names;
}

}  // namespace kiln::language
