#include "compiler/schedule/reads.h"

#include <algorithm>

namespace kiln::schedule {
namespace {

/// Nodes of one body with everything inline written out.
constexpr int kExpandedNodes = 100'000;

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

class CountNodes : public ir::Visitor {
 public:
  int count = 0;

 private:
  using Visitor::visit;
#define EXPR(T)                                          \
  void visit(const ir::T& node) override {               \
    if (++count <= kExpandedNodes) Visitor::visit(node); \
  }
#include "compiler/ir/nodes.def"
};

ir::Expr expand(const StageGraph& graph, const ir::Expr& body, StageId reader) {
  const ir::Expr expanded = replace_reads(body, [&](const ir::TensorRead& read) -> ir::Expr {
    const Stage& source = graph[read.stage];
    if (source.attach.kind != Attach::Kind::Inline) return &read;
    ir::Substitution values;
    for (size_t d = 0; d < source.data.size(); ++d) {
      values[graph.axes[source.data[d]].value] = read.indices[d];
    }
    return expand(graph, ir::substitute(source.bodies[read.output], values), reader);
  });
  CountNodes counter;
  counter(expanded);
  if (counter.count > kExpandedNodes) {
    fail(ErrorKind::ResourceExhausted, "INLINE_LIMIT",
         "the expression of {} with all that is computed inline has more than {} nodes; take "
         "compute_inline away from a stage that is read several times",
         graph[reader].name, kExpandedNodes);
  }
  return expanded;
}

}  // namespace

void for_each_read(const ir::Expr& expr, const std::function<void(const ir::TensorRead&)>& f) {
  ForEachRead walk(f);
  walk(expr);
}

ir::Expr replace_reads(const ir::Expr& expr,
                       const std::function<ir::Expr(const ir::TensorRead&)>& f) {
  return ReplaceReads(f)(expr);
}

std::vector<TensorId> direct_inputs(const Stage& stage) {
  std::vector<TensorId> inputs;
  for (const ir::Expr& body : stage.bodies) {
    for_each_read(body, [&](const ir::TensorRead& read) {
      const TensorId tensor{read.stage, read.output};
      if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end()) inputs.push_back(tensor);
    });
  }
  inputs.insert(inputs.end(), stage.init.begin(), stage.init.end());
  inputs.insert(inputs.end(), stage.update.begin(), stage.update.end());
  return inputs;
}

std::vector<StageId> readers_of(const StageGraph& graph, StageId stage) {
  std::vector<StageId> readers;
  for (const StageId candidate : graph.order) {
    const Stage& reader = graph[candidate];
    if (reader.kind != Stage::Kind::Compute || !reader.is_live) continue;
    const std::vector<TensorId> inputs = direct_inputs(reader);
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](TensorId tensor) { return tensor.stage == stage; })) {
      continue;
    }
    if (reader.attach.kind != Attach::Kind::Inline) {
      readers.push_back(candidate);
      continue;
    }
    for (const StageId indirect : readers_of(graph, candidate))
      readers.push_back(indirect);
  }
  std::sort(readers.begin(), readers.end(), [&](StageId a, StageId b) {
    return std::find(graph.order.begin(), graph.order.end(), a) <
           std::find(graph.order.begin(), graph.order.end(), b);
  });
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

std::vector<ir::Expr> expanded_bodies(const StageGraph& graph, StageId stage) {
  std::vector<ir::Expr> bodies;
  for (const ir::Expr& body : graph[stage].bodies)
    bodies.push_back(expand(graph, body, stage));
  return bodies;
}

}  // namespace kiln::schedule
