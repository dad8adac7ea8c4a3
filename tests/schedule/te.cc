#include "tests/schedule/te.h"

#include <algorithm>
#include <sstream>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/ir/print.h"
#include "compiler/lower.h"
#include "compiler/passes/simplify.h"
#include "compiler/schedule/build_loops.h"
#include "runtime/core/error.h"

namespace kiln::testing {

using language::Step;
using language::StepKind;

namespace {

std::vector<ExprId> ids_of(const std::vector<TeExpr>& exprs) {
  std::vector<ExprId> ids;
  for (const TeExpr& expr : exprs)
    ids.push_back(expr.id);
  return ids;
}

}  // namespace

ExprId Te::add(language::Expression expression) {
  kernel.definition.expressions.push_back(std::move(expression));
  return static_cast<ExprId>(kernel.definition.expressions.size() - 1);
}

TeExpr Te::var(const std::string& name) {
  const auto id = static_cast<language::VariableId>(kernel.definition.variables.size());
  kernel.definition.variables.push_back({});
  kernel.names.variables.push_back(name);
  return {this, add({DType::Int64, language::VariableUse{id}})};
}

TeExpr Te::integer(int64_t value, DType type) {
  return {this, add({type, language::IntegerConstant{value}})};
}

TeExpr Te::real(double value, DType type) {
  return {this, add({type, language::FloatConstant{value}})};
}

TeExpr Te::op(Operator op, const std::vector<TeExpr>& operands) {
  std::vector<DType> types;
  for (const TeExpr& operand : operands) {
    types.push_back(kernel.definition.expressions[operand.id].type);
  }
  return {this, add({language::result_type(op, types), language::Operation{op, ids_of(operands)}})};
}

TeExpr Te::cast(DType type, TeExpr value) {
  return {this, add({type, language::CastTo{value.id}})};
}

TeExpr Te::read(TensorId tensor, const std::vector<TeExpr>& indices) {
  return {this, add({kernel.definition.type_of(tensor), language::Read{tensor, ids_of(indices)}})};
}

TeTensor Te::placeholder(const std::string& name, const std::vector<TeExpr>& shape, DType type) {
  const auto id = static_cast<StageId>(kernel.definition.stages.size());
  kernel.definition.stages.push_back(language::Placeholder{type, ids_of(shape)});
  kernel.names.stages.push_back(name);
  return {this, {id, 0}};
}

std::vector<TeTensor> Te::compute_all(
    const std::string& name, const std::string& axes, const std::vector<TeExpr>& shape,
    const std::function<std::vector<TeExpr>(std::vector<TeExpr>)>& bodies) {
  language::Compute compute;
  std::vector<TeExpr> values;
  std::istringstream words(axes);
  for (const TeExpr& extent : shape) {
    std::string word;
    words >> word;
    const TeExpr zero = integer(0);
    compute.axes.push_back(static_cast<AxisId>(kernel.definition.axes.size()));
    kernel.definition.axes.push_back({language::AxisKind::Data, zero.id, extent.id});
    kernel.names.axes.push_back(word);
    rows_.push_back({word, ~StageId{0}});
    values.push_back({this, add({DType::Int64, language::AxisUse{compute.axes.back()}})});
  }
  compute.bodies = ids_of(bodies(values));
  const auto id = static_cast<StageId>(kernel.definition.stages.size());
  for (const AxisId axis : compute.axes)
    own(axis, id);
  for (const ExprId body : compute.bodies) {
    const auto& node = kernel.definition.expressions[body].node;
    if (const auto* reduction = std::get_if<language::Reduction>(&node)) {
      for (const AxisId axis : reduction->axes)
        own(axis, id);
    }
  }
  std::vector<TeTensor> tensors;
  for (uint32_t output = 0; output < compute.bodies.size(); ++output) {
    tensors.push_back({this, {id, output}});
  }
  kernel.definition.stages.push_back(std::move(compute));
  kernel.names.stages.push_back(name);
  return tensors;
}

TeTensor Te::compute(const std::string& name, const std::string& axes,
                     const std::vector<TeExpr>& shape,
                     const std::function<TeExpr(std::vector<TeExpr>)>& body) {
  return compute_all(name, axes, shape, [&](std::vector<TeExpr> values) {
    return std::vector<TeExpr>{body(std::move(values))};
  })[0];
}

TeExpr Te::reduce_axis(const std::string& name, TeExpr minimum, TeExpr extent) {
  const auto id = static_cast<AxisId>(kernel.definition.axes.size());
  kernel.definition.axes.push_back({language::AxisKind::Reduce, minimum.id, extent.id});
  kernel.names.axes.push_back(name);
  rows_.push_back({name, ~StageId{0}});
  return {this, add({DType::Int64, language::AxisUse{id}})};
}

TeExpr Te::reduce(Combiner combiner, TeExpr source, const std::vector<TeExpr>& axes) {
  language::Reduction reduction{.combiner = combiner, .sources = {source.id}};
  for (const TeExpr& axis : axes) {
    reduction.axes.push_back(
        std::get<language::AxisUse>(kernel.definition.expressions[axis.id].node).axis);
  }
  return {this, add({kernel.definition.expressions[source.id].type, reduction})};
}

std::vector<TeTensor> Te::scan(const std::string& name, std::vector<TeTensor> init,
                               std::vector<TeTensor> update, std::vector<TeTensor> state, TeExpr m,
                               Time time) {
  const TeExpr minimum = integer(time.initial);
  const TeExpr extent = m - time.initial;
  language::Scan scan;
  scan.dimension = time.dimension;
  scan.reverse = time.reverse;
  scan.axis = static_cast<AxisId>(kernel.definition.axes.size());
  kernel.definition.axes.push_back({language::AxisKind::Time, minimum.id, extent.id});
  kernel.names.axes.push_back(name + ".idx");
  const auto id = static_cast<StageId>(kernel.definition.stages.size());
  rows_.push_back({name + ".idx", id});
  std::vector<TeTensor> outputs;
  for (uint32_t i = 0; i < init.size(); ++i) {
    scan.init.push_back(init[i].id);
    scan.update.push_back(update[i].id);
    scan.state.push_back(state[i].id);
    outputs.push_back({this, {id, i}});
  }
  kernel.definition.stages.push_back(std::move(scan));
  kernel.names.stages.push_back(name);
  return outputs;
}

void Te::arguments(const std::vector<TeTensor>& tensors) {
  for (const TeTensor& tensor : tensors)
    kernel.definition.parameters.push_back(tensor.id);
  kernel.names.files = {"kernel.py"};
}

AxisId Te::axis(const TeTensor& tensor, const std::string& name) const {
  for (size_t i = rows_.size(); i-- > 0;) {
    if (rows_[i].name == name && rows_[i].stage == tensor.id.stage) return static_cast<AxisId>(i);
  }
  throw std::runtime_error("no axis " + name);
}

Step& Te::step(StepKind kind, const TeTensor& tensor, const std::vector<std::string>& axes) {
  Step step{.kind = kind, .stage = tensor.id.stage};
  for (const std::string& name : axes)
    step.axes.push_back(axis(tensor, name));
  step.line = static_cast<uint32_t>(10 + schedule.steps.size());
  for (const std::string& name : language::defined_axis_names(kind, axes)) {
    rows_.push_back({name, tensor.id.stage});
  }
  schedule.steps.push_back(std::move(step));
  return schedule.steps.back();
}

void Te::split(const TeTensor& tensor, const std::string& axis, int64_t factor) {
  step(StepKind::Split, tensor, {axis}).factors = {factor};
}
void Te::split_parts(const TeTensor& tensor, const std::string& axis, int64_t parts) {
  step(StepKind::Split, tensor, {axis}).parts = parts;
}
void Te::tile(const TeTensor& tensor, const std::string& x, const std::string& y, int64_t fx,
              int64_t fy) {
  step(StepKind::Tile, tensor, {x, y}).factors = {fx, fy};
}
void Te::fuse(const TeTensor& tensor, const std::vector<std::string>& axes) {
  step(StepKind::Fuse, tensor, axes);
}
void Te::reorder(const TeTensor& tensor, const std::vector<std::string>& axes) {
  step(StepKind::Reorder, tensor, axes);
}
void Te::bind(const TeTensor& tensor, const std::string& axis, const std::string& tag) {
  step(StepKind::Bind, tensor, {axis}).tag = tag;
}
void Te::parallel(const TeTensor& tensor, const std::string& axis) {
  step(StepKind::Parallel, tensor, {axis});
}
void Te::vectorize(const TeTensor& tensor, const std::string& axis) {
  step(StepKind::Vectorize, tensor, {axis});
}
void Te::unroll(const TeTensor& tensor, const std::string& axis) {
  step(StepKind::Unroll, tensor, {axis});
}
void Te::compute_at(const TeTensor& tensor, const TeTensor& consumer, const std::string& axis) {
  const AxisId id = this->axis(consumer, axis);
  Step& added = step(StepKind::ComputeAt, tensor, {});
  added.at_stage = consumer.id.stage;
  added.at_axis = id;
}
void Te::compute_inline(const TeTensor& tensor) { step(StepKind::ComputeInline, tensor, {}); }
void Te::compute_root(const TeTensor& tensor) { step(StepKind::ComputeRoot, tensor, {}); }
void Te::storage_align(const TeTensor& tensor, const std::string& axis, int64_t factor,
                       int64_t offset) {
  Step& added = step(StepKind::StorageAlign, tensor, {axis});
  added.factors = {factor};
  added.value = offset;
}
void Te::double_buffer(const TeTensor& tensor) { step(StepKind::DoubleBuffer, tensor, {}); }
void Te::tensorize(const TeTensor& tensor, const std::string& axis, const std::string& intrinsic) {
  step(StepKind::Tensorize, tensor, {axis}).tag = intrinsic;
}
void Te::pragma(const TeTensor& tensor, const std::string& axis, const std::string& kind,
                int64_t value) {
  Step& added = step(StepKind::Pragma, tensor, {axis});
  added.tag = kind;
  added.value = value;
}
void Te::prefetch(const TeTensor& reader, const TeTensor& tensor, const std::string& axis,
                  int64_t offset) {
  const AxisId id = this->axis(reader, axis);
  Step& added = step(StepKind::Prefetch, tensor, {});
  added.output = tensor.id.output;
  added.at_stage = reader.id.stage;
  added.at_axis = id;
  added.value = offset;
}
void Te::env_threads(const TeTensor& scan, const std::vector<std::string>& threads) {
  step(StepKind::EnvThreads, scan, {}).tags = threads;
}
void Te::software_pipeline(const TeTensor& tensor, const std::string& axis, int64_t stages) {
  step(StepKind::SoftwarePipeline, tensor, {axis}).value = stages;
}

namespace {

std::string text_of_loops(const language::Kernel& kernel, const language::Schedule& schedule,
                          TargetKind kind, const CompileOptions& options) {
  const Target target{.kind = kind};
  const PassContext context{target, options};
  return ir::print(passes::simplify(build_loops(kernel, schedule, target, options), context));
}

}  // namespace

std::string Te::lowered(TargetKind kind) const {
  return text_of_loops(kernel, schedule, kind, CompileOptions{});
}

std::string Te::automatic(TargetKind kind, const CompileOptions& options) const {
  return text_of_loops(kernel, choose_schedule(kernel, schedule, Target{.kind = kind}, options),
                       kind, options);
}

std::vector<std::string> Te::notes(TargetKind kind) const {
  return build_loops(kernel, schedule, Target{.kind = kind}, CompileOptions{}).notes;
}

void Te::build(TargetKind kind) const {
  build_loops(kernel, schedule, Target{.kind = kind}, CompileOptions{});
}

TeExpr operator+(TeExpr a, TeExpr b) { return a.te->op(Operator::Add, {a, b}); }
TeExpr operator-(TeExpr a, TeExpr b) { return a.te->op(Operator::Sub, {a, b}); }
TeExpr operator*(TeExpr a, TeExpr b) { return a.te->op(Operator::Mul, {a, b}); }
TeExpr operator+(TeExpr a, int64_t b) { return a + a.te->integer(b); }
TeExpr operator-(TeExpr a, int64_t b) { return a - a.te->integer(b); }
TeExpr operator*(TeExpr a, int64_t b) { return a * a.te->integer(b); }

}  // namespace kiln::testing
