#pragma once

#include <utility>
#include <vector>

#include "compiler/ir/mutator.h"
#include "compiler/passes/accumulator_tile.h"

namespace kiln::passes {

/// The nest of a scan's step with the state before it in a buffer of its own, one element for each
/// iteration of the nest's loops: read from there, and stored there too.
class UseState : public ir::Mutator {
 public:
  UseState(const AccumulatorTile& nest, ir::BufferRef state)
      : nest_(nest), state_(std::move(state)) {
    for (const Layer& layer : nest.layers) {
      if (layer.loop != nullptr) place_.push_back(layer.loop->var);
    }
    if (place_.empty()) place_.push_back(ir::index(0));
  }

 private:
  using Mutator::visit;
  ir::Expr visit(const ir::Load& load) override {
    if (!(load.buffer == nest_.store->buffer)) return Mutator::visit(load);
    return ir::Load::make(state_, place_);
  }
  ir::Stmt visit(const ir::Store& store) override {
    return ir::Block::make(
        {ir::Store::make(state_, place_, (*this)(store.value)),
         ir::Store::make(store.buffer, store.indices, ir::Load::make(state_, place_))});
  }

  const AccumulatorTile& nest_;
  const ir::BufferRef state_;
  std::vector<ir::Expr> place_;
};

}  // namespace kiln::passes
