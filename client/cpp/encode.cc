// The expressions of a program as the five tables of the wire, in one walk from the arguments down.
//
//   C = compute({n}, A(i) + 1)  ->  axes [i], expressions [n, i, A[i], 1, add], stages [A, C]
//
// An expression that two stages use is encoded for each: its axes are theirs.
#include "client/cpp/encode.h"

#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "client/cpp/fail.h"
#include "client/cpp/nodes.h"
#include "client/cpp/schedule_state.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// Fills the five tables, each entry after what it refers to. A node has one entry, however often
/// it is used.
class Encoder {
 public:
  explicit Encoder(border::WireKernel& kernel) : kernel_(kernel) {}

  std::uint32_t stage(const std::shared_ptr<const StageNode>& node) {
    if (const auto known = stages_.find(node.get()); known != stages_.end()) return known->second;
    v1::Stage stage;
    // What is reached from here on belongs to this stage, until a stage it reads is entered.
    const StageNode* const reader = std::exchange(current_, node.get());
    std::visit([&](const auto& value) { fill(stage, value); }, node->value);
    current_ = reader;
    *kernel_.definition.add_stages() = std::move(stage);
    kernel_.names.add_stages(node->name);
    *kernel_.names.add_stage_lines() = line(node->file, node->line);
    const auto id = static_cast<std::uint32_t>(nodes_.stages.size());
    nodes_.stages.push_back(node);
    stages_[node.get()] = id;
    for (std::uint32_t output = 0; output < node->tensor_names.size(); ++output) {
      v1::TensorName& named = *kernel_.names.add_tensors();
      named.mutable_tensor()->set_stage(id);
      named.mutable_tensor()->set_output(output);
      named.set_name(node->tensor_names[output]);
    }
    return id;
  }

  /// What another definition makes is a placeholder of this one.
  void given(const Tensor& tensor) {
    v1::Stage stage;
    fill(stage, PlaceholderStage{tensor.dtype(), tensor.shape()});
    *kernel_.definition.add_stages() = std::move(stage);
    kernel_.names.add_stages(tensor.name());
    *kernel_.names.add_stage_lines() = line(tensor.stage()->file, tensor.stage()->line);
    nodes_.stages.push_back(tensor.stage());
    given_[{tensor.stage().get(), tensor.output()}] =
        static_cast<std::uint32_t>(nodes_.stages.size() - 1);
  }

  void parameter(const Tensor& tensor) { *kernel_.definition.add_parameters() = id_of(tensor); }

  /// Every placeholder but the states of scans becomes an argument.
  void parameters_behind() {
    std::set<std::uint32_t> states;
    for (const v1::Stage& stage : kernel_.definition.stages()) {
      for (const v1::TensorId& state : stage.scan().state())
        states.insert(state.stage());
    }
    for (std::uint32_t id = 0; id < nodes_.stages.size(); ++id) {
      const bool is_input = std::holds_alternative<PlaceholderStage>(nodes_.stages[id]->value) &&
                            !states.contains(id);
      if (is_input) kernel_.definition.add_parameters()->set_stage(id);
    }
  }

  const EncodedNodes& nodes() const { return nodes_; }

  void schedule(const ScheduleState& state) {
    v1::Schedule schedule;
    auto next_axis = static_cast<std::uint32_t>(axes_.size());
    for (const StepRecord& step : state.steps) {
      *schedule.add_steps() = encode(step);
      // Ids of made axes go on where the definition's end, as on the service.
      for (const Axis& axis : step.defined)
        axes_[{nullptr, axis.node().get()}] = next_axis++;
      if (step.made) remember(stages_, step.made.get());
    }
    kernel_.schedules.emplace_back("", std::move(schedule));
  }

 private:
  template <typename Ids, typename Key>
  static std::uint32_t remember(Ids& ids, const Key& key) {
    const auto id = static_cast<std::uint32_t>(ids.size());
    ids[key] = id;
    return id;
  }

  /// What is part of one stage: a node, for the stage that uses it.
  template <typename Node>
  using Owned = std::pair<const StageNode*, const Node*>;

