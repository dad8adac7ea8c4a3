// Computes a definition element by element, each when something reads it, by the rules of the
// language alone. Scans run step by step and scatters update by update; all else is a memo by
// element.
//
//   Y[i] = X[i - 1] + X[i]     element(Y, 3)  ->  value_of(body) with i = 3  ->  element(X, 2), ..
#include "compiler/language/evaluate/evaluate.h"

#include <array>
#include <map>
#include <memory>
#include <utility>

#include <fmt/ranges.h>

#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::language {
namespace {

/// Of an operator that is computed whole.
constexpr size_t kMostOperands = 3;

/// A tensor of which some elements are known.
struct Memo {
  HostTensor tensor;
  std::vector<bool> known;
};

class Evaluator {
 public:
  Evaluator(const Definition& definition, const SourceMap& names, std::span<const int64_t> sizes,
            int64_t max_steps, const Rounding& rounding)
      : definition_(definition),
        names_(names),
        sizes_(sizes),
        steps_left_(max_steps),
        rounding_(rounding) {
    axis_values_.resize(definition.axes.size());
    memos_.resize(definition.stages.size());
    for (StageId id = 0; id < definition.stages.size(); ++id) {
      const auto* scan = std::get_if<Scan>(&definition.stages[id]);
      if (scan == nullptr) continue;
      for (uint32_t s = 0; s < scan->state.size(); ++s)
        scan_of_state_[scan->state[s]] = {id, s};
    }
  }

  void give(TensorId tensor, const HostTensor& value) {
    Memo memo{value, {}};
    memo.known.assign(static_cast<size_t>(elements(value.shape)), true);
    place_of(tensor) = std::make_unique<Memo>(std::move(memo));
  }

  int64_t size(ExprId expr) { return value_of(expr).integer; }

  HostTensor whole(TensorId tensor) {
    Memo& memo = memo_of(tensor);
    const int64_t count = elements(memo.tensor.shape);
    for (int64_t position = 0; position < count; ++position)
      element(tensor, position);
    // An update of a tensor without elements is outside of it.
    const auto* scatter = std::get_if<Scatter>(&definition_.stages[tensor.stage]);
    if (scatter != nullptr && count == 0) run_scatter(tensor, *scatter);
    return memo.tensor;
  }

 private:
  static int64_t elements(const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t extent : shape)
      count *= extent;
    return count;
  }

  /// The tensor's memory, made at its first use: shapes may be large, and not all stages are
  /// needed.
  Memo& memo_of(TensorId tensor) {
    if (const std::unique_ptr<Memo>& found = place_of(tensor)) return *found;
    Memo memo;
    memo.tensor.type = definition_.type_of(tensor);
    for (const ExprId extent : definition_.shape_of(tensor)) {
      memo.tensor.shape.push_back(std::max<int64_t>(value_of(extent).integer, 0));
    }
    const int64_t count = elements(memo.tensor.shape);
    memo.tensor.bytes.resize(static_cast<size_t>(count * size_of(memo.tensor.type)));
    memo.known.assign(static_cast<size_t>(count), false);
    std::unique_ptr<Memo>& place = place_of(tensor);
    place = std::make_unique<Memo>(std::move(memo));
    return *place;
  }

  std::unique_ptr<Memo>& place_of(TensorId tensor) {
    std::vector<std::unique_ptr<Memo>>& of_stage = memos_[tensor.stage];
    if (tensor.output >= of_stage.size()) of_stage.resize(tensor.output + 1);
    return of_stage[tensor.output];
  }

  Scalar element(TensorId tensor, int64_t position) {
    Memo& memo = memo_of(tensor);
    if (memo.known[position]) return read_element(memo.tensor, position);
    const Stage& stage = definition_.stages[tensor.stage];
    if (const auto* scan = std::get_if<Scan>(&stage)) {
      run_scan(tensor.stage, *scan);
    } else if (const auto* scatter = std::get_if<Scatter>(&stage)) {
      run_scatter(tensor, *scatter);
    } else {
      const auto& compute = std::get<Compute>(stage);
      const Scalar value = body_at(compute, tensor.output, memo.tensor.shape, position);
      write_element(memo.tensor, position, value);
      memo.known[position] = true;
    }
    KILN_CHECK(memo.known[position]);
    return read_element(memo.tensor, position);
  }

  Scalar body_at(const Compute& compute, uint32_t output, const std::vector<int64_t>& shape,
                 int64_t position) {
    for (size_t d = shape.size(); d-- > 0;) {
      axis_values_[compute.axes[d]] = position % shape[d];
      position /= shape[d];
    }
    return value_of(compute.bodies[output]);
  }

