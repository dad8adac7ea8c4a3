#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/filled_vectors.h"
#include "compiler/passes/linear.h"
#include "compiler/passes/passes.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// What the registers of a CPU hold, roughly: 32 vectors of 64 bytes.
constexpr int64_t kRegisterBytes = 2048;

/// One loop or guard between the loop over k and the store, outermost first.
struct Layer {
  const For* loop = nullptr;
  const If* guard = nullptr;
  bool of_tile = false;  // the elements written depend on it, the order of k does not
};

struct Tile {
  std::vector<Layer> layers;
  const Store* store = nullptr;
};

bool uses_any(const Expr& expr, const std::vector<VarRef>& vars) {
  return std::ranges::any_of(vars, [&](const VarRef& var) { return uses_var(expr, var); });
}

class LoadsOf : public Visitor {
 public:
  explicit LoadsOf(const Store& store) : store_(store) {}
  int matching = 0;
  bool other = false;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    Visitor::visit(load);
    if (!(load.buffer == store_.buffer)) return;
    const bool same = !load.predicate && std::ranges::equal(load.indices, store_.indices,
                                                            [](const Expr& a, const Expr& b) {
                                                              return equal_trees(a, b);
                                                            });
    ++(same ? matching : other_loads_);
    other = other_loads_ > 0;
  }
  const Store& store_;
  int other_loads_ = 0;
};

class FindStore : public Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Store&) override { found = true; }
  void visit(const Check&) override { found = true; }
};

/// The last statement of a block whose others only fetch; null for any other statement.
const StmtNode* behind_fetches(const StmtNode* stmt) {
  const auto* block = as<Block>(stmt);
  if (block == nullptr || block->body.empty()) return nullptr;
  FindStore walk;
  for (size_t i = 0; i + 1 < block->body.size(); ++i)
    walk(block->body[i]);
  return walk.found ? nullptr : block->body.back().get();
}

/// Loops and guards down to the one store of a statement; nothing when there is more.
std::optional<Tile> layers_of(const Stmt& body) {
  Tile tile;
  const StmtNode* at = body.get();
  while (true) {
    if (const auto* loop = as<For>(at)) {
      tile.layers.push_back({.loop = loop});
      at = loop->body.get();
    } else if (const auto* guard = as<If>(at); guard != nullptr && !guard->else_body) {
      tile.layers.push_back({.guard = guard});
      at = guard->then_body.get();
    } else if (const StmtNode* rest = behind_fetches(at)) {
      at = rest;
    } else {
      tile.store = as<Store>(at);
      if (tile.store == nullptr || tile.store->predicate) return std::nullopt;
      return tile;
    }
  }
}

/// Whether different values of the tile's loops always name different elements.
bool is_one_to_one(const Tile& tile) {
  std::vector<const For*> told_apart;
  for (const Expr& index : tile.store->indices) {
    struct Step {
      int64_t stride;
      const For* loop;
    };
    std::vector<Step> steps;
    for (const Layer& layer : tile.layers) {
      if (!layer.of_tile || layer.loop == nullptr || !uses_var(index, layer.loop->var)) continue;
      const std::optional<int64_t> stride = stride_of(index, layer.loop->var);
      if (!stride || *stride < 1) return false;
      steps.push_back({*stride, layer.loop});
    }
    std::ranges::sort(steps, {}, &Step::stride);
    for (size_t i = 1; i < steps.size(); ++i) {
      if (steps[i].stride < steps[i - 1].stride * *as_const_int(steps[i - 1].loop->extent)) {
        return false;
      }
    }
    for (const Step& step : steps) {
      told_apart.push_back(step.loop);
    }
  }
  return std::ranges::all_of(tile.layers, [&](const Layer& layer) {
    return !layer.of_tile || layer.loop == nullptr ||
           std::ranges::find(told_apart, layer.loop) != told_apart.end();
  });
}

/// Whether it is the element's own place, by one of these loop variables, that decides if there is
/// anything to add. The loads and stores around the reduction would not ask, and an element may lie
/// outside the buffer then.
bool decides_by_element(const Expr& condition, const Store& store,
                        const std::vector<VarRef>& loops) {
  return std::ranges::any_of(loops, [&](const VarRef& var) {
    return uses_var(condition, var) && std::ranges::any_of(store.indices, [&](const Expr& index) {
             return uses_var(index, var);
           });
  });
}

/// Sorts the layers into those of the tile and those of the reduction; whether the loop over `k`
/// can keep its elements in registers. `around`: the variables of the loops around that one.
bool classify(Tile& tile, const For& reduction, std::vector<VarRef> around) {
  const VarRef& k = reduction.var;
  const auto in_indices = [&](const VarRef& var) {
    return std::ranges::any_of(tile.store->indices,
                               [&](const Expr& index) { return uses_var(index, var); });
  };
  if (in_indices(k) || decides_by_element(reduction.extent, *tile.store, around)) return false;
  std::vector<VarRef> reduced = {k};
  int64_t bytes = size_of(tile.store->buffer->type);
  for (Layer& layer : tile.layers) {
    if (layer.guard != nullptr) {
      if (reads_memory(layer.guard->condition)) return false;
      layer.of_tile = !uses_any(layer.guard->condition, reduced);
      if (!layer.of_tile && decides_by_element(layer.guard->condition, *tile.store, around)) {
        return false;
      }
      continue;
    }
    if (uses_any(layer.loop->extent, reduced)) return false;
    if (!in_indices(layer.loop->var)) {
      if (decides_by_element(layer.loop->extent, *tile.store, around)) return false;
      reduced.push_back(layer.loop->var);
      continue;
    }
    // Only where all iterations are written out do registers have constant numbers.
    const std::optional<int64_t> extent = as_const_int(layer.loop->extent);
    const bool written_out = layer.loop->loop_kind == LoopKind::Unrolled ||
                             layer.loop->loop_kind == LoopKind::Vectorized;
    if (!written_out || !extent || *extent < 1 || *extent > kRegisterBytes) return false;
    layer.of_tile = true;
    around.push_back(layer.loop->var);
    bytes *= *extent;
    if (bytes > kRegisterBytes) return false;
  }
  const bool has_tile = std::ranges::any_of(
      tile.layers, [](const Layer& layer) { return layer.of_tile && layer.loop != nullptr; });
  return has_tile && std::ranges::none_of(tile.store->indices, reads_memory) && is_one_to_one(tile);
}

