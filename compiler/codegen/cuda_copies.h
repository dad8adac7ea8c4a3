#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::codegen {

/// What all lanes of a predicate are; null where they are not the same.
ir::Expr for_all(const ir::Expr& predicate);

/// How many bytes hardware copies in the background for this store there, or zeros in their place;
/// 0 for another store.
int64_t late_bytes(const ir::Store& store);

/// Whether a loop in the background is written out: it has a few iterations of a copy.
bool is_written_out(const ir::For& loop);

/// The first element of what is moved at once.
ir::Expr first_element(const ir::Expr& index);

/// Loops that are written out, and their iterations.
using Iterations = std::vector<std::pair<ir::VarRef, int64_t>>;

/// Where copies read in an iteration of a loop that has several groups of them, each of as many: a
/// pointer for each copy of a group, which moves along instead of being computed anew.
struct MovingPlaces {
  struct Place {
    ir::BufferRef buffer;
    ir::Expr first;              // in the first group of the first iteration
    std::vector<int64_t> bytes;  // of each group behind the first one, and of the next iteration
  };
  std::vector<Place> places;
};

/// Nothing where the loop has one group or none, or where they are not alike.
std::optional<MovingPlaces> moving_places(const ir::For& loop);

/// What an instruction may read behind its pointer: 12 bits, with a sign.
constexpr int64_t kFarthestFrom = (1 << 11) - 1;

}  // namespace kiln::codegen
