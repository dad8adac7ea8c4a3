// Keeps the step that a scan has come to in a buffer of its own, where the output is large and
// nothing else reads it: what is only stored can be stored with non-temporal stores.
//
//   for i in 0..512 vectorize { S[0, i] = X[0, i] }
//   for t in 0..m - 1 { for i in 0..512 vectorize { S[t + 1, i] = S[t, i] + X[t + 1, i] } }
//     ->
//   allocate S.state: float32[512] scope(local)
//   for i in 0..512 vectorize { S.state[i] = X[0, i]  S[0, i] = S.state[i] }
//   for t in 0..floordiv(m - 1, 4) { for r in 0..4 unroll { for i in 0..512 vectorize {
//     S.state[i] = S.state[i] + X[t*4 + r + 1, i]  S[t*4 + r + 1, i] = S.state[i] } } }
//   for t in 0..floormod(m - 1, 4) { the steps that are left }
//
// Four rows at once, within the loops around the vectors: states stay in registers between them.
// Stands before partition_loops, so that the first step and the others are one nest each.
//
// Gives the state of a scan a buffer of its own, as scalar replacement across iterations does
// (Callahan, Carr and Kennedy, 1990), so that bypass_caches may store the output with non-temporal
// stores; then unrolls the loop over time by four rows and jams them inside the loops around the
// vectors, where LLVM keeps the state in registers from row to row.
#include "compiler/passes/carry_states.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/accumulator_tile.h"
#include "compiler/passes/constant_bytes.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/use_state.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// States of so many bytes stay in the first cache while rows of inputs and outputs pass by: half
/// of one of 32 KiB.
constexpr int64_t kMostBytes = 16384;
/// Rows at once: while one begins in another page (a TLB miss, and nothing is prefetched there),
/// the others go on, and states between them stay in registers.
constexpr int64_t kRows = 4;

/// A loop over time and the nest before it, which stores what the first step reads.
struct Scan {
  AccumulatorTile first;
  AccumulatorTile step;
  const For* time = nullptr;
};

/// All loads of a buffer, by node: that they are as many in the step as in the kernel says that
/// nothing else reads it.
class LoadsOf : public Visitor {
 public:
  explicit LoadsOf(BufferRef buffer) : buffer_(std::move(buffer)) {}
  std::vector<const Load*> found;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    if (load.buffer == buffer_) found.push_back(&load);
    Visitor::visit(load);
  }
  const BufferRef buffer_;
};

template <typename Tree>
std::vector<const Load*> loads_of(const BufferRef& buffer, const Tree& tree) {
  LoadsOf walk(buffer);
  walk(tree);
  return std::move(walk.found);
}

/// Whether two accesses name the same element, with variables of the first replaced.
bool are_equal(const std::vector<Expr>& a, const std::vector<Expr>& b, const Substitution& in_a) {
  return std::ranges::equal(a, b, [&](const Expr& x, const Expr& y) {
    return equal_trees(analysis::simplify(substitute(x, in_a)), analysis::simplify(y));
  });
}

/// The loops of a nest, as those of the other; nothing where the nests differ.
std::optional<Substitution> matched(const AccumulatorTile& nest, const AccumulatorTile& other) {
  if (nest.layers.size() != other.layers.size()) return std::nullopt;
  Substitution vars;
  for (size_t i = 0; i < nest.layers.size(); ++i) {
    const auto& [loop, guard, of_tile] = nest.layers[i];
    const Layer& twin = other.layers[i];
    if ((loop == nullptr) != (twin.loop == nullptr)) return std::nullopt;
    if (loop == nullptr) {
      const Expr condition = substitute(guard->condition, vars);
      if (reads_memory(condition) || !equal_trees(condition, twin.guard->condition))
        return std::nullopt;
      continue;
    }
    if (loop->loop_kind != twin.loop->loop_kind || !equal_trees(loop->extent, twin.loop->extent))
      return std::nullopt;
    vars.emplace(loop->var, twin.loop->var);
  }
  return vars;
}

/// Whether the loops of a nest are vectors of a few columns that differ.
bool has_few_columns(AccumulatorTile& nest) {
  int64_t bytes = size_of(nest.store->buffer->type);
  bool has_vectors = false;
  for (Layer& layer : nest.layers) {
    if (layer.loop == nullptr) continue;
    const std::optional<int64_t> extent = as_const_int(layer.loop->extent);
    if (!extent || *extent < 1 || *extent > kMostBytes) return false;
    bytes *= *extent;
    if (bytes > kMostBytes || layer.loop->loop_kind == LoopKind::Parallel) return false;
    has_vectors = has_vectors || layer.loop->loop_kind == LoopKind::Vectorized;
    layer.of_tile = true;
  }
  return has_vectors && is_one_to_one(nest);
}

/// Puts a loop around the outermost vectors of a nest.
class AroundVectors : public Mutator {
 public:
  AroundVectors(VarRef var, int64_t extent) : var_(std::move(var)), extent_(extent) {}

 private:
  using Mutator::visit;
  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::Vectorized) return Mutator::visit(loop);
    return For::make(var_, index(extent_), LoopKind::Unrolled, Stmt(&loop));
  }

  const VarRef var_;
  const int64_t extent_;
};

