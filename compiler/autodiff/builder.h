#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/autodiff/polynomial.h"
#include "compiler/language/kernel.h"

namespace kiln::autodiff {

using language::Axis;
using language::AxisId;
using language::AxisKind;
using language::Compute;
using language::Definition;
using language::Expression;
using language::ExprId;
using language::Kernel;
using language::Operator;
using language::Reduction;
using language::SourceMap;
using language::Stage;
using language::StageId;
using language::TensorId;

/// What becomes of axes and reads in a copy of an expression.
struct Substitution {
  std::map<AxisId, ExprId> axes;
  /// How a tensor is read in the copy; nothing: as it is.
  std::function<std::optional<ExprId>(TensorId, const std::vector<ExprId>&)> read;
};

/// Adds to a kernel, whose own tables stay as they are, in front. Expressions are made once each
/// and simplified: constants are folded, index arithmetic is a sum of products, a condition that
/// holds for all values of its axes is `true`.
class Builder {
 public:
  explicit Builder(const Kernel& kernel);

  const Definition& definition() const { return kernel_.definition; }
  const SourceMap& names() const { return kernel_.names; }
  Kernel& kernel() { return kernel_; }

  ExprId integer(int64_t value);
  ExprId number(DType type, double value);
  ExprId boolean(bool value);
  ExprId axis(AxisId id);
  ExprId size(language::VariableId id);
  ExprId op(Operator op, const std::vector<ExprId>& operands);
  ExprId cast(DType type, ExprId operand);
  ExprId read(TensorId tensor, const std::vector<ExprId>& indices);
  ExprId reduction(const Reduction& reduction, DType type);
  ExprId sum(ExprId source, const std::vector<AxisId>& axes);
  /// b where a holds, else 0; b is not computed there.
  ExprId guarded(const std::vector<ExprId>& conditions, ExprId value);

  ExprId add(ExprId a, ExprId b) { return op(Operator::Add, {a, b}); }
  ExprId sub(ExprId a, ExprId b) { return op(Operator::Sub, {a, b}); }
  ExprId mul(ExprId a, ExprId b) { return op(Operator::Mul, {a, b}); }
  ExprId div(ExprId a, ExprId b) { return op(Operator::Div, {a, b}); }
  ExprId neg(ExprId a) { return op(Operator::Negative, {a}); }

  DType type(ExprId expr) const { return definition().expressions[expr].type; }
  template <typename T>
  const T* as(ExprId expr) const {
    return std::get_if<T>(&definition().expressions[expr].node);
  }
  std::optional<bool> as_bool(ExprId expr) const;
  bool is_number(ExprId expr, double value) const;

  /// A copy with axes and reads replaced. Reductions in it get axes of their own.
  ExprId substitute(ExprId expr, const Substitution& substitution);
  /// The same expression as this class writes it.
  ExprId tidied(ExprId expr) { return substitute(expr, {}); }

  Polynomial polynomial(ExprId expr);
  ExprId expression(const Polynomial& p);
  /// Whether p is 0 or more for all sizes and all values of its axes.
  bool is_nonnegative(const Polynomial& p);
  bool is_equal(ExprId a, ExprId b);

  AxisId new_axis(AxisKind kind, ExprId minimum, ExprId extent, const std::string& name);
  AxisId data_axis(ExprId extent, const std::string& name) {
    return new_axis(AxisKind::Data, integer(0), extent, name);
  }
  /// Data axes for a tensor of this shape, named after those of the stage where it has some, else
  /// by the names given.
  std::vector<AxisId> data_axes(TensorId like, const std::map<size_t, std::string>& names = {});
  StageId new_stage(Stage stage, const std::string& name, StageId source);
  TensorId compute(const std::vector<AxisId>& axes, ExprId body, const std::string& name,
                   StageId source) {
    return {new_stage(Compute{axes, {body}}, name, source), 0};
  }
  /// Computed as it stands, even where it is read once only: its axes make it what it is.
  void keep_apart(StageId stage) { apart_.insert(stage); }
  bool is_kept_apart(StageId stage) const { return apart_.contains(stage); }
  bool is_computed(TensorId tensor) const {
    return !std::holds_alternative<language::Placeholder>(definition().stages[tensor.stage]);
  }
  std::vector<ExprId> uses(const std::vector<AxisId>& axes);

  /// Says that an axis has only these values where it is used.
  void restrict_axis(AxisId axis, ExprId minimum, ExprId extent);

  /// Whether an axis is used in an expression, outside of reductions over it.
  bool uses_axis(ExprId expr, AxisId axis) const;
  /// Whether all axes of `other` are used in `expr`.
  bool has_axes_of(ExprId expr, ExprId other) const;
  /// The tensors that an expression reads, in the order of their ids.
  std::vector<TensorId> reads(ExprId expr) const;

 private:
  class Copy;

  /// Calls back with all expressions that one is made of, each once, until the answer is true.
  bool any_part(ExprId expr, const std::function<bool(ExprId)>& found) const;

  ExprId intern(Expression expression);
  std::optional<ExprId> folded(Operator op, const std::vector<ExprId>& operands);
  std::optional<ExprId> folded_float(Operator op, const std::vector<ExprId>& operands);
  std::optional<ExprId> folded_logic(Operator op, const std::vector<ExprId>& operands);
  std::optional<ExprId> folded_index(Operator op, const std::vector<ExprId>& operands);
  std::optional<ExprId> folded_division(Operator op, ExprId a, ExprId b);
  std::optional<bool> decided(Operator op, ExprId a, ExprId b);

  struct Range {
    std::optional<Polynomial> least;
    std::optional<Polynomial> most;
  };
  Range range_of(ExprId atom);
  const Axis& bounds_of(AxisId axis) const;

  /// Ends what takes too long, however it was asked for.
  void count_step() const;

  Kernel kernel_;
  mutable int64_t steps_ = 0;
  std::unordered_map<std::string, ExprId> interned_;
  std::unordered_map<ExprId, Polynomial> polynomials_;
  std::map<AxisId, Axis> restricted_;
  std::set<StageId> apart_;
  std::vector<bool> is_dimension_;  // by size: it is 0 or more
};

}  // namespace kiln::autodiff
