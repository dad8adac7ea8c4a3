// Sums up lane by lane what a loop adds to one element in any order, and the lanes once behind it.
//
//   for k in 0..n { S[0] = reduce_sum(S[0], A[ramp(k*32, 1, 32)], reassociate) }
//     ->
//   allocate S.lanes: float32[32] scope(local)
//   S.lanes[ramp(0, 1, 32)] = broadcast(0.0, 32)
//   for k in 0..n { S.lanes[ramp(0, 1, 32)] = S.lanes[ramp(0, 1, 32)] + A[ramp(k*32, 1, 32)] }
//   S[0] = reduce_sum(S[0], S.lanes[ramp(0, 1, 32)], reassociate)
//
// Of an element that unrolled loops choose, each has lanes of its own, as far as registers reach.
// An element that is there under a condition alone has its lanes added under that condition.
//
// Stands behind vectorize_loops, which makes the vectors.
//
// Finds serial loops that reduce vectors into one element again and again, and moves the horizontal
// reduction behind the loop: inside, lanes add up independently of each other, which costs one
// instruction a vector instead of a tree of shuffles. LLVM's LoopVectorize has the same form:
// vector accumulators in the loop, one horizontal reduction in the block behind it.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// What the lanes of all iterations of unrolled loops may take: 32 registers of 64 bytes, as
/// AVX-512 has them. More would be spilled in every iteration.
constexpr int64_t kRegisterBytes = 2048;

/// `S[i] = reduce_op(S[i], v, reassociate)`. Lanes of integers may be combined in another order
/// always: the result is the same.
struct Accumulation {
  const Store* store = nullptr;
  const VectorReduce* reduce = nullptr;
  std::vector<const For*> unrolled;  // loops around it that choose the element, outermost first
  std::vector<Expr> conditions;      // under which there is such an element
};

std::optional<Accumulation> as_accumulation(const Store& store) {
  const auto* reduce = as<VectorReduce>(store.value);
  if (reduce == nullptr || store.predicate) return std::nullopt;
  const bool any_order = reduce->reassociate || !is_float(store.buffer->type);
  if (!any_order) return std::nullopt;
  const auto* start = as<Load>(reduce->start);
  if (start == nullptr || !(start->buffer == store.buffer) || start->predicate ||
      !equal_trees(start->indices[0], store.indices[0])) {
    return std::nullopt;
  }
  return Accumulation{&store, reduce, {}, {}};
}

/// What a loop does, as far as its accumulations are concerned. Unrolled loops are told from
/// others: a variable of theirs is a constant soon, so that it may choose the element.
class Survey : public Visitor {
 public:
  std::vector<Accumulation> accumulations;

  /// Whether the loop touches the buffer of an accumulation in that one statement only, and always
  /// the same element.
  bool is_alone(const Accumulation& accumulation) const {
    const BufferRef& buffer = accumulation.store->buffer;
    const Expr& place = accumulation.store->indices[0];
    return std::ranges::count(accesses_, buffer) == 2 &&  // its load and its store
           std::ranges::find(allocated_, buffer) == allocated_.end() && !reads_memory(place) &&
           std::ranges::none_of(vars_, [&](const VarRef& var) { return uses_var(place, var); });
  }

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    const bool is_unrolled = loop.loop_kind == LoopKind::Unrolled && as_const_int(loop.extent);
    if (is_unrolled) {
      unrolled_.push_back(&loop);
      Visitor::visit(loop);
      unrolled_.pop_back();
      return;
    }
    vars_.push_back(loop.var);
    has_parallel_ = has_parallel_ || loop.loop_kind != LoopKind::Serial;
    Visitor::visit(loop);
  }
  void visit(const Allocate& allocate) override {
    allocated_.push_back(allocate.buffer);
    Visitor::visit(allocate);
  }
  void visit(const If& branch) override {
    (*this)(branch.condition);
    conditions_.push_back(branch.condition);
    (*this)(branch.then_body);
    conditions_.back() = logical_not(branch.condition);
    if (branch.else_body) (*this)(branch.else_body);
    conditions_.pop_back();
  }
  void visit(const Store& store) override {
    accesses_.push_back(store.buffer);
    if (auto found = as_accumulation(store); found && !has_parallel_) {
      for (const For* loop : unrolled_) {
        if (uses_var(store.indices[0], loop->var)) found->unrolled.push_back(loop);
      }
      if (find_conditions(*found)) accumulations.push_back(std::move(*found));
    }
    Visitor::visit(store);
  }

  /// What is known of the element in all iterations. False: whether there is one depends on which.
  bool find_conditions(Accumulation& accumulation) const {
    const auto is_chosen = [&](const For* loop) {
      return std::ranges::find(accumulation.unrolled, loop) != accumulation.unrolled.end();
    };
    for (const Expr& condition : conditions_) {
      const auto uses = [&](const For* loop) { return uses_var(condition, loop->var); };
      const bool is_of_element = std::ranges::any_of(accumulation.unrolled, uses);
      const bool is_of_iteration =
          reads_memory(condition) ||
          std::ranges::any_of(vars_, [&](const VarRef& var) { return uses_var(condition, var); }) ||
          std::ranges::any_of(unrolled_, [&](const For* loop) {
            return !is_chosen(loop) && uses_var(condition, loop->var);
          });
      if (is_of_element && is_of_iteration) return false;
      if (!is_of_iteration) accumulation.conditions.push_back(condition);
    }
    return true;
  }
  void visit(const Load& load) override {
    accesses_.push_back(load.buffer);
    Visitor::visit(load);
  }

  std::vector<VarRef> vars_;
  std::vector<const For*> unrolled_;
  std::vector<Expr> conditions_;
  std::vector<BufferRef> accesses_;
  std::vector<BufferRef> allocated_;
  bool has_parallel_ = false;
};

