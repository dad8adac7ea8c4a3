#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/passes/buffer_uses.h"

namespace kiln::passes {

/// A buffer's memory for one iteration of `around`.
struct Contracted {
  const ir::For* around = nullptr;  // null: where the buffer was
  ir::BufferRef memory;
  BufferUse store;              // of all of it
  std::vector<ir::Expr> first;  // of its elements, by dimensions
};

/// A use within an iteration, by dimensions: where its steps begin, which is the same in all of
/// them, and how far from there they are.
struct IterationSteps {
  std::vector<ir::Expr> first;
  std::vector<ir::Expr> offsets;
  std::vector<int64_t> extents;  // one more than the largest offset
};

/// Nothing where steps are no constant distance apart, or go down, or where data says where they
/// begin, which may be other data at the load.
std::optional<IterationSteps> steps_of(const std::vector<ir::Expr>& indices,
                                       const std::vector<const ir::For*>& loops);

/// The loops of a use within an iteration that ends `shared` loops from outside.
std::vector<const ir::For*> steps_within(const std::vector<const ir::For*>& loops, size_t shared);

/// The memories that do for a buffer. None unless each of its uses is of an iteration that stores
/// all of it first.
std::vector<Contracted> contracted(const ir::Allocate& allocate);

}  // namespace kiln::passes
