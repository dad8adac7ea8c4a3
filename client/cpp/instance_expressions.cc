// Expressions of a definition as expressions of the program, with the leading indices put in front
// of those of each read. What sizes fold to is folded, so that shapes compare as numbers.
//
//   X[k] under leading (b,)  ->  X[b, k]; X without a batch stays X[k]
#include <cmath>

#include <kiln/reducer.h>

#include "client/cpp/fail.h"
#include "client/cpp/instance.h"
#include "client/cpp/nodes.h"
#include "client/cpp/sizes.h"

namespace kiln {
inline namespace client {
namespace detail {

Expr Instance::size(std::uint32_t id) {
  Stage none;
  return expression(id, none);
}

Expr Instance::expression(std::uint32_t id, Stage& stage) {
  if (const auto known = stage.known.find(id); known != stage.known.end()) return known->second;
  const Expr made = build(definition_.expressions(static_cast<int>(id)), stage);
  stage.known.emplace(id, made);
  return made;
}

Expr Instance::build(const v1::Expression& row, Stage& stage) {
  switch (row.kind_case()) {
    case v1::Expression::kInteger:
      return constant(row.integer().value(), type(row.integer().type()));
    case v1::Expression::kFloating: {
      const DType wanted = type(row.floating().type());
      const double value = row.floating().value();
      const bool is_whole = value == std::trunc(value) && std::abs(value) < 0x1p63;
      if (!border::is_float(static_cast<int>(wanted)) && is_whole) {
        return constant(static_cast<std::int64_t>(value), wanted);
      }
      return constant(value, wanted);
    }
    case v1::Expression::kVariable: return binding_.sizes.at(row.variable());
    case v1::Expression::kAxis: return axis(row.axis(), stage);
    case v1::Expression::kOperation: {
      std::vector<Expr> operands;
      for (const std::uint32_t operand : row.operation().operands())
        operands.push_back(expression(operand, stage));
      return folded(row.operation().operator_(), operands);
    }
    case v1::Expression::kCast:
      return cast(expression(row.cast().operand(), stage), type(row.cast().type()));
    case v1::Expression::kRead: return read(row.read(), stage);
    case v1::Expression::kParameter:
      return make_expr(type(row.parameter().type()), ParameterValue{row.parameter().position()});
    case v1::Expression::kReduction: return reduction(row.reduction(), stage);
    default:
      fail_at(binding_.where, "COMPOSITION", "{} has an expression that cannot be composed yet",
              called(binding_.kernel.names.kernel()));
  }
}

Expr Instance::read(const v1::Read& read, Stage& stage) {
  std::vector<Expr> own;
  for (const std::uint32_t index : read.indices())
    own.push_back(expression(index, stage));
  return element(read.tensor(), stage.batch, stage.leading, own);
}

/// The element at its own indices, below the leading indices of its reader.
Expr Instance::element(const v1::TensorId& id, const Shape& batch, const std::vector<Expr>& leading,
                       const std::vector<Expr>& own) {
  const Given& tensor = made_.at(id.stage())[id.output()];
  const Shape& front = batches_[id.stage()];
  const std::size_t skipped = batch.size() - front.size();
  std::vector<Expr> full;
  for (std::size_t d = 0; d < front.size(); ++d) {
    const bool repeated = is_one(front[d]) && !is_one(batch[skipped + d]);
    full.push_back(repeated ? constant(0, int64) : leading[skipped + d]);
  }
  full.insert(full.end(), own.begin(), own.end());
  std::vector<Expr> indices;
  for (const std::size_t d : order(id.stage(), own.size()))
    indices.push_back(full[d]);
  const Expr value = tensor.at(indices);
  if (!tensor.is_number()) return value;
  const v1::Stage& input = definition_.stages(static_cast<int>(id.stage()));
  return cast(value, type(input.placeholder().type()));
}

Expr Instance::reduction(const v1::Reduction& reduction, Stage& stage) {
  std::vector<ReduceAxis> axes;
  for (const std::uint32_t id : reduction.axes()) {
    axis(id, stage);
    axes.emplace_back(stage.reduced.at(id));
  }
  const auto all = [&](const google::protobuf::RepeatedField<std::uint32_t>& ids) {
    std::vector<Expr> result;
    for (const std::uint32_t id : ids)
      result.push_back(expression(id, stage));
    return result;
  };
  Reduced options{.where = {}, .init = all(reduction.init())};
  if (reduction.has_condition()) options.where = expression(reduction.condition(), stage);
  const std::vector<Expr> sources = all(reduction.sources());
  if (!reduction.combiner().empty()) {
    return reduce(reduction.combiner(), sources[0], axes, options);
  }
  return Reducer(reducer(reduction.reducer()))(sources, axes, options)[reduction.output()];
}

std::shared_ptr<const ReducerNode> Instance::reducer(std::uint32_t id) {
  std::shared_ptr<const ReducerNode>& made = reducers_[id];
  if (made) return made;
  const v1::Reducer& row = definition_.reducers(static_cast<int>(id));
  ReducerNode node{.name = "reducer", .types = {}, .identities = {}, .results = {}};
  const v1::SourceMap& names = binding_.kernel.names;
  if (static_cast<int>(id) < names.reducers_size()) {
    const v1::ReducerNames& own = names.reducers(static_cast<int>(id));
    node.name = own.name();
    node.parameters.assign(own.parameters().begin(), own.parameters().end());
  }
  Stage none;
  for (int i = 0; i < row.types_size(); ++i) {
    node.types.push_back(type(row.types(i)));
    node.identities.push_back(expression(row.identities(i), none));
    node.results.push_back(expression(row.results(i), none));
  }
  return made = std::make_shared<const ReducerNode>(std::move(node));
}

/// An axis of the stage, or the reduction axis of that number, made when it is first met.
Expr Instance::axis(std::uint32_t id, Stage& stage) {
  if (const auto known = stage.axes.find(id); known != stage.axes.end()) return known->second;
  const v1::Axis& row = definition_.axes(static_cast<int>(id));
  const Expr minimum = expression(row.minimum(), stage);
  const Expr extent = expression(row.extent(), stage);
  const auto node =
      std::make_shared<const AxisNode>(AxisNode{AxisKind::Reduce, axis_name(id), minimum, extent});
  stage.reduced.emplace(id, node);
  const Expr value = make_expr(int64, AxisValue{node});
  stage.axes.emplace(id, value);
  return value;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