  v1::SourceLine line(const std::string& file, std::uint32_t number) {
    const auto [found, added] = files_.try_emplace(file, kernel_.names.files_size());
    if (added) kernel_.names.add_files(file);
    v1::SourceLine line;
    line.set_file(static_cast<std::uint32_t>(found->second));
    line.set_line(number);
    return line;
  }

  v1::TensorId id_of(const Tensor& tensor) {
    v1::TensorId id;
    const auto given = given_.find({tensor.stage().get(), tensor.output()});
    if (given != given_.end()) {
      id.set_stage(given->second);
      return id;
    }
    id.set_stage(stage(tensor.stage()));
    id.set_output(tensor.output());
    return id;
  }

  std::uint32_t variable(const ExprNode& node, const VariableValue& value) {
    if (const auto known = variables_.find(&node); known != variables_.end()) return known->second;
    kernel_.definition.add_variables()->set_nonnegative(value.nonnegative);
    kernel_.names.add_variables(value.name);
    return remember(variables_, &node);
  }

  std::uint32_t axis(const AxisNode& node) {
    // Two stages may reduce over what the user calls one axis; on the wire each has its own.
    const bool is_reduced = node.kind == AxisKind::Reduce;
    const Owned<AxisNode> key = {is_reduced ? current_ : nullptr, &node};
    if (const auto known = axes_.find(key); known != axes_.end()) return known->second;
    v1::Axis axis;
    axis.set_kind(static_cast<v1::AxisKind>(node.kind));
    axis.set_minimum(expression(*node.minimum));
    axis.set_extent(expression(*node.extent));
    *kernel_.definition.add_axes() = std::move(axis);
    kernel_.names.add_axes(node.name);
    nodes_.axes.push_back(&node);
    return remember(axes_, key);
  }

  std::uint32_t expression(const Expr& expr) {
    const ExprNode* node = expr.node().get();
    const Owned<ExprNode> key = {current_, node};
    if (const auto known = expressions_.find(key); known != expressions_.end()) {
      return known->second;
    }
    v1::Expression expression;
    std::visit([&](const auto& value) { fill(expression, *node, value); }, node->value);
    if (nodes_.sizes.size() < variables_.size()) nodes_.sizes.push_back(expr);
    *kernel_.definition.add_expressions() = std::move(expression);
    return remember(expressions_, key);
  }

  static v1::DataType wire(DType type) { return static_cast<v1::DataType>(type); }

  void fill(v1::Expression& out, const ExprNode& node, const IntegerValue& value) {
    out.mutable_integer()->set_type(wire(node.type));
    out.mutable_integer()->set_value(value.value);
  }
  void fill(v1::Expression& out, const ExprNode& node, const FloatingValue& value) {
    out.mutable_floating()->set_type(wire(node.type));
    out.mutable_floating()->set_value(value.value);
  }
  void fill(v1::Expression& out, const ExprNode& node, const VariableValue& value) {
    out.set_variable(variable(node, value));
  }
  void fill(v1::Expression& out, const ExprNode&, const AxisValue& value) {
    out.set_axis(axis(*value.axis));
  }
  void fill(v1::Expression& out, const ExprNode&, const OperationValue& value) {
    out.mutable_operation()->set_operator_(std::string(value.spelling));
    for (const Expr& operand : value.operands) {
      out.mutable_operation()->add_operands(expression(operand));
    }
  }
  void fill(v1::Expression& out, const ExprNode& node, const CastValue& value) {
    out.mutable_cast()->set_type(wire(node.type));
    out.mutable_cast()->set_operand(expression(value.operand));
  }
  void fill(v1::Expression& out, const ExprNode&, const ReadValue& value) {
    *out.mutable_read()->mutable_tensor() = id_of(value.tensor);
    for (const Expr& index : value.indices)
      out.mutable_read()->add_indices(expression(index));
  }
  void fill(v1::Expression& out, const ExprNode&, const ReductionValue& value) {
    v1::Reduction& reduction = *out.mutable_reduction();
    reduction.set_combiner(value.combiner);
    if (value.reducer) reduction.set_reducer(reducer(value.reducer));
    reduction.set_output(value.output);
    for (const Axis& reduced : value.axes)
      reduction.add_axes(axis(*reduced.node()));
    for (const Expr& source : value.sources)
      reduction.add_sources(expression(source));
    if (value.condition) reduction.set_condition(expression(*value.condition));
    for (const Expr& init : value.init)
      reduction.add_init(expression(init));
  }
  void fill(v1::Expression& out, const ExprNode& node, const ParameterValue& value) {
    out.mutable_parameter()->set_type(wire(node.type));
    out.mutable_parameter()->set_position(value.position);
  }

