// Decides which elements a reduction adds to again and again, and whether they may live elsewhere
// while it runs: every loop between the loop over k and the store belongs either to the tile (the
// indices of the store use it) or to the reduction, the tile is of constant size, its elements are
// pairwise different, and nothing else in the loop reads the buffer. A guard may depend on the tile
// or on the reduction, but not be what keeps an element inside its buffer: load and store around
// the loop would not ask it.
#include "compiler/passes/accumulator_tile.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// What the registers of a CPU hold, roughly: 32 vectors of 64 bytes.
constexpr int64_t kRegisterBytes = 2048;

/// A tile that does not go into registers, but is small beside the first cache (32 KiB or more).
/// Rows that lie a power of two apart fall on few sets of that cache, which makes conflict misses;
/// packed side by side they all stay there.
constexpr int64_t kNearBytes = 8192;

bool uses_any(const Expr& expr, const std::vector<VarRef>& vars) {
  return std::ranges::any_of(vars, [&](const VarRef& var) { return uses_var(expr, var); });
}

/// The loads of the stored buffer: how many are of the very element stored, and whether any is of
/// another one, which would see the tile while it is elsewhere.
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

/// Whether it pays to copy a tile of memory there and back, which costs about as much as two steps.
bool is_long(const For& reduction) {
  const std::optional<int64_t> extent = as_const_int(reduction.extent);
  return !extent || *extent >= 8;
}

/// Sorts the layers into those of the tile and those of the reduction; whether the loop over `k`
/// can keep its elements apart. `around`: the variables of the loops around that one.
bool classify(AccumulatorTile& tile, const For& reduction, std::vector<VarRef> around) {
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
    const std::optional<int64_t> extent = as_const_int(layer.loop->extent);
    if (!extent || *extent < 1 || *extent > kNearBytes) return false;
    // Only where all iterations are written out do registers have constant numbers.
    const bool written_out = layer.loop->loop_kind == LoopKind::Unrolled ||
                             layer.loop->loop_kind == LoopKind::Vectorized;
    if (!written_out && layer.loop->loop_kind != LoopKind::Serial) return false;
    tile.in_registers = tile.in_registers && written_out;
    layer.of_tile = true;
    around.push_back(layer.loop->var);
    bytes *= *extent;
    if (bytes > kNearBytes) return false;
  }
  if (tile.in_registers ? bytes > kRegisterBytes : !is_long(reduction)) return false;
  const bool has_tile = std::ranges::any_of(
      tile.layers, [](const Layer& layer) { return layer.of_tile && layer.loop != nullptr; });
  return has_tile && std::ranges::none_of(tile.store->indices, reads_memory) && is_one_to_one(tile);
}

}  // namespace

std::optional<AccumulatorTile> layers_of(const Stmt& body) {
  AccumulatorTile tile;
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

// As the digits of a number: sorted by stride, each loop has to step over all that the ones before
// it reach. Each loop has to move at least one index.
bool is_one_to_one(const AccumulatorTile& tile) {
  std::vector<analysis::LoopRange> loops;
  for (const Layer& layer : tile.layers) {
    if (layer.of_tile && layer.loop != nullptr)
      loops.push_back({layer.loop->var, layer.loop->extent});
  }
  return analysis::are_distinct(tile.store->indices, loops);
}

std::optional<AccumulatorTile> accumulator_tile(const For& reduction,
                                                const std::vector<VarRef>& around) {
  std::optional<AccumulatorTile> tile = layers_of(reduction.body);
  if (!tile || !classify(*tile, reduction, around)) return std::nullopt;
  LoadsOf loads(*tile->store);
  loads(reduction.body);
  if (loads.matching == 0 || loads.other) return std::nullopt;
  return tile;
}

}  // namespace kiln::passes