/// The vectors of a tile, where they are to be filled up.
std::optional<FilledLoop> filled_loop_of(const Tile& tile) {
  const Layer& last = tile.layers.back();
  if (!last.of_tile || last.loop == nullptr) return std::nullopt;
  return filled_loop(*last.loop, *tile.store);
}

/// The update with the accumulator in the place of the element.
class UseAccumulator : public Mutator {
 public:
  UseAccumulator(const Tile& tile, const std::optional<FilledLoop>& filled, BufferRef accumulator,
                 std::vector<Expr> place)
      : tile_(tile),
        filled_(filled),
        accumulator_(std::move(accumulator)),
        place_(std::move(place)) {}

 private:
  using Mutator::visit;
  Expr visit(const Load& load) override {
    if (load.buffer == tile_.store->buffer) return Load::make(accumulator_, place_);
    const bool may_be_outside =
        filled_ && std::ranges::any_of(load.indices, [&](const Expr& index) {
          return uses_var(index, filled_->loop->var);
        });
    if (may_be_outside) return Load::make(load.buffer, load.indices, filled_->is_inside);
    return Mutator::visit(load);
  }
  Stmt visit(const Store& store) override {
    return Store::make(accumulator_, place_, (*this)(store.value));
  }
  Stmt visit(const For& loop) override {
    if (!filled_ || &loop != filled_->loop) return Mutator::visit(loop);
    return For::make(loop.var, filled_->extent, loop.loop_kind, (*this)(loop.body));
  }

  const Tile& tile_;
  const std::optional<FilledLoop>& filled_;
  const BufferRef accumulator_;
  const std::vector<Expr> place_;
};

class AccumulateInRegisters : public Mutator {
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind == LoopKind::Serial) {
      std::optional<Tile> tile = layers_of(loop.body);
      if (tile && classify(*tile, loop, around_)) {
        LoadsOf loads(*tile->store);
        loads(loop.body);
        if (loads.matching > 0 && !loads.other) return rewrite(loop, *tile);
      }
    }
    around_.push_back(loop.var);
    const Stmt result = Mutator::visit(loop);
    around_.pop_back();
    return result;
  }

  static Stmt rewrite(const For& loop, const Tile& tile) {
    const std::optional<FilledLoop> filled = filled_loop_of(tile);
    const Expr is_inside = filled ? filled->is_inside : Expr();
    std::vector<Expr> shape;
    std::vector<Expr> place;
    for (const Layer& layer : tile.layers) {
      if (!layer.of_tile || layer.loop == nullptr) continue;
      shape.push_back(extent_of(*layer.loop, filled));
      place.push_back(layer.loop->var);
    }
    const Store& store = *tile.store;
    const BufferRef accumulator =
        Buffer::make(store.buffer->name + ".acc", store.buffer->type, shape, Scope::Local);
    const Stmt update = UseAccumulator(tile, filled, accumulator, place)(loop.body);
    const Stmt in = over_tile(
        tile, filled,
        Store::make(accumulator, place, Load::make(store.buffer, store.indices, is_inside)));
    const Stmt out = over_tile(
        tile, filled,
        Store::make(store.buffer, store.indices, Load::make(accumulator, place), is_inside));
    return Allocate::make(
        accumulator,
        Block::make(
            {in, For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, update), out}));
  }

  static Expr extent_of(const For& loop, const std::optional<FilledLoop>& filled) {
    return filled && filled->loop == &loop ? filled->extent : loop.extent;
  }

  /// The statement in the loops and guards of the tile, with variables of its own.
  static Stmt over_tile(const Tile& tile, const std::optional<FilledLoop>& filled, Stmt body) {
    for (auto layer = tile.layers.rbegin(); layer != tile.layers.rend(); ++layer) {
      if (!layer->of_tile) continue;
      if (layer->guard != nullptr) {
        body = If::make(layer->guard->condition, body, nullptr, layer->guard->likely);
        continue;
      }
      const For& loop = *layer->loop;
      const VarRef var = Var::make(loop.var->name);
      body = For::make(var, extent_of(loop, filled), loop.loop_kind,
                       substitute(body, {{loop.var, var}}));
    }
    return body;
  }

  std::vector<VarRef> around_;  // variables of the loops around the current place
};

}  // namespace

Kernel accumulate_in_registers(Kernel kernel, const PassContext&) {
  kernel.body = AccumulateInRegisters()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
