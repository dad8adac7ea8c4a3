// Reads of tensors in expressions, and the same with inline stages written out: a stage at an
// attachment Inline has no loops, so what it reads is read by its readers, at their indices.
// Written out, an expression may double with each stage; a count that substitutes costs instead of
// expressions finds that before anything is built.
#include "compiler/schedule/graph/reads.h"

#include <algorithm>
#include <unordered_map>

namespace kiln::schedule {
namespace {

/// Nodes of one body with everything inline written out.
constexpr int64_t kExpandedNodes = 100'000;

class ForEachRead : public ir::Visitor {
 public:
  explicit ForEachRead(const std::function<void(const ir::TensorRead&)>& f) : f_(f) {}

 private:
  using Visitor::visit;
  void visit(const ir::TensorRead& read) override {
    f_(read);
    Visitor::visit(read);
  }
  const std::function<void(const ir::TensorRead&)>& f_;
};

class ReplaceReads : public ir::Mutator {
 public:
  explicit ReplaceReads(const std::function<ir::Expr(const ir::TensorRead&)>& f) : f_(f) {}

 private:
  using Mutator::visit;
  ir::Expr visit(const ir::TensorRead& read) override {
    const ir::Expr rewritten = Mutator::visit(read);
    return f_(*ir::as<ir::TensorRead>(rewritten));
  }
  const std::function<ir::Expr(const ir::TensorRead&)>& f_;
};

/// Counts the nodes of a body with inline stages written out, without writing them out.
class CountExpanded : public ir::Visitor {
 public:
  explicit CountExpanded(const StageGraph& graph) : graph_(graph) {}

  bool is_large() const { return count_ > kExpandedNodes || visits_ > kExpandedNodes; }

  /// `costs`: what stands for each variable of the body, in nodes.
  void count(const ir::Expr& body, std::unordered_map<ir::VarRef, int64_t> costs) {
    std::swap(costs_, costs);
    (*this)(body);
    std::swap(costs_, costs);
  }

 private:
  using Visitor::visit;

#define EXPR(T) \
  void visit(const ir::T& node) override { enter(node); }
#include "compiler/ir/nodes.def"

  template <typename T>
  void enter(const T& node) {
    ++visits_;
    ++count_;
    if (is_large()) return;
    if constexpr (std::is_same_v<T, ir::Var>) {
      const auto cost = costs_.find(ir::VarRef(&node));
      if (cost != costs_.end()) count_ += cost->second;
    } else if constexpr (std::is_same_v<T, ir::TensorRead>) {
      enter_read(node);
    } else {
      Visitor::visit(node);
    }
  }

  void enter_read(const ir::TensorRead& read) {
    const Stage& source = graph_[read.stage];
    if (source.attach.kind != Attach::Kind::Inline) return Visitor::visit(read);
    std::unordered_map<ir::VarRef, int64_t> costs;
    for (size_t d = 0; d < read.indices.size(); ++d) {
      const int64_t before = count_;
      (*this)(read.indices[d]);
      costs[graph_.axes[source.data[d]].value] = count_ - before;
      count_ = before;
    }
    count(source.bodies[read.output], std::move(costs));
  }

  const StageGraph& graph_;
  std::unordered_map<ir::VarRef, int64_t> costs_;
  int64_t count_ = 0;
  int64_t visits_ = 0;
};

ir::Expr expand(const StageGraph& graph, const ir::Expr& body) {
  return replace_reads(body, [&](const ir::TensorRead& read) -> ir::Expr {
    const Stage& source = graph[read.stage];
    if (source.attach.kind != Attach::Kind::Inline) return &read;
    ir::Substitution values;
    for (size_t d = 0; d < source.data.size(); ++d) {
      values[graph.axes[source.data[d]].value] = read.indices[d];
    }
    return expand(graph, ir::substitute(source.bodies[read.output], values));
  });
}

}  // namespace

void for_each_read(const ir::Expr& expr, const std::function<void(const ir::TensorRead&)>& f) {
  ForEachRead walk(f);
  walk(expr);
}

bool has_read(const ir::Expr& expr) {
  bool found = false;
  for_each_read(expr, [&](const ir::TensorRead&) { found = true; });
  return found;
}

ir::Expr without_casts(ir::Expr expr) {
  while (const ir::Cast* cast = ir::as<ir::Cast>(expr))
    expr = ir::Expr(cast->value);
  return expr;
}

ir::Expr replace_reads(const ir::Expr& expr,
                       const std::function<ir::Expr(const ir::TensorRead&)>& f) {
  return ReplaceReads(f)(expr);
}

std::vector<ir::Expr> reduction_bounds(const StageGraph& graph, const Stage& stage) {
  std::vector<ir::Expr> bounds;
  for (const AxisId axis : stage.reduce) {
    bounds.push_back(graph.axes[axis].minimum);
    bounds.push_back(graph.axes[axis].extent);
  }
  return bounds;
}

std::vector<ir::Expr> reading_parts(const StageGraph& graph, const Stage& stage) {
  std::vector<ir::Expr> parts = reduction_bounds(graph, stage);
  for (const Condition& condition : stage.conditions)
    parts.push_back(condition.holds);
  parts.insert(parts.end(), stage.as_scatter.indices.begin(), stage.as_scatter.indices.end());
  parts.insert(parts.end(), stage.bodies.begin(), stage.bodies.end());
  return parts;
}

std::vector<TensorId> direct_inputs(const StageGraph& graph, const Stage& stage) {
  std::vector<TensorId> inputs;
  for (const ir::Expr& expr : reading_parts(graph, stage)) {
    for_each_read(expr, [&](const ir::TensorRead& read) {
      const TensorId tensor{read.stage, read.output};
      if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end()) inputs.push_back(tensor);
    });
  }
  if (stage.kind == Stage::Kind::Scatter &&
      std::find(inputs.begin(), inputs.end(), stage.as_scatter.base) == inputs.end()) {
    inputs.push_back(stage.as_scatter.base);
  }
  inputs.insert(inputs.end(), stage.as_scan.init.begin(), stage.as_scan.init.end());
  inputs.insert(inputs.end(), stage.as_scan.update.begin(), stage.as_scan.update.end());
  return inputs;
}

