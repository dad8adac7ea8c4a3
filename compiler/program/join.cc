// Several nodes as one kernel: their tables behind each other, where a placeholder that stands for
// a value made by an earlier node becomes that node's tensor. What follows, inlining, rows that
// stay in a cache, epilogues, are then ordinary decisions between the stages of one kernel.
//
//   h = matmul(x, w), y = relu(h)   ->   kernel(x, w) -> (y) { h[i, j] = sum(..)  y[i, j] =
//   max(h[i, j], 0) }
#include "compiler/program/join.h"

#include <algorithm>

namespace kiln::program {
namespace {

using namespace language;

class Joiner {
 public:
  Joiner(const Program& program, const Shapes& shapes) : program_(program), shapes_(shapes) {}

  void add(NodeId id) {
    const Node& node = program_.nodes[id];
    const Kernel& kernel = shapes_.kernels[id];
    const Definition& from = kernel.definition;
    begin(kernel);
    std::vector<ValueId> values;  // by parameter
    size_t inputs = 0;
    size_t outputs = 0;
    for (const TensorId tensor : from.parameters)
      values.push_back(from.is_output(tensor) ? node.outputs[outputs++] : node.inputs[inputs++]);
    // Where each placeholder is found now; what it is called decides the value.
    for (size_t i = 0; i < values.size(); ++i) {
      if (from.is_output(from.parameters[i])) continue;
      const auto made = tensors_.find(values[i]);
      if (made != tensors_.end()) {
        replaced_[from.parameters[i].stage] = made->second;
        continue;
      }
      const auto first =
          std::find(values.begin(), values.begin() + static_cast<long>(i), values[i]);
      const auto at = static_cast<size_t>(first - values.begin());
      if (at < i) same_[from.parameters[i].stage] = from.parameters[at].stage;
    }
    append_expressions(from);
    append_axes(kernel);
    append_reducers(kernel);
    append_stages(kernel, values);
    for (size_t i = 0; i < values.size(); ++i) {
      const TensorId tensor = from.parameters[i];
      if (!from.is_output(tensor)) {
        if (tensors_.emplace(values[i], mapped(tensor)).second) inputs_.push_back(values[i]);
      } else {
        tensors_.emplace(values[i], mapped(tensor));
        made_.push_back(values[i]);
      }
    }
  }

  Joined take(const std::function<bool(ValueId)>& is_needed) {
    Joined joined;
    joined.inputs = inputs_;
    std::copy_if(made_.begin(), made_.end(), std::back_inserter(joined.outputs), is_needed);
    for (const auto* values : {&joined.inputs, &joined.outputs}) {
      for (const ValueId value : *values)
        to_.definition.parameters.push_back(tensors_.at(value));
    }
    joined.kernel = std::move(to_);
    joined.tensors = std::move(tensors_);
    return joined;
  }

 private:
  /// Where the tables of the kernel to come begin.
  void begin(const Kernel& kernel) {
    expressions_ = static_cast<uint32_t>(to_.definition.expressions.size());
    axes_ = static_cast<uint32_t>(to_.definition.axes.size());
    reducers_ = static_cast<uint32_t>(to_.definition.reducers.size());
    files_ = static_cast<uint32_t>(to_.names.files.size());
    replaced_.clear();
    same_.clear();
    // Stages that are replaced are left out.
    stages_.assign(kernel.definition.stages.size(), 0);
    to_.names.files.insert(to_.names.files.end(), kernel.names.files.begin(),
                           kernel.names.files.end());
  }

  TensorId mapped(TensorId tensor) const {
    const auto at = replaced_.find(tensor.stage);
    return at != replaced_.end() ? at->second : TensorId{stages_[tensor.stage], tensor.output};
  }

  std::vector<ExprId> mapped(std::vector<ExprId> ids) const {
    for (ExprId& id : ids)
      id += expressions_;
    return ids;
  }
  std::vector<AxisId> mapped_axes(std::vector<AxisId> ids) const {
    for (AxisId& id : ids)
      id += axes_;
    return ids;
  }
  std::vector<TensorId> mapped(std::vector<TensorId> ids) const {
    for (TensorId& id : ids)
      id = mapped(id);
    return ids;
  }

  /// Reads name stages, whose numbers are known before they are appended.
  void append_expressions(const Definition& from) {
    auto next = static_cast<StageId>(to_.definition.stages.size());
    for (StageId stage = 0; stage < from.stages.size(); ++stage) {
      if (replaced_.count(stage) == 0 && same_.count(stage) == 0) stages_[stage] = next++;
    }
    for (const auto& [stage, first] : same_)
      replaced_[stage] = {stages_[first], 0};
    for (Expression expression : from.expressions) {
      std::visit([&](auto& node) { renumber(node); }, expression.node);
      to_.definition.expressions.push_back(std::move(expression));
    }
  }

