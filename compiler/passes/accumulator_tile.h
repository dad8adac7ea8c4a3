#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// One loop or guard between the loop over k and the store, outermost first.
struct Layer {
  const ir::For* loop = nullptr;
  const ir::If* guard = nullptr;
  bool of_tile = false;  // the elements written depend on it, the order of k does not
};

/// The elements that each step of a loop over k adds to: those that the one store names, over all
/// layers marked as of the tile. Points into the statement that it was found in.
struct AccumulatorTile {
  std::vector<Layer> layers;
  const ir::Store* store = nullptr;
  bool in_registers = true;  // else in memory of its own
};

/// Loops and guards down to the one store of a statement, none marked as of the tile; nothing when
/// there is more.
std::optional<AccumulatorTile> layers_of(const ir::Stmt& body);

/// Whether different values of the tile's loops always name different elements.
bool is_one_to_one(const AccumulatorTile& tile);

/// The tile of a loop whose steps add to the same few elements; nothing where it has none, or where
/// keeping its elements apart could be told from not doing so. `around`: the variables of the loops
/// around that one.
std::optional<AccumulatorTile> accumulator_tile(const ir::For& reduction,
                                                const std::vector<ir::VarRef>& around);

}  // namespace kiln::passes
