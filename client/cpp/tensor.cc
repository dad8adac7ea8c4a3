// Makes stages: shapes and names checked, the body called once with its axes. A stage refers to
// what it reads, so the program's values are the graph.
#include <algorithm>
#include <optional>

#include <kiln/tensor.h>

#include "client/cpp/fail.h"
#include "client/cpp/nodes.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

/// The longest chain of stages that a stage reads.
struct StagesBehind {
  static int of(const std::vector<Expr>& exprs) {
    int most = 0;
    for (const Expr& expr : exprs)
      most = std::max(most, expr.node()->stages);
    return most;
  }
  int operator()(const PlaceholderStage&) const { return 0; }
  int operator()(const ComputeStage& stage) const { return of(stage.bodies); }
  int operator()(const ScatterStage& stage) const {
    return std::max({stage.base.stage()->stages, of(stage.indices), of({stage.update})});
  }
  int operator()(const ScanStage& stage) const {
    int most = 0;
    for (const std::vector<Tensor>* tensors : {&stage.init, &stage.update, &stage.inputs}) {
      for (const Tensor& tensor : *tensors)
        most = std::max(most, tensor.stage()->stages);
    }
    return most;
  }
};

/// The stage, with the length of the chain behind it checked at the line that makes it.
std::shared_ptr<const StageNode> make_stage(std::string name, const SourceLocation& where,
                                            decltype(StageNode::value) value) {
  const int stages = std::visit(StagesBehind(), value) + 1;
  if (stages > kMaximumStages) {
    at_line(where, [&] {
      fail(ErrorKind::ResourceExhausted, "LIMIT",
           "{} ends a chain of {} stages; the limit is {}: let another kernel begin at one of them",
           name, stages, kMaximumStages);
    });
  }
  return std::make_shared<const StageNode>(
      StageNode{std::move(name), where.file_name(), where.line(), std::move(value), {}, stages});
}

/// Dimensions as int64 expressions.
Shape checked_shape(Shape shape, const std::string& tensor, const SourceLocation& where) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    shape[d] = at_line(
        where, [&] { return to_index(shape[d], fmt::format("dimension {} of {}", d, tensor)); });
    const std::optional<std::int64_t> size = as_integer(shape[d]);
    if (size && *size < 0) {
      fail_at(where, "SHAPE", "{}: dimension {} is {}, but must be 0 or more", tensor, d, *size);
    }
  }
  return shape;
}

/// One axis a dimension, from 0: named by the caller, else i0, i1, ...
std::vector<Axis> data_axes(const Shape& shape, const Names& names, const SourceLocation& where) {
  if (!names.axes.empty() && names.axes.size() != shape.size()) {
    fail_at(where, "AXIS_NAMES", "{} has {} dimension{}, but {} name{} for its axes", names.tensor,
            shape.size(), shape.size() == 1 ? "" : "s", names.axes.size(),
            names.axes.size() == 1 ? "" : "s");
  }
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::string name = names.axes.empty() ? fmt::format("i{}", d) : names.axes[d];
    axes.emplace_back(std::make_shared<const AxisNode>(
        AxisNode{AxisKind::Data, std::move(name), constant(0, int64), shape[d]}));
  }
  return axes;
}

/// One state of a scan, checked as far as no size has to be known.
void check_state(const std::string& scan, const Tensor& init, const Tensor& update,
                 const Tensor& state, ScanTime time, const SourceLocation& where) {
  const std::string names =
      fmt::format("init {}, update {} and state {}", init.name(), update.name(), state.name());
  if (!std::holds_alternative<PlaceholderStage>(state.stage()->value)) {
    fail_at(where, "SCAN_STATE", "scan {}: state {} must be a placeholder, but is computed", scan,
            state.name());
  }
  if (init.dtype() != state.dtype() || update.dtype() != state.dtype()) {
    fail_at(where, "SCAN_TYPE", "scan {}: {} must have one dtype, but are {}, {} and {}", scan,
            names, name_of(init.dtype()), name_of(update.dtype()), name_of(state.dtype()));
  }
  const std::size_t rank = state.shape().size();
  if (rank == 0 || init.shape().size() != rank || update.shape().size() != rank) {
    fail_at(
        where, "SCAN_SHAPE",
        "scan {}: {} must have the same number of dimensions, at least 1, but have {}, {} and {}",
        scan, names, init.shape().size(), update.shape().size(), rank);
  }
  if (time.dimension >= rank) {
    fail_at(where, "SCAN_SHAPE",
            "scan {}: state {} has {} dimension{}, so time cannot be dimension {}", scan,
            state.name(), rank, rank == 1 ? "" : "s", time.dimension);
  }
}

/// From the first step that init does not give to the last of the update.
Axis time_axis(const Tensor& init, const Tensor& update, const std::string& scan,
               unsigned dimension) {
  const Expr minimum = init.shape()[dimension];
  const Expr end = update.shape()[dimension];
  const std::optional<std::int64_t> from = as_integer(minimum);
  const std::optional<std::int64_t> to = as_integer(end);
  const Expr extent = from && to ? constant(*to - *from, int64) : end - minimum;
  return Axis(
      std::make_shared<const AxisNode>(AxisNode{AxisKind::Time, scan + ".idx", minimum, extent}));
}