std::vector<StageId> readers_of(const StageGraph& graph, StageId stage) {
  // Stages are in order, so one walk meets an inline reader before those that read it.
  std::vector<bool> stands_for_it(graph.stages.size(), false);
  stands_for_it[stage] = true;
  std::vector<StageId> readers;
  for (const StageId candidate : graph.order) {
    const Stage& reader = graph[candidate];
    if (!runs_over_axes(reader) || !reader.is_live) continue;
    const std::vector<TensorId> inputs = direct_inputs(graph, reader);
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](TensorId tensor) { return stands_for_it[tensor.stage]; })) {
      continue;
    }
    if (reader.attach.kind == Attach::Kind::Inline) {
      stands_for_it[candidate] = true;
    } else {
      readers.push_back(candidate);
    }
  }
  return readers;
}

std::vector<std::vector<StageId>> readers_of_each(const StageGraph& graph) {
  std::vector<std::vector<StageId>> readers(graph.stages.size());
  // Backwards, the readers of an inline reader are known when it is met.
  for (auto id = graph.order.rbegin(); id != graph.order.rend(); ++id) {
    const Stage& reader = graph[*id];
    if (!runs_over_axes(reader) || !reader.is_live) continue;
    const bool is_inline = reader.attach.kind == Attach::Kind::Inline;
    const std::vector<StageId> found = is_inline ? readers[*id] : std::vector<StageId>{*id};
    for (const TensorId tensor : direct_inputs(graph, reader)) {
      for (const StageId each : found) {
        std::vector<StageId>& known = readers[tensor.stage];
        if (std::ranges::find(known, each) == known.end()) known.push_back(each);
      }
    }
  }
  return readers;
}

std::vector<ir::Expr> expanded_bodies(const StageGraph& graph, StageId stage) {
  std::vector<ir::Expr> bodies;
  for (const ir::Expr& part : reading_parts(graph, graph[stage]))
    bodies.push_back(expand(graph, part));
  return bodies;
}

std::vector<ir::Expr> expanded_bounds(const StageGraph& graph, StageId stage) {
  std::vector<ir::Expr> bounds;
  for (const ir::Expr& bound : reduction_bounds(graph, graph[stage]))
    bounds.push_back(expand(graph, bound));
  return bounds;
}

std::vector<ir::Expr> expanded_inits(const StageGraph& graph, StageId stage) {
  std::vector<ir::Expr> inits;
  for (const ir::Expr& body : graph[stage].bodies) {
    const ir::Reduce* reduce = ir::as<ir::Reduce>(body);
    if (reduce == nullptr) continue;
    for (const ir::Expr& init : reduce->init)
      inits.push_back(expand(graph, init));
  }
  return inits;
}

StageGraph written_out(const StageGraph& graph) {
  StageGraph result = graph;
  for (const StageId id : graph.order) {
    Stage& stage = result.stages[id];
    if (!runs_over_axes(stage) || stage.attach.kind == Attach::Kind::Inline) continue;
    for (ir::Expr& body : stage.bodies)
      body = expand(graph, body);
  }
  return result;
}

void refuse_large_inlining(const StageGraph& graph) {
  for (const StageId id : graph.order) {
    const Stage& stage = graph[id];
    if (!stage.is_live || stage.attach.kind == Attach::Kind::Inline) continue;
    for (const ir::Expr& body : reading_parts(graph, stage)) {
      CountExpanded counter(graph);
      counter.count(body, {});
      if (!counter.is_large()) continue;
      fail(ErrorKind::ResourceExhausted, "INLINE_LIMIT",
           "the expression of {} with all that is computed inline has more than {} nodes; take "
           "compute_inline away from a stage that is read several times",
           stage.name, kExpandedNodes);
    }
  }
}

}  // namespace kiln::schedule
