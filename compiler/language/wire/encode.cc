// The wire form of checked tables, field by field: decode(encode(d)) is d. Kernel files go this way
// too, so that they are checked as requests are.
#include "compiler/language/wire/decode.h"

namespace kiln::language {
namespace {

void encode(const IntegerConstant& constant, DType type, v1::Expression& out) {
  out.mutable_integer()->set_type(static_cast<v1::DataType>(type));
  out.mutable_integer()->set_value(constant.value);
}
void encode(const FloatConstant& constant, DType type, v1::Expression& out) {
  out.mutable_floating()->set_type(static_cast<v1::DataType>(type));
  out.mutable_floating()->set_value(constant.value);
}
void encode(const VariableUse& use, DType, v1::Expression& out) { out.set_variable(use.variable); }
void encode(const AxisUse& use, DType, v1::Expression& out) { out.set_axis(use.axis); }
void encode(const Operation& operation, DType, v1::Expression& out) {
  out.mutable_operation()->set_operator_(std::string(row_of(operation.op).spelling));
  for (const ExprId operand : operation.operands) {
    out.mutable_operation()->add_operands(operand);
  }
}
void encode(const CastTo& cast, DType type, v1::Expression& out) {
  out.mutable_cast()->set_type(static_cast<v1::DataType>(type));
  out.mutable_cast()->set_operand(cast.operand);
}

void encode(TensorId tensor, v1::TensorId& out) {
  out.set_stage(tensor.stage);
  out.set_output(tensor.output);
}

void encode(const std::vector<TensorId>& tensors,
            google::protobuf::RepeatedPtrField<v1::TensorId>& out) {
  for (const TensorId tensor : tensors) {
    encode(tensor, *out.Add());
  }
}

void encode(const Read& read, DType, v1::Expression& out) {
  encode(read.tensor, *out.mutable_read()->mutable_tensor());
  for (const ExprId index : read.indices) {
    out.mutable_read()->add_indices(index);
  }
}
void encode(const Reduction& reduction, DType, v1::Expression& out) {
  v1::Reduction& wire = *out.mutable_reduction();
  if (reduction.combiner) {
    wire.set_combiner(std::string(row_of(*reduction.combiner).spelling));
  } else {
    wire.set_reducer(reduction.reducer);
  }
  wire.mutable_sources()->Add(reduction.sources.begin(), reduction.sources.end());
  wire.mutable_axes()->Add(reduction.axes.begin(), reduction.axes.end());
  wire.set_output(reduction.output);
  if (reduction.condition) wire.set_condition(*reduction.condition);
  wire.mutable_init()->Add(reduction.init.begin(), reduction.init.end());
}
void encode(const ReducerParameter& parameter, DType type, v1::Expression& out) {
  out.mutable_parameter()->set_type(static_cast<v1::DataType>(type));
  out.mutable_parameter()->set_position(parameter.position);
}

void encode(const Reducer& reducer, v1::Reducer& out) {
  for (const DType type : reducer.types)
    out.add_types(static_cast<v1::DataType>(type));
  out.mutable_identities()->Add(reducer.identities.begin(), reducer.identities.end());
  out.mutable_results()->Add(reducer.results.begin(), reducer.results.end());
}

void encode(const Placeholder& placeholder, v1::Stage& out) {
  out.mutable_placeholder()->set_type(static_cast<v1::DataType>(placeholder.type));
  for (const ExprId extent : placeholder.shape) {
    out.mutable_placeholder()->add_shape(extent);
  }
}
void encode(const Compute& compute, v1::Stage& out) {
  for (const AxisId axis : compute.axes) {
    out.mutable_compute()->add_axes(axis);
  }
  for (const ExprId body : compute.bodies) {
    out.mutable_compute()->add_bodies(body);
  }
}
void encode(const Scan& scan, v1::Stage& out) {
  v1::Scan& wire = *out.mutable_scan();
  wire.set_axis(scan.axis);
  encode(scan.init, *wire.mutable_init());
  encode(scan.update, *wire.mutable_update());
  encode(scan.state, *wire.mutable_state());
  encode(scan.inputs, *wire.mutable_inputs());
  wire.set_dimension(scan.dimension);
  wire.set_reverse(scan.reverse);
}

void encode(const Scatter& scatter, v1::Stage& out) {
  v1::Scatter& wire = *out.mutable_scatter();
  wire.mutable_axes()->Add(scatter.axes.begin(), scatter.axes.end());
  encode(scatter.base, *wire.mutable_base());
  wire.mutable_indices()->Add(scatter.indices.begin(), scatter.indices.end());
  wire.set_update(scatter.update);
  if (scatter.combiner) wire.set_combiner(std::string(row_of(*scatter.combiner).spelling));
}

}  // namespace

v1::Definition encode(const Definition& definition) {
  v1::Definition out;
  for (const Variable& variable : definition.variables) {
    out.add_variables()->set_nonnegative(variable.nonnegative);
  }
  for (const Axis& axis : definition.axes) {
    v1::Axis& wire = *out.add_axes();
    wire.set_kind(static_cast<v1::AxisKind>(axis.kind));
    wire.set_minimum(axis.minimum);
    wire.set_extent(axis.extent);
  }
  for (const Expression& expression : definition.expressions) {
    v1::Expression& wire = *out.add_expressions();
    std::visit([&](const auto& node) { encode(node, expression.type, wire); }, expression.node);
  }
  for (const Stage& stage : definition.stages) {
    v1::Stage& wire = *out.add_stages();
    std::visit([&](const auto& kind) { encode(kind, wire); }, stage);
  }
  encode(definition.parameters, *out.mutable_parameters());
  for (const Reducer& reducer : definition.reducers)
    encode(reducer, *out.add_reducers());
  return out;
}

v1::SourceMap encode(const SourceMap& names) {
  v1::SourceMap out;
  out.set_kernel(names.kernel);
  out.mutable_variables()->Add(names.variables.begin(), names.variables.end());
  out.mutable_axes()->Add(names.axes.begin(), names.axes.end());
  out.mutable_stages()->Add(names.stages.begin(), names.stages.end());
  out.mutable_files()->Add(names.files.begin(), names.files.end());
  for (const SourceMap::Line& line : names.stage_lines) {
    v1::SourceLine& wire = *out.add_stage_lines();
    wire.set_file(line.file);
    wire.set_line(line.line);
  }
  for (const auto& [tensor, name] : names.tensors) {
    v1::TensorName& wire = *out.add_tensors();
    encode(tensor, *wire.mutable_tensor());
    wire.set_name(name);
  }
  for (const SourceMap::ReducerNames& reducer : names.reducers) {
    v1::ReducerNames& wire = *out.add_reducers();
    wire.set_name(reducer.name);
    wire.mutable_parameters()->Add(reducer.parameters.begin(), reducer.parameters.end());
  }
  return out;
}

v1::Schedule encode(const Schedule& schedule) {
  v1::Schedule out;
  for (const Step& step : schedule.steps) {
    v1::Step& wire = *out.add_steps();
    wire.set_name(std::string(row_of(step.kind).spelling));
    wire.set_stage(step.stage);
    wire.mutable_axes()->Add(step.axes.begin(), step.axes.end());
    wire.mutable_factors()->Add(step.factors.begin(), step.factors.end());
    wire.set_parts(step.parts.value_or(0));
    wire.set_tag(step.tag);
    wire.set_at_stage(step.at_stage);
    wire.set_at_axis(step.at_axis);
    wire.set_output(step.output);
    wire.mutable_readers()->Add(step.readers.begin(), step.readers.end());
    wire.mutable_tags()->Add(step.tags.begin(), step.tags.end());
    wire.set_value(step.value);
    wire.mutable_line()->set_file(step.file);
    wire.mutable_line()->set_line(step.line);
  }
  return out;
}

}  // namespace kiln::language