std::vector<Tensor> outputs_of(const std::shared_ptr<const StageNode>& stage, std::size_t count) {
  std::vector<Tensor> tensors;
  for (std::size_t output = 0; output < count; ++output) {
    tensors.emplace_back(stage, static_cast<unsigned>(output));
  }
  return tensors;
}

/// Refuses tensors of other stages, naming what was asked for.
const ComputeStage& compute_of(const Tensor& tensor, const char* what,
                               const SourceLocation& where) {
  const auto* stage = std::get_if<ComputeStage>(&tensor.stage()->value);
  if (stage == nullptr) {
    fail_at(where, "NOT_COMPUTED", "{} is not made by compute, so it has no {}", tensor.name(),
            what);
  }
  return *stage;
}

}  // namespace

std::vector<Tensor> compute(Shape shape, const Bodies& bodies, int takes, Names names,
                            SourceLocation where) {
  shape = checked_shape(std::move(shape), names.tensor, where);
  if (takes >= 0 && static_cast<std::size_t>(takes) != shape.size()) {
    fail_at(where, "BODY_ARITY", "{} has {} dimension{}, but its body takes {} {}", names.tensor,
            shape.size(), shape.size() == 1 ? "" : "s", takes, takes == 1 ? "index" : "indices");
  }
  ComputeStage stage{.axes = data_axes(shape, names, where), .bodies = {}, .reduce_axes = {}};
  std::vector<Expr> indices;
  for (const Axis& axis : stage.axes) {
    indices.push_back(make_expr(int64, AxisValue{axis.node()}));
  }
  for (const Expr& body : at_line(where, [&] { return bodies(indices); }))
    // A number of the program takes the type that it has by itself.
    stage.bodies.push_back(cast(body, body.dtype()));
  if (stage.bodies.empty()) {
    fail_at(where, "BODY_ARITY", "the body of {} gives no value for {} indices", names.tensor,
            shape.size());
  }
  stage.reduce_axes = reduced_axes(stage.bodies);
  const std::size_t count = stage.bodies.size();
  return outputs_of(make_stage(std::move(names.tensor), where, std::move(stage)), count);
}

std::vector<Expr> to_bodies(Update update) {
  std::vector<Expr> bodies = std::move(update.indices);
  bodies.push_back(std::move(update.value));
  return bodies;
}

Tensor scatter(std::string combiner, const Tensor& base, Shape shape, const Bodies& bodies,
               int takes, Names names, SourceLocation where) {
  shape = checked_shape(std::move(shape), names.tensor, where);
  if (takes >= 0 && static_cast<std::size_t>(takes) != shape.size()) {
    fail_at(where, "BODY_ARITY", "{} runs over {} axes, but its body takes {} indices",
            names.tensor, shape.size(), takes);
  }
  const std::vector<Axis> axes = data_axes(shape, names, where);
  std::vector<Expr> indices;
  indices.reserve(axes.size());
  for (const Axis& axis : axes) {
    indices.push_back(make_expr(int64, AxisValue{axis.node()}));
  }
  std::vector<Expr> places = at_line(where, [&] { return bodies(indices); });
  const std::size_t rank = base.shape().size();
  if (places.size() != rank + 1) {
    fail_at(where, "SCATTER_RANK", "{} has {} dimension{}, but the body of {} gives {} {}",
            base.name(), rank, rank == 1 ? "" : "s", names.tensor,
            places.empty() ? 0 : places.size() - 1, places.size() == 2 ? "index" : "indices");
  }
  Expr update = is_literal(places.back()) ? cast(places.back(), base.dtype()) : places.back();
  if (update.dtype() != base.dtype()) {
    fail_at(where, "SCATTER_TYPE", "the update of {} is {}, but {} is {}; cast it", names.tensor,
            name_of(update.dtype()), base.name(), name_of(base.dtype()));
  }
  places.pop_back();
  at_line(where, [&] {
    for (std::size_t d = 0; d < rank; ++d)
      places[d] = to_index(places[d], fmt::format("index {} of {}", d, names.tensor));
  });
  return Tensor(make_stage(std::move(names.tensor), where,
                           ScatterStage{axes, base, std::move(places), std::move(update),
                                        std::move(combiner)}),
                0);
}

}  // namespace detail

Shape Tensor::shape() const {
  if (const auto* placeholder = std::get_if<detail::PlaceholderStage>(&stage_->value)) {
    return placeholder->shape;
  }
  if (const auto* scan = std::get_if<detail::ScanStage>(&stage_->value)) {
    return scan->state[output_].shape();
  }
  if (const auto* scatter = std::get_if<detail::ScatterStage>(&stage_->value)) {
    return scatter->base.shape();
  }
  Shape shape;
  for (const Axis& axis : std::get<detail::ComputeStage>(stage_->value).axes) {
    if (!axis.node()->extent) {
      detail::fail(ErrorKind::Unsupported, "STEP_SHAPE",
                   "{} is made by a step, so its shape is known to the service alone", name());
    }
    shape.push_back(*axis.node()->extent);
  }
  return shape;
}