/// One accumulation, with the place where its lanes are summed up: of a buffer with the lanes of
/// all elements that the unrolled loops choose.
struct Lanes {
  Accumulation accumulation;
  BufferRef buffer;
  Expr place;
};

std::optional<Lanes> lanes_of(const Accumulation& accumulation) {
  const Type type = accumulation.reduce->vector->type;
  int64_t elements = 1;
  Expr element = index(0);
  for (const For* loop : accumulation.unrolled) {
    const int64_t extent = *as_const_int(loop->extent);
    element = element * extent + loop->var;
    if (extent < 1 || extent > kRegisterBytes) return std::nullopt;
    elements *= extent;
    if (elements * type.lanes * size_of(type.element) > kRegisterBytes) return std::nullopt;
  }
  const Expr first = accumulation.unrolled.empty() ? index(0) : element * type.lanes;
  return Lanes{accumulation,
               Buffer::make(accumulation.store->buffer->name + ".lanes", type.element,
                            {index(elements * type.lanes)}, Scope::Local),
               Ramp::make(first, index(1), type.lanes)};
}

/// Replaces each accumulation by one that adds lane to lane.
class UseLanes : public Mutator {
 public:
  explicit UseLanes(const std::vector<Lanes>& lanes) : lanes_(lanes) {}

 private:
  using Mutator::visit;
  Stmt visit(const Store& store) override {
    const auto found = std::ranges::find(
        lanes_, &store, [](const Lanes& lanes) { return lanes.accumulation.store; });
    if (found == lanes_.end()) return Mutator::visit(store);
    const VectorReduce& reduce = *found->accumulation.reduce;
    return Store::make(found->buffer, {found->place},
                       Binary::make(language::row_of(reduce.combiner).op,
                                    Load::make(found->buffer, {found->place}), reduce.vector));
  }
  const std::vector<Lanes>& lanes_;
};

class AccumulateInLanes : public Mutator {
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::Serial) return Mutator::visit(loop);
    Survey survey;
    survey(Stmt(&loop));
    std::vector<Lanes> lanes;
    for (const Accumulation& accumulation : survey.accumulations) {
      if (!survey.is_alone(accumulation)) continue;
      if (const auto found = lanes_of(accumulation)) lanes.push_back(*found);
    }
    // Others may stand in loops further in: those whose element changes with this one.
    const Stmt body = (*this)(UseLanes(lanes)(loop.body));
    Stmt result = body == loop.body
                      ? Stmt(&loop)
                      : For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, body);
    for (const Lanes& each : lanes)
      result = around(result, each);
    return result;
  }

  /// The statement in the loops that choose the element, with variables of its own.
  static Stmt for_each_element(const Lanes& lanes, Stmt body) {
    const std::vector<const For*>& loops = lanes.accumulation.unrolled;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      const VarRef var = Var::make((*loop)->var->name);
      body = For::make(var, (*loop)->extent, LoopKind::Unrolled,
                       substitute(body, {{(*loop)->var, var}}));
    }
    return body;
  }

  /// The lanes start at the neutral element, and are combined behind the loop.
  static Stmt around(const Stmt& loop, const Lanes& lanes) {
    const Store& store = *lanes.accumulation.store;
    const VectorReduce& reduce = *lanes.accumulation.reduce;
    const Type type = reduce.vector->type;
    const Expr identity = identity_of(reduce.combiner, type.element);
    const Stmt start =
        Store::make(lanes.buffer, {lanes.place}, Broadcast::make(identity, type.lanes));
    Stmt end = Store::make(
        store.buffer, store.indices,
        VectorReduce::make(reduce.combiner, reduce.start, Load::make(lanes.buffer, {lanes.place}),
                           /*reassociate=*/true));
    const std::vector<Expr>& conditions = lanes.accumulation.conditions;
    for (auto condition = conditions.rbegin(); condition != conditions.rend(); ++condition)
      end = If::make(*condition, end, nullptr, /*likely=*/true);
    return Allocate::make(lanes.buffer, Block::make({for_each_element(lanes, start), loop,
                                                     for_each_element(lanes, end)}));
  }
};

}  // namespace

Kernel accumulate_in_lanes(Kernel kernel, const PassContext&) {
  kernel.body = AccumulateInLanes()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