  /// Its expressions belong to no stage, since the reducer does not.
  std::uint32_t reducer(const std::shared_ptr<const ReducerNode>& node) {
    if (const auto known = reducers_.find(node.get()); known != reducers_.end()) {
      return known->second;
    }
    const StageNode* const reader = std::exchange(current_, nullptr);
    v1::Reducer row;
    for (const DType type : node->types)
      row.add_types(wire(type));
    for (const Expr& identity : node->identities)
      row.add_identities(expression(identity));
    for (const Expr& result : node->results)
      row.add_results(expression(result));
    current_ = reader;
    *kernel_.definition.add_reducers() = std::move(row);
    v1::ReducerNames& names = *kernel_.names.add_reducers();
    names.set_name(node->name);
    for (const std::string& name : node->parameters)
      names.add_parameters(name);
    for (const char* side : {"a", "b"}) {
      if (!node->parameters.empty()) break;
      for (std::size_t i = 0; i < node->types.size(); ++i)
        names.add_parameters(node->types.size() == 1 ? side : fmt::format("{}{}", side, i));
    }
    return remember(reducers_, node.get());
  }

  void fill(v1::Stage& out, const PlaceholderStage& value) {
    out.mutable_placeholder()->set_type(wire(value.type));
    for (const Expr& size : value.shape)
      out.mutable_placeholder()->add_shape(expression(size));
  }
  void fill(v1::Stage& out, const ComputeStage& value) {
    for (const Axis& own : value.axes)
      out.mutable_compute()->add_axes(axis(*own.node()));
    for (const Expr& body : value.bodies)
      out.mutable_compute()->add_bodies(expression(body));
  }
  void fill(v1::Stage& out, const ScanStage& value) {
    v1::Scan& scan = *out.mutable_scan();
    for (const Tensor& tensor : value.init)
      *scan.add_init() = id_of(tensor);
    for (const Tensor& tensor : value.update)
      *scan.add_update() = id_of(tensor);
    for (const Tensor& tensor : value.state)
      *scan.add_state() = id_of(tensor);
    for (const Tensor& tensor : value.inputs)
      *scan.add_inputs() = id_of(tensor);
    scan.set_axis(axis(*value.axis.node()));
    scan.set_dimension(value.time.dimension);
    scan.set_reverse(value.time.reverse);
  }

  void fill(v1::Stage& out, const ScatterStage& value) {
    v1::Scatter& scatter = *out.mutable_scatter();
    for (const Axis& own : value.axes)
      scatter.add_axes(axis(*own.node()));
    *scatter.mutable_base() = id_of(value.base);
    for (const Expr& index : value.indices)
      scatter.add_indices(expression(index));
    scatter.set_update(expression(value.update));
    scatter.set_combiner(value.combiner);
  }

  v1::Step encode(const StepRecord& step) {
    v1::Step out;
    out.set_name(step.name);
    out.set_stage(known_stage(step, step.stage));
    // The axes of a layout are the reader's.
    const std::shared_ptr<const StageNode>& owner =
        step.readers.empty() ? step.stage : step.readers[0];
    for (const Axis& operand : step.axes)
      out.add_axes(known_axis(step, owner, operand));
    for (const std::int64_t factor : step.factors)
      out.add_factors(factor);
    if (step.parts) out.set_parts(*step.parts);
    out.set_tag(step.tag);
    if (step.at_stage) out.set_at_stage(known_stage(step, step.at_stage));
    if (step.at_axis) out.set_at_axis(known_axis(step, step.at_stage, *step.at_axis));
    out.set_output(step.output);
    for (const std::shared_ptr<const StageNode>& reader : step.readers)
      out.add_readers(known_stage(step, reader));
    out.mutable_tags()->Add(step.tags.begin(), step.tags.end());
    out.set_value(step.value);
    *out.mutable_line() = line(step.file, step.line);
    return out;
  }