DType Tensor::dtype() const {
  if (const auto* placeholder = std::get_if<detail::PlaceholderStage>(&stage_->value)) {
    return placeholder->type;
  }
  if (const auto* scan = std::get_if<detail::ScanStage>(&stage_->value)) {
    return scan->state[output_].dtype();
  }
  if (const auto* scatter = std::get_if<detail::ScatterStage>(&stage_->value)) {
    return scatter->base.dtype();
  }
  return std::get<detail::ComputeStage>(stage_->value).bodies[output_].dtype();
}

std::string Tensor::name() const {
  if (!stage_->tensor_names.empty()) return stage_->tensor_names[output_];
  std::size_t outputs = 1;
  if (const auto* scan = std::get_if<detail::ScanStage>(&stage_->value)) {
    outputs = scan->state.size();
  } else if (const auto* compute = std::get_if<detail::ComputeStage>(&stage_->value)) {
    outputs = compute->bodies.size();
  }
  return outputs == 1 ? stage_->name : fmt::format("{}.v{}", stage_->name, output_);
}

Expr Tensor::read(std::vector<Expr> indices) const {
  const Shape sizes = shape();
  if (indices.size() != sizes.size()) {
    detail::fail(ErrorKind::InvalidArgument, "INDEX_COUNT",
                 "tensor {} has {} dimension{}, but got {} ind{}", name(), sizes.size(),
                 sizes.size() == 1 ? "" : "s", indices.size(), indices.size() == 1 ? "ex" : "ices");
  }
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    indices[d] = detail::to_index(indices[d], fmt::format("index {} of tensor {}", d, name()));
    const std::optional<std::int64_t> index = detail::as_integer(indices[d]);
    const std::optional<std::int64_t> size = detail::as_integer(sizes[d]);
    if (index && (*index < 0 || (size && *index >= *size))) {
      detail::fail(ErrorKind::InvalidArgument, "INDEX_RANGE",
                   "index {} of tensor {} is out of range: dimension {} is {}", *index, name(), d,
                   detail::size_text(sizes[d]));
    }
  }
  return detail::make_expr(dtype(), detail::ReadValue{*this, std::move(indices)});
}

std::vector<Axis> Tensor::axes(SourceLocation where) const {
  const auto* scatter = std::get_if<detail::ScatterStage>(&stage_->value);
  return scatter != nullptr ? scatter->axes : detail::compute_of(*this, "axes", where).axes;
}

Axis Tensor::axis(std::size_t dimension, SourceLocation where) const {
  const std::vector<Axis> all = axes(where);
  if (dimension >= all.size()) {
    detail::fail_at(where, "NO_AXIS", "{} has {} ax{}s, so there is no axis {}", name(), all.size(),
                    all.size() == 1 ? "i" : "e", dimension);
  }
  return all[dimension];
}

std::vector<Axis> Tensor::reduce_axes(SourceLocation where) const {
  return detail::compute_of(*this, "reduction axes", where).reduce_axes;
}

Axis Tensor::scan_axis(SourceLocation where) const {
  const auto* scan = std::get_if<detail::ScanStage>(&stage_->value);
  if (scan == nullptr) {
    detail::fail_at(where, "NOT_A_SCAN", "{} is not made by scan, so it has no scan axis", name());
  }
  return scan->axis;
}

Tensor placeholder(Shape shape, DType type, Names names, SourceLocation where) {
  shape = detail::checked_shape(std::move(shape), names.tensor, where);
  return Tensor(detail::make_stage(std::move(names.tensor), where,
                                   detail::PlaceholderStage{type, std::move(shape)}),
                0);
}

std::vector<Tensor> scan(const std::vector<Tensor>& init, const std::vector<Tensor>& update,
                         const std::vector<Tensor>& state, std::vector<Tensor> inputs, Names names,
                         ScanTime time, SourceLocation where) {
  if (state.empty() || init.size() != state.size() || update.size() != state.size()) {
    detail::fail_at(
        where, "SCAN_COUNTS",
        "scan {}: init, update and state must be lists of one length, but have {}, {} and "
        "{} tensors",
        names.tensor, init.size(), update.size(), state.size());
  }
  for (std::size_t s = 0; s < state.size(); ++s) {
    detail::check_state(names.tensor, init[s], update[s], state[s], time, where);
  }
  detail::ScanStage stage{
      .axis = detail::time_axis(init[0], update[0], names.tensor, time.dimension),
      .time = time,
      .init = init,
      .update = update,
      .state = state,
      .inputs = std::move(inputs)};
  return detail::outputs_of(detail::make_stage(std::move(names.tensor), where, std::move(stage)),
                            state.size());
}

Tensor scan(const Tensor& init, const Tensor& update, const Tensor& state,
            std::vector<Tensor> inputs, Names names, ScanTime time, SourceLocation where) {
  return scan(std::vector<Tensor>{init}, std::vector<Tensor>{update}, std::vector<Tensor>{state},
              std::move(inputs), std::move(names), time, where)
      .front();
}

}  // namespace client
}  // namespace kiln
