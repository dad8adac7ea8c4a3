#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/passes.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// `S[i] = reduce_op(S[i], v, reassociate)`
struct Accumulation {
  const Store* store = nullptr;
  const VectorReduce* reduce = nullptr;
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
  return Accumulation{&store, reduce};
}

/// What a loop does, as far as its accumulations are concerned.
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
    vars_.push_back(loop.var);
    has_parallel_ = has_parallel_ || loop.loop_kind != LoopKind::Serial;
    Visitor::visit(loop);
  }
  void visit(const Allocate& allocate) override {
    allocated_.push_back(allocate.buffer);
    Visitor::visit(allocate);
  }
  void visit(const Store& store) override {
    accesses_.push_back(store.buffer);
    if (const auto found = as_accumulation(store); found && !has_parallel_) {
      accumulations.push_back(*found);
    }
    Visitor::visit(store);
  }
  void visit(const Load& load) override {
    accesses_.push_back(load.buffer);
    Visitor::visit(load);
  }

  std::vector<VarRef> vars_;
  std::vector<BufferRef> accesses_;
  std::vector<BufferRef> allocated_;
  bool has_parallel_ = false;
};

/// One accumulation, with the place where its lanes are summed up.
struct Lanes {
  Accumulation accumulation;
  BufferRef buffer;
  Expr place;
};

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
      const Type type = accumulation.reduce->vector->type;
      lanes.push_back({accumulation,
                       Buffer::make(accumulation.store->buffer->name + ".lanes", type.element,
                                    {index(type.lanes)}, Scope::Local),
                       Ramp::make(index(0), index(1), type.lanes)});
    }
    // Others may stand in loops further in.
    const Stmt body = (*this)(UseLanes(lanes)(loop.body));
    Stmt result = body == loop.body
                      ? Stmt(&loop)
                      : For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, body);
    for (const Lanes& each : lanes)
      result = around(result, each);
    return result;
  }

  /// The lanes start at the neutral element, and are combined behind the loop.
  static Stmt around(const Stmt& loop, const Lanes& lanes) {
    const Store& store = *lanes.accumulation.store;
    const VectorReduce& reduce = *lanes.accumulation.reduce;
    const Type type = reduce.vector->type;
    const Expr identity = identity_of(reduce.combiner, type.element);
    const Stmt start =
        Store::make(lanes.buffer, {lanes.place}, Broadcast::make(identity, type.lanes));
    const Stmt end = Store::make(
        store.buffer, store.indices,
        VectorReduce::make(reduce.combiner, reduce.start, Load::make(lanes.buffer, {lanes.place}),
                           /*reassociate=*/true));
    return Allocate::make(lanes.buffer, Block::make({start, loop, end}));
  }
};

}  // namespace

Kernel accumulate_in_lanes(Kernel kernel, const PassContext&) {
  kernel.body = AccumulateInLanes()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
