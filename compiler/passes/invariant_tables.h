#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// A value that the rows of a loop share, the loops inside that it depends on with the guards
/// around it, and where it is kept.
struct InvariantTable {
  ir::Expr value;
  std::vector<const ir::For*> loops;
  std::vector<ir::Expr> guards;
  ir::BufferRef buffer;

  /// One a loop, of the element for the iteration.
  std::vector<ir::Expr> indices() const;
};

/// A store, and the values in it that have tables.
struct TabulatedStore {
  const ir::Store* store;
  std::vector<InvariantTable> tables;
};

/// The stores inside of a loop of which its iterations compute the same costly values. Equal values
/// of equal loops have one buffer.
std::vector<TabulatedStore> find_invariant_tables(const ir::For& rows);

}  // namespace kiln::passes