  /// All steps in order, so that a step finds the earlier ones and no recursion grows with time.
  void run_scan(StageId id, const Scan& scan) {
    const int64_t first = value_of(definition_.axes[scan.axis].minimum).integer;
    const int64_t all = first + value_of(definition_.axes[scan.axis].extent).integer;
    for (int64_t step = 0; step < all; ++step) {
      const int64_t t = scan.reverse ? all - 1 - step : step;
      for (uint32_t s = 0; s < scan.state.size(); ++s) {
        if (step >= first) {
          copy_step({id, s}, scan.dimension, t, scan.update[s], t);
        } else {
          copy_step({id, s}, scan.dimension, t, scan.init[s], scan.reverse ? first - 1 - step : t);
        }
      }
    }
  }

  /// All elements of `to` at index `t` of a dimension, from those of `from` at `source_t`.
  void copy_step(TensorId to, uint32_t dimension, int64_t t, TensorId from, int64_t source_t) {
    Memo& memo = memo_of(to);
    const std::vector<int64_t>& shape = memo.tensor.shape;
    if (t >= shape[dimension]) return;
    int64_t inner = 1;
    for (size_t d = dimension + 1; d < shape.size(); ++d)
      inner *= shape[d];
    const int64_t rows = elements(shape) / shape[dimension];
    const int64_t source_extent = memo_of(from).tensor.shape[dimension];
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t place = (i / inner * shape[dimension] + t) * inner + i % inner;
      const int64_t source = (i / inner * source_extent + source_t) * inner + i % inner;
      write_element(memo.tensor, place, element(from, source));
      memo.known[place] = true;
    }
  }

  void run_scatter(TensorId tensor, const Scatter& scatter) {
    const HostTensor base = whole(scatter.base);
    Memo& memo = memo_of(tensor);
    // A scatter is whole as soon as it is begun: an update may go to any element.
    memo.tensor.bytes = base.bytes;
    apply_updates(tensor, scatter, 0);
    memo.known.assign(memo.known.size(), true);
  }

  void apply_updates(TensorId tensor, const Scatter& scatter, size_t depth) {
    if (depth < scatter.axes.size()) {
      const AxisId axis = scatter.axes[depth];
      const int64_t extent = value_of(definition_.axes[axis].extent).integer;
      for (int64_t i = 0; i < extent; ++i) {
        axis_values_[axis] = i;
        apply_updates(tensor, scatter, depth + 1);
      }
      return;
    }
    const int64_t position = position_of(tensor, scatter.indices);
    const Scalar update = value_of(scatter.update);
    HostTensor& result = memo_of(tensor).tensor;
    const Scalar both[] = {read_element(result, position), update};
    const bool combines = scatter.combiner.has_value();
    write_element(result, position, combines ? apply_operator(*scatter.combiner, both) : update);
  }

  Scalar value_of(ExprId id) {
    // Each expression counts, since a definition of a few lines may take years.
    if (--steps_left_ < 0) {
      fail(ErrorKind::ResourceExhausted, "EVALUATION_LIMIT",
           "evaluating {} element by element takes too many steps", called(names_.kernel));
    }
    const Expression& expression = definition_.expressions[id];
    return std::visit([&](const auto& node) { return value(node, expression.type); },
                      expression.node);
  }

  Scalar rounded(const Scalar& value) const { return rounding_ ? rounding_(value) : value; }

  Scalar value(const IntegerConstant& node, DType type) { return Scalar::of_int(type, node.value); }
  Scalar value(const FloatConstant& node, DType type) { return Scalar::of_float(type, node.value); }
  Scalar value(const VariableUse& node, DType type) {
    return Scalar::of_int(type, sizes_[node.variable]);
  }
  Scalar value(const AxisUse& node, DType type) {
    return Scalar::of_int(type, axis_values_[node.axis]);
  }
  Scalar value(const CastTo& node, DType type) {
    return rounded(convert(type, value_of(node.operand)));
  }

  Scalar value(const Operation& node, DType type) {
    // The branch that is not taken is not computed: it may read outside of its tensor.
    if (node.op == Operator::IfThenElse) {
      return value_of(node.operands[value_of(node.operands[0]).integer != 0 ? 1 : 2]);
    }
    std::array<Scalar, kMostOperands> operands;
    KILN_CHECK(node.operands.size() <= operands.size());
    for (size_t i = 0; i < node.operands.size(); ++i)
      operands[i] = value_of(node.operands[i]);
    return rounded(apply_operator(node.op, {operands.data(), node.operands.size()}));
  }

  Scalar value(const Read& node, DType type) {
    TensorId tensor = node.tensor;
    // A state is the scan at its earlier steps, which run_scan() has filled in.
    if (!scan_of_state_.empty()) {
      const auto state = scan_of_state_.find(tensor);
      if (state != scan_of_state_.end()) tensor = state->second;
    }
    // A stage never needs itself, so computing the element leaves the axes of this one alone.
    return element(tensor, position_of(tensor, node.indices));
  }

  int64_t position_of(TensorId tensor, const std::vector<ExprId>& indices) {
    const std::vector<int64_t>& shape = memo_of(tensor).tensor.shape;
    int64_t position = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t index = value_of(indices[d]).integer;
      if (index < 0 || index >= shape[d]) refuse_position(tensor, indices);
      position = position * shape[d] + index;
    }
    return position;
  }

  [[noreturn]] void refuse_position(TensorId tensor, const std::vector<ExprId>& indices) {
    std::vector<int64_t> values;
    for (const ExprId index : indices)
      values.push_back(value_of(index).integer);
    fail(ErrorKind::InvalidArgument, "INDEX_OUT_OF_RANGE",
         "{}[{}] is outside of {}, which has shape ({})", names_.tensor_name(definition_, tensor),
         fmt::join(values, ", "), names_.tensor_name(definition_, tensor),
         fmt::join(memo_of(tensor).tensor.shape, ", "));
  }

  Scalar value(const ReducerParameter& node, DType type) { return parameters_[node.position]; }

  Scalar value(const Reduction& node, DType type) {
    std::vector<Scalar> totals;
    for (const ExprId init : node.init)
      totals.push_back(value_of(init));
    if (node.init.empty() && node.combiner) totals = {identity_of(*node.combiner, type)};
    if (node.init.empty() && !node.combiner) {
      for (const ExprId identity : definition_.reducers[node.reducer].identities)
        totals.push_back(value_of(identity));
    }
    reduce(node, 0, totals);
    return totals[node.output];
  }

  void combine(const Reduction& node, std::vector<Scalar>& totals) {
    if (node.condition && value_of(*node.condition).integer == 0) return;
    if (node.combiner) {
      const Scalar both[] = {totals[0], value_of(node.sources[0])};
      totals[0] = rounded(apply_operator(row_of(*node.combiner).op, both));
      return;
    }
    // All values are read before one is replaced, as the language says of reducers.
    std::vector<Scalar> both = totals;
    for (const ExprId source : node.sources)
      both.push_back(value_of(source));
    parameters_ = std::move(both);
    for (size_t i = 0; i < totals.size(); ++i)
      totals[i] = value_of(definition_.reducers[node.reducer].results[i]);
  }

  void reduce(const Reduction& node, size_t depth, std::vector<Scalar>& totals) {
    if (depth == node.axes.size()) return combine(node, totals);
    const AxisId axis = node.axes[depth];
    const int64_t minimum = value_of(definition_.axes[axis].minimum).integer;
    const int64_t extent = value_of(definition_.axes[axis].extent).integer;
    for (int64_t i = 0; i < extent; ++i) {
      axis_values_[axis] = minimum + i;
      reduce(node, depth + 1, totals);
    }
  }

  const Definition& definition_;
  const SourceMap& names_;
  std::span<const int64_t> sizes_;
  int64_t steps_left_;
  const Rounding& rounding_;
  std::vector<int64_t> axis_values_;
  std::vector<Scalar> parameters_;  // of the reducer whose results are being computed
  std::map<TensorId, TensorId> scan_of_state_;
  std::vector<std::vector<std::unique_ptr<Memo>>> memos_;  // by stage and output
};

}  // namespace

std::vector<HostTensor> evaluate(const Definition& definition, const SourceMap& names,
                                 std::span<const int64_t> sizes, std::span<const HostTensor> inputs,
                                 int64_t max_steps, const Rounding& rounding) {
  KILN_CHECK(sizes.size() == definition.variables.size());
  Evaluator evaluator(definition, names, sizes, max_steps, rounding);
  size_t next = 0;
  for (const TensorId parameter : definition.parameters) {
    if (definition.is_output(parameter)) continue;
    KILN_CHECK(next < inputs.size());
    evaluator.give(parameter, inputs[next++]);
  }
  std::vector<HostTensor> outputs;
  for (const TensorId parameter : definition.parameters) {
    if (definition.is_output(parameter)) outputs.push_back(evaluator.whole(parameter));
  }
  return outputs;
}

int64_t evaluate_size(const Definition& definition, ExprId expr, std::span<const int64_t> sizes) {
  const SourceMap no_names;
  return Evaluator(definition, no_names, sizes, INT64_MAX, nullptr).size(expr);
}

}  // namespace kiln::language