  void renumber(IntegerConstant&) const {}
  void renumber(FloatConstant&) const {}
  void renumber(ReducerParameter&) const {}
  void renumber(VariableUse&) const { KILN_CHECK(false); }
  void renumber(AxisUse& use) const { use.axis += axes_; }
  void renumber(Operation& operation) const { operation.operands = mapped(operation.operands); }
  void renumber(CastTo& cast) const { cast.operand += expressions_; }
  void renumber(Read& read) const {
    read.tensor = mapped(read.tensor);
    read.indices = mapped(read.indices);
  }
  void renumber(Reduction& reduction) const {
    reduction.reducer += reducers_;
    reduction.sources = mapped(reduction.sources);
    reduction.axes = mapped_axes(reduction.axes);
    if (reduction.condition) *reduction.condition += expressions_;
    reduction.init = mapped(reduction.init);
  }

  void append_axes(const Kernel& kernel) {
    for (Axis axis : kernel.definition.axes) {
      axis.minimum += expressions_;
      axis.extent += expressions_;
      to_.definition.axes.push_back(axis);
    }
    to_.names.axes.insert(to_.names.axes.end(), kernel.names.axes.begin(), kernel.names.axes.end());
  }

  void append_reducers(const Kernel& kernel) {
    for (Reducer reducer : kernel.definition.reducers) {
      reducer.identities = mapped(reducer.identities);
      reducer.results = mapped(reducer.results);
      to_.definition.reducers.push_back(std::move(reducer));
    }
    to_.names.reducers.insert(to_.names.reducers.end(), kernel.names.reducers.begin(),
                              kernel.names.reducers.end());
  }

  void append_stages(const Kernel& kernel, const std::vector<ValueId>& values) {
    const Definition& from = kernel.definition;
    for (StageId id = 0; id < from.stages.size(); ++id) {
      if (replaced_.count(id) != 0) continue;
      Stage stage = from.stages[id];
      std::visit([&](auto& each) { renumber_stage(each); }, stage);
      to_.definition.stages.push_back(std::move(stage));
      to_.names.stages.push_back(name_of_stage(kernel, id, values));
      SourceMap::Line line =
          id < kernel.names.stage_lines.size() ? kernel.names.stage_lines[id] : SourceMap::Line{};
      if (!kernel.names.files.empty()) line.file += files_;
      to_.names.stage_lines.push_back(line);
    }
    for (const auto& [tensor, name] : kernel.names.tensors) {
      if (replaced_.count(tensor.stage) == 0) to_.names.tensors[mapped(tensor)] = name;
    }
  }

  /// A stage that is a value of the program is called as the value is.
  std::string name_of_stage(const Kernel& kernel, StageId id,
                            const std::vector<ValueId>& values) const {
    const std::vector<TensorId>& parameters = kernel.definition.parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].stage == id && output_count(kernel.definition.stages[id]) == 1)
        return program_.values[values[i]].name;
    }
    return kernel.names.stages[id];
  }

  void renumber_stage(Placeholder& stage) const { stage.shape = mapped(stage.shape); }
  void renumber_stage(Compute& stage) const {
    stage.axes = mapped_axes(stage.axes);
    stage.bodies = mapped(stage.bodies);
  }
  void renumber_stage(Scan& stage) const {
    stage.axis += axes_;
    for (auto* list : {&stage.init, &stage.update, &stage.state, &stage.inputs})
      *list = mapped(*list);
  }
  void renumber_stage(Scatter& stage) const {
    stage.axes = mapped_axes(stage.axes);
    stage.base = mapped(stage.base);
    stage.indices = mapped(stage.indices);
    stage.update += expressions_;
  }

  const Program& program_;
  const Shapes& shapes_;
  Kernel to_;
  std::map<ValueId, TensorId> tensors_;  // where the values are found
  std::vector<ValueId> inputs_;
  std::vector<ValueId> made_;

  // Of the kernel being appended.
  uint32_t expressions_ = 0;
  uint32_t axes_ = 0;
  uint32_t reducers_ = 0;
  uint32_t files_ = 0;
  std::vector<StageId> stages_;
  std::map<StageId, TensorId> replaced_;
  std::map<StageId, StageId> same_;  // placeholders of a value that an earlier one stands for
};

}  // namespace

Joined join(const Program& program, const Shapes& shapes, std::span<const NodeId> nodes,
            const std::function<bool(ValueId)>& is_needed) {
  Joiner joiner(program, shapes);
  for (const NodeId node : nodes)
    joiner.add(node);
  return joiner.take(is_needed);
}

}  // namespace kiln::program