/// The loop over time with several steps of a vector at once.
///
///   for t in 0..m { for o in 0..4 { for i in 0..64 vectorize { S } } }
///     ->
///   for t in 0..floordiv(m, 4) { for o in 0..4 { for r in 0..4 unroll {
///     for i in 0..64 vectorize { S at t*4 + r } } } }
///   for t in 0..floormod(m, 4) { for o .. { for i .. { S at floordiv(m, 4)*4 + t } } }
Stmt in_groups(const VarRef& time, const Expr& extent, const Stmt& nest) {
  const VarRef group = Var::make(time->name);
  const VarRef row = Var::make(time->name + ".row");
  const VarRef rest = Var::make(time->name);
  const Expr groups = floordiv(extent, index(kRows));
  const Stmt rows =
      substitute(AroundVectors(row, kRows)(nest), {{time, Expr(group) * kRows + Expr(row)}});
  const Stmt others = substitute(fresh_copy(nest), {{time, groups * kRows + Expr(rest)}});
  const Expr left = extent - groups * kRows;
  std::vector<Stmt> loops;
  if (!is_const(groups, 0)) loops.push_back(For::make(group, groups, LoopKind::Serial, rows));
  if (!is_const(left, 0)) loops.push_back(For::make(rest, left, LoopKind::Serial, others));
  return Block::make(std::move(loops));
}

class CarryStates : public Mutator {
 public:
  CarryStates(const Kernel& kernel, const LargeOutputs& large) : kernel_(kernel), large_(large) {}

 private:
  using Mutator::visit;

  Stmt visit(const Block& block) override {
    std::vector<Stmt> body;
    bool has_changed = false;
    for (size_t i = 0; i < block.body.size(); ++i) {
      const For* time = i + 1 < block.body.size() ? as<For>(block.body[i + 1]) : nullptr;
      const std::optional<Scan> scan =
          time != nullptr ? scan_of(block.body[i], *time) : std::nullopt;
      body.push_back(scan ? carried(*scan, block.body[i]) : (*this)(block.body[i]));
      has_changed = has_changed || !(body.back() == block.body[i]);
      if (scan) ++i;
    }
    return has_changed ? Block::make(std::move(body)) : Stmt(&block);
  }

  /// The scan that this nest and this loop are: the same loops in both, each step reads nothing of
  /// the output but what the step before it stored, and nobody else reads the output.
  std::optional<Scan> scan_of(const Stmt& before, const For& time) const {
    if (time.loop_kind != LoopKind::Serial) return std::nullopt;
    std::optional<AccumulatorTile> first = layers_of(before);
    std::optional<AccumulatorTile> step = layers_of(time.body);
    if (!first || !step || !(first->store->buffer == step->store->buffer)) return std::nullopt;
    const Store& store = *step->store;
    const bool moves = std::ranges::any_of(
        store.indices, [&](const Expr& index) { return uses_var(index, time.var); });
    if (!moves || !gains(*store.buffer) || !has_few_columns(*step)) return std::nullopt;
    const std::optional<Substitution> vars = matched(*first, *step);
    if (!vars) return std::nullopt;

    const std::vector<const Load*> loads = loads_of(store.buffer, store.value);
    if (loads.empty() || loads.size() != loads_of(store.buffer, kernel_.body).size())
      return std::nullopt;
    for (const Load* load : loads) {
      const bool is_last = are_equal(load->indices, store.indices, {{time.var, time.var + 1}});
      if (!is_last || load->predicate) return std::nullopt;
    }
    std::vector<Expr> read;
    for (const Expr& index : loads[0]->indices)
      read.push_back(substitute(index, {{time.var, ir::index(0)}}));
    if (!are_equal(first->store->indices, read, *vars)) return std::nullopt;
    return Scan{*std::move(first), *std::move(step), &time};
  }

  /// Whether it is an output that non-temporal stores serve, but for what the scan reads of it.
  bool gains(const Buffer& buffer) const {
    const auto at = std::ranges::find_if(
        kernel_.parameters, [&](const BufferRef& other) { return other.get() == &buffer; });
    if (at == kernel_.parameters.end() || buffer.shape.empty()) return false;
    const auto parameter = static_cast<size_t>(at - kernel_.parameters.begin());
    const int64_t columns = as_const_int(buffer.shape.back()).value_or(1);
    return kernel_.is_output[parameter] && columns * size_of(buffer.type) % large_.row_bytes == 0 &&
           constant_bytes(buffer).value_or(0) >= large_.bytes;
  }

  /// Both nests with the state in a buffer, which lives as long as the two together.
  static Stmt carried(const Scan& scan, const Stmt& before) {
    std::vector<Expr> shape;
    for (const Layer& layer : scan.step.layers) {
      if (layer.loop != nullptr) shape.push_back(layer.loop->extent);
    }
    const Buffer& output = *scan.step.store->buffer;
    const BufferRef state =
        Buffer::make(output.name + ".state", output.type, std::move(shape), Scope::Local);
    const For& time = *scan.time;
    const Stmt steps = in_groups(time.var, time.extent, UseState(scan.step, state)(time.body));
    return Allocate::make(state, Block::make({UseState(scan.first, state)(before), steps}));
  }

  const Kernel& kernel_;
  const LargeOutputs& large_;
};

}  // namespace

Kernel carry_states(Kernel kernel, const LargeOutputs& large) {
  CarryStates carry(kernel, large);
  kernel.body = carry(kernel.body);
  return kernel;
}

Kernel carry_states(Kernel kernel, const PassContext&) {
  return carry_states(std::move(kernel), LargeOutputs{});
}

}  // namespace kiln::passes
