// The adjoint of a scatter: an update gets that of the element it went to, and the base what no
// update has replaced.
//
//   Y = scatter_add(B, idx, U)    B_grad[x] = Y_grad[x], U_grad[i] = Y_grad[idx[i]]
//   Y = scatter(B, idx, U)        the same, where update i was the last at its element, or none was
//   Y = scatter_max(B, idx, U)    what equals the result shares its adjoint
#include "compiler/autodiff/differentiator.h"

namespace kiln::autodiff {
namespace {

using namespace language;

/// What base and update get of the adjoint of the element that they may have become.
struct Shares {
  ExprId base;
  ExprId update;
};

class ScatterAdjoint {
 public:
  ScatterAdjoint(Builder& b, Seeds& seeds, StageId id, const Scatter& scatter)
      : b_(b), result_{id, 0}, scatter_(scatter), base_axes_(b.data_axes(result_)) {
    element_ = b_.uses(base_axes_);
    for (const ExprId index : scatter.indices)
      target_.push_back(b_.tidied(index));
    update_ = b_.tidied(scatter.update);
    base_seed_ = seeds.read(result_, element_);
    update_seed_ = seeds.read(result_, target_);
  }

  std::vector<Contribution> run(Activity& activity) {
    const Shares shares = scatter_.combiner == Operator::Add ? Shares{base_seed_, update_seed_}
                          : scatter_.combiner                ? shares_of_extreme()
                                                             : shares_of_last();
    std::vector<Contribution> found;
    if (activity.is_active(scatter_.base)) {
      found.push_back({scatter_.base, element_, base_axes_, {}, shares.base, {}});
    }
    const Node updates{result_, scatter_.axes, update_, {}, false};
    const std::vector<Contribution> more = sweep(b_, activity, updates, shares.update);
    found.insert(found.end(), more.begin(), more.end());
    return found;
  }

 private:
  ExprId zero() { return b_.number(b_.type(update_), 0); }

  /// How many are equal to the result at each element: base and updates.
  Shares shares_of_extreme() {
    const auto equals = [&](ExprId x, const std::vector<ExprId>& at, ExprId yes) {
      return b_.op(Operator::Select,
                   {b_.op(Operator::Equal, {x, b_.read(result_, at)}), yes, zero()});
    };
    const ExprId one = b_.number(b_.type(update_), 1);
    const TensorId ties = own(equals(b_.read(scatter_.base, element_), element_, one),
                              equals(update_, target_, one), Operator::Add, "_ties");
    return {equals(b_.read(scatter_.base, element_), element_,
                   b_.div(base_seed_, b_.read(ties, element_))),
            equals(update_, target_, b_.div(update_seed_, b_.read(ties, target_)))};
  }

  /// Which update was the last at each element, by its place in their order; -1 where none was.
  Shares shares_of_last() {
    ExprId place = b_.integer(0);
    for (const AxisId axis : scatter_.axes)
      place = b_.add(b_.mul(place, b_.tidied(b_.definition().axes[axis].extent)), b_.axis(axis));
    const TensorId last = own(b_.integer(-1), place, std::nullopt, "_last");
    const auto where = [&](ExprId a, ExprId b, ExprId yes) {
      return b_.op(Operator::Select, {b_.op(Operator::Equal, {a, b}), yes, zero()});
    };
    return {where(b_.read(last, element_), b_.integer(-1), base_seed_),
            where(b_.read(last, target_), place, update_seed_)};
  }

  /// A scatter to the same elements, with axes of its own.
  TensorId own(ExprId base, ExprId update, std::optional<Operator> combiner,
               const std::string& name) {
    const StageId source = result_.stage;
    const std::string whole = b_.names().stages[source] + name;
    Substitution of_base;
    std::vector<AxisId> axes;
    for (const AxisId axis : base_axes_) {
      axes.push_back(
          b_.data_axis(b_.definition().axes[axis].extent, std::string(b_.names().axes[axis])));
      of_base.axes[axis] = b_.axis(axes.back());
    }
    Scatter scatter{.axes = {}, .base = {}, .indices = {}, .update = 0, .combiner = combiner};
    scatter.base = b_.compute(axes, b_.substitute(base, of_base), whole + "_base", source);
    Substitution of_update;
    for (const AxisId axis : scatter_.axes) {
      scatter.axes.push_back(b_.data_axis(b_.tidied(b_.definition().axes[axis].extent),
                                          std::string(b_.names().axes[axis])));
      of_update.axes[axis] = b_.axis(scatter.axes.back());
    }
    for (const ExprId index : target_)
      scatter.indices.push_back(b_.substitute(index, of_update));
    scatter.update = b_.substitute(update, of_update);
    return {b_.new_stage(scatter, whole, source), 0};
  }

  Builder& b_;
  const TensorId result_;
  const Scatter& scatter_;
  const std::vector<AxisId> base_axes_;
  std::vector<ExprId> element_;  // of the result, over base_axes_
  std::vector<ExprId> target_;   // of an update, over the scatter's axes
  ExprId update_ = 0;
  ExprId base_seed_ = 0;
  ExprId update_seed_ = 0;
};

}  // namespace

void Differentiator::visit(StageId id, const Scatter& scatter) {
  adjoint_of({id, 0});
  give(ScatterAdjoint(b_, seeds_, id, scatter).run(active_));
}

}  // namespace kiln::autodiff
