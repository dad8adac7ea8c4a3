// The tables pragmas.def and intrinsics.def as rows, in the order of their enumerations, and how a
// spelling finds its row. They are a handful, so it is looked for in order.
#include "compiler/language/tables/hints.h"

#include <array>

#include "compiler/language/tables/step.h"

namespace kiln::language {
namespace {

using enum PragmaUse;

constexpr auto kPragmas = std::to_array<PragmaRow>({
#define PRAGMA(Name, spelling, use, most, doc) {PragmaKind::Name, spelling, use, most, doc},
#include "compiler/language/tables/pragmas.def"
#undef PRAGMA
});

constexpr auto kIntrinsics = std::to_array<IntrinsicRow>({
#define INTRINSIC(Name, spelling, feature, doc) {TensorIntrinsic::Name, spelling, feature, doc},
#include "compiler/language/tables/intrinsics.def"
#undef INTRINSIC
});

}  // namespace

std::span<const PragmaRow> pragma_table() { return kPragmas; }
const PragmaRow& row_of(PragmaKind kind) { return kPragmas[static_cast<size_t>(kind)]; }

std::optional<PragmaKind> find_pragma(std::string_view spelling) {
  for (const PragmaRow& row : kPragmas) {
    if (row.spelling == spelling) return row.kind;
  }
  return std::nullopt;
}

bool is_of_tiles(PragmaKind kind) {
  return kind >= PragmaKind::TileRows && kind <= PragmaKind::AttentionKeys;
}

bool is_of_tiles(const Step& step) {
  const std::optional<PragmaKind> kind =
      step.kind == StepKind::Pragma ? find_pragma(step.tag) : std::nullopt;
  return kind && is_of_tiles(*kind);
}

std::span<const IntrinsicRow> intrinsic_table() { return kIntrinsics; }
const IntrinsicRow& row_of(TensorIntrinsic kind) { return kIntrinsics[static_cast<size_t>(kind)]; }

std::optional<TensorIntrinsic> find_intrinsic(std::string_view spelling) {
  for (const IntrinsicRow& row : kIntrinsics) {
    if (row.spelling == spelling) return row.kind;
  }
  return std::nullopt;
}

}  // namespace kiln::language