  std::uint32_t known_stage(const StepRecord& step, const std::shared_ptr<const StageNode>& node) {
    const auto found = stages_.find(node.get());
    if (found == stages_.end()) foreign(step, node->name);
    return found->second;
  }

  std::uint32_t known_axis(const StepRecord& step, const std::shared_ptr<const StageNode>& owner,
                           const Axis& operand) {
    auto found = axes_.find({owner.get(), operand.node().get()});
    if (found == axes_.end()) found = axes_.find({nullptr, operand.node().get()});
    if (found == axes_.end()) foreign(step, step.stage->name);
    return found->second;
  }

  /// A schedule may have been made for outputs that are no arguments of this kernel.
  [[noreturn]] void foreign(const StepRecord& step, const std::string& stage) const {
    throw_error({.kind = ErrorKind::InvalidArgument,
                 .reason = "FOREIGN_STAGE",
                 .message = fmt::format("{} schedules {}, which no argument of {} is computed from",
                                        step.name, stage, called(kernel_.names.kernel())),
                 .file = step.file,
                 .line = static_cast<int>(step.line)});
  }

  border::WireKernel& kernel_;
  EncodedNodes nodes_;
  const StageNode* current_ = nullptr;  // the stage that is being filled in
  std::unordered_map<const StageNode*, std::uint32_t> stages_;
  std::map<std::pair<const StageNode*, unsigned>, std::uint32_t> given_;
  std::map<Owned<AxisNode>, std::uint32_t> axes_;
  std::map<Owned<ExprNode>, std::uint32_t> expressions_;
  std::unordered_map<const ExprNode*, std::uint32_t> variables_;
  std::unordered_map<const ReducerNode*, std::uint32_t> reducers_;
  std::map<std::string, int> files_;
};

}  // namespace

border::WireKernel encode(const std::vector<Tensor>& arguments, const std::string& name,
                          const ScheduleState* schedule) {
  if (arguments.empty()) {
    fail(ErrorKind::InvalidArgument, "NO_ARGUMENTS",
         "{} has no arguments: list its placeholders and what it computes from them, as in "
         "{{A, B, C}}",
         called(name));
  }
  border::WireKernel kernel;
  kernel.names.set_kernel(name);
  Encoder encoder(kernel);
  for (const Tensor& argument : arguments)
    encoder.parameter(argument);
  if (schedule != nullptr) encoder.schedule(*schedule);
  return kernel;
}

border::WireKernel encode_node(const GraphNode& node) {
  border::WireKernel kernel;
  kernel.names.set_kernel(node.stages.back()->name);
  Encoder encoder(kernel);
  for (const Tensor& input : node.inputs)
    encoder.given(input);
  for (const std::shared_ptr<const StageNode>& stage : node.stages)
    encoder.stage(stage);
  for (const Tensor& input : node.inputs)
    encoder.parameter(input);
  for (const Tensor& output : node.outputs())
    encoder.parameter(output);
  return kernel;
}

border::WireKernel encode_behind(const std::vector<Tensor>& outputs, const ScheduleState* schedule,
                                 EncodedNodes& nodes) {
  border::WireKernel kernel;
  kernel.names.set_kernel(kUnnamedKernel);
  Encoder encoder(kernel);
  for (const Tensor& output : outputs) {
    const bool is_input = std::holds_alternative<PlaceholderStage>(output.stage()->value);
    is_input ? static_cast<void>(encoder.stage(output.stage())) : encoder.parameter(output);
  }
  encoder.parameters_behind();
  if (schedule != nullptr) encoder.schedule(*schedule);
  nodes = encoder.nodes();
  return kernel;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
