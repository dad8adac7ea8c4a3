// Takes what tensors are computed from apart into the nodes of a program: a stage is one, but a
// scan takes its states, their first steps and all between a state and an update into its own.
//
//   h = scan(init, update(state, X), state); y = sum(h)
//     ->  [init, state, update, h] reading X, then [y] reading h
#include "client/cpp/program_graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

using Stage = std::shared_ptr<const StageNode>;

bool is_placeholder(const Stage& stage) {
  return std::holds_alternative<PlaceholderStage>(stage->value);
}

/// The tensors read below expressions, each once, in the order of appearance.
class Reads {
 public:
  void below(const Expr& expr) {
    if (!seen_.insert(expr.node().get()).second) return;
    std::visit([this](const auto& value) { of(value); }, expr.node()->value);
  }
  void add(const Tensor& tensor) {
    const bool is_known =
        std::ranges::any_of(tensors, [&](const Tensor& other) { return is_same(other, tensor); });
    if (!is_known) tensors.push_back(tensor);
  }

  std::vector<Tensor> tensors;

 private:
  void below(const std::vector<Expr>& exprs) {
    for (const Expr& expr : exprs)
      below(expr);
  }
  void of(const OperationValue& value) { below(value.operands); }
  void of(const CastValue& value) { below(value.operand); }
  void of(const ReadValue& value) {
    add(value.tensor);
    below(value.indices);
  }
  void of(const ReductionValue& value) {
    for (const ReduceAxis& axis : value.axes) {
      below(*axis.node()->minimum);
      below(*axis.node()->extent);
    }
    below(value.parts());
  }
  template <typename Leaf>
  void of(const Leaf&) {}

  std::unordered_set<const ExprNode*> seen_;
};

struct ReadsOfStage {
  Reads reads = {};

  void operator()(const PlaceholderStage&) {}
  void operator()(const ComputeStage& stage) {
    for (const Expr& body : stage.bodies)
      reads.below(body);
  }
  void operator()(const ScatterStage& stage) {
    reads.add(stage.base);
    for (const Expr& index : stage.indices)
      reads.below(index);
    reads.below(stage.update);
  }
  void operator()(const ScanStage& stage) {
    for (const std::vector<Tensor>* tensors : {&stage.init, &stage.update, &stage.inputs}) {
      for (const Tensor& tensor : *tensors)
        reads.add(tensor);
    }
  }
};

std::vector<Tensor> read_by(const StageNode& stage) {
  ReadsOfStage visitor;
  std::visit([&](const auto& value) { visitor(value); }, stage.value);
  return std::move(visitor.reads.tensors);
}

/// All that a program needs, in order, and what each stage reads.
class Graph {
 public:
  explicit Graph(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors)
      visit(tensor.stage());
    for (const Stage& stage : order_) {
      if (std::holds_alternative<ScanStage>(stage->value)) find_cell(stage);
    }
  }

  std::vector<GraphNode> nodes() const {
    std::vector<GraphNode> nodes;
    for (const Stage& stage : order_) {
      if (is_placeholder(stage) || hidden_.contains(stage.get())) continue;
      GraphNode node;
      if (const auto cell = cells_.find(stage.get()); cell != cells_.end())
        node.stages = cell->second;
      node.stages.push_back(stage);
      node.inputs = inputs_of(node.stages);
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

 private:
  /// Chains of stages are bounded where they are built (kMaximumStages).
  void visit(const Stage& stage) {
    if (reads_.contains(stage.get())) return;
    const std::vector<Tensor> reads = read_by(*stage);
    reads_.emplace(stage.get(), reads);
    for (const Tensor& tensor : reads)
      visit(tensor.stage());
    if (const auto* scan = std::get_if<ScanStage>(&stage->value)) {
      for (const Tensor& state : scan->state)
        visit(state.stage());
    }
    order_.push_back(stage);
  }

  /// The stages below tensors, these included.
  std::unordered_set<const StageNode*> below(const std::vector<Tensor>& tensors) const {
    std::unordered_set<const StageNode*> found;
    std::vector<const StageNode*> open;
    for (const Tensor& tensor : tensors)
      open.push_back(tensor.stage().get());
    while (!open.empty()) {
      const StageNode* stage = open.back();
      open.pop_back();
      if (!found.insert(stage).second) continue;
      for (const Tensor& tensor : reads_.at(stage))
        open.push_back(tensor.stage().get());
    }
    return found;
  }

  /// The states, how they begin, and what reads a state on the way to an update.
  void find_cell(const Stage& scan) {
    const auto& value = std::get<ScanStage>(scan->value);
    std::vector<Stage>& cell = cells_[scan.get()];
    const auto add = [&](const Stage& stage) {
      hidden_.insert(stage.get());
      if (std::ranges::find(cell, stage) == cell.end()) cell.push_back(stage);
    };
    std::unordered_set<const StageNode*> reading;
    for (const Tensor& state : value.state) {
      reading.insert(state.stage().get());
      add(state.stage());
    }
    for (const Tensor& init : value.init) {
      if (std::holds_alternative<ComputeStage>(init.stage()->value)) add(init.stage());
    }
    const std::unordered_set<const StageNode*> needed = below(value.update);
    for (const Stage& stage : order_) {
      if (!needed.contains(stage.get()) || is_placeholder(stage)) continue;
      const bool reads_state = std::ranges::any_of(
          reads_.at(stage.get()),
          [&](const Tensor& tensor) { return reading.contains(tensor.stage().get()); });
      if (!reads_state) continue;
      reading.insert(stage.get());
      add(stage);
    }
    for (const Tensor& update : value.update) {
      if (!is_placeholder(update.stage())) add(update.stage());
    }
  }

  std::vector<Tensor> inputs_of(const std::vector<Stage>& inside) const {
    Reads found;
    for (const Stage& stage : inside) {
      for (const Tensor& tensor : reads_.at(stage.get())) {
        if (std::ranges::find(inside, tensor.stage()) == inside.end()) found.add(tensor);
      }
    }
    return std::move(found.tensors);
  }

  std::unordered_map<const StageNode*, std::vector<Tensor>> reads_;
  std::vector<Stage> order_;
  std::unordered_map<const StageNode*, std::vector<Stage>> cells_;
  std::unordered_set<const StageNode*> hidden_;  // in the cell of a scan
};

struct CountOutputs {
  std::size_t operator()(const PlaceholderStage&) const { return 1; }
  std::size_t operator()(const ComputeStage& stage) const { return stage.bodies.size(); }
  std::size_t operator()(const ScatterStage&) const { return 1; }
  std::size_t operator()(const ScanStage& stage) const { return stage.update.size(); }
};

}  // namespace

std::vector<Tensor> GraphNode::outputs() const {
  std::vector<Tensor> tensors;
  const std::size_t count = std::visit(CountOutputs(), stages.back()->value);
  for (unsigned output = 0; output < count; ++output)
    tensors.emplace_back(stages.back(), output);
  return tensors;
}

std::vector<GraphNode> nodes_below(const std::vector<Tensor>& tensors) {
  return Graph(tensors).nodes();
}

std::vector<Tensor> placeholders_of(const std::vector<GraphNode>& nodes) {
  Reads found;
  for (const GraphNode& node : nodes) {
    for (const Tensor& input : node.inputs) {
      if (is_placeholder(input.stage())) found.add(input);
    }
  }
  return std::move(found.tensors);
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
