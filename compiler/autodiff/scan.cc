// Backpropagation through time. The states are stored: they are the scan's results, so what the
// cell computed at step t is a tensor over all steps, computed from them without a recurrence. The
// adjoints of the states are a scan in the other direction, whose cell is the adjoint of the cell;
// all else follows from them for all steps at once, so the gradient of a weight is one contraction
// over time.
//
//   H[t] = tanh(sum[k](W[j, k]*H[t - 1, k]) + X[t])
//     Q[s] = the cell at t = s + 1, of H[t - 1] and X[t]
//     L[t] = H_given[t] + sum[j](L[t + 1, j]*(1 - Q[t]^2)*W[j, k])      in reverse
//     W_grad[j, k] = sum[s](Q_grad[s, j]*H[s, k])
//
// Of initial steps there may be several, and a step may read several of those before it ("lags"):
// then the adjoints of the cell are computed for each lag.
#include "compiler/autodiff/scan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "compiler/autodiff/accumulate.h"
#include "compiler/autodiff/lift.h"
#include "compiler/language/check/linear.h"
#include "compiler/language/check/time_dimensions.h"
#include "runtime/core/error.h"

namespace kiln::autodiff {
namespace {

using namespace language;

class ScanAdjoint {
 public:
  ScanAdjoint(Builder& b, Seeds& seeds, Activity& activity, StageId id,
              const std::vector<StageId>& cell, const std::map<uint32_t, TensorId>& given)
      : b_(b),
        seeds_(seeds),
        active_(activity),
        id_(id),
        scan_(std::get<Scan>(b.definition().stages[id])),
        cell_(cell),
        given_(given),
        name_(b.names().stages[id]) {
    const std::vector<ExprId> shape = b.definition().shape_of(scan_.state[0]);
    all_steps_ = b.tidied(shape[scan_.dimension]);
    initial_ =
        *constant_value(b.definition(), b.definition().shape_of(scan_.init[0])[scan_.dimension]);
    times_ = time_dimensions(b.definition());
  }

  ScanAdjoints run() {
    clone_cell();
    find_needed();
    ScanAdjoints result;
    if (!lags_.empty()) {
      make_scan(result);
    } else {
      for (const auto& [s, tensor] : given_)
        result.of_output[s] = {tensor};
    }
    give_to_inits(result);
    for (auto& [tensor, found] : to_cell_)
      result.contributions.insert(result.contributions.end(), found.begin(), found.end());
    result.contributions.insert(result.contributions.end(), outside_.begin(), outside_.end());
    result.constants = constants_;
    return result;
  }

 private:
  /// A stage of the cell at all steps after the initial ones, and which of its axes is time.
  struct Step {
    Node node;
    size_t time = 0;
  };

  /// Steps of the cell are counted from 0; the scan's own index at the first.
  int64_t first() const { return scan_.reverse ? 0 : initial_; }
  /// What is added to a step's index in time for what it reads `lag` steps before.
  int64_t back(int64_t lag) const { return scan_.reverse ? lag : -lag; }
  ExprId plus(ExprId a, int64_t by) { return b_.add(a, b_.integer(by)); }

  void clone_cell() {
    const ExprId steps = plus(all_steps_, -initial_);
    std::vector<Step> forward;
    for (const StageId stage : cell_) {
      const Compute compute = std::get<Compute>(b_.definition().stages[stage]);
      const auto time = static_cast<size_t>(times_[stage]);
      Substitution own;
      Compute copy;
      for (size_t d = 0; d < compute.axes.size(); ++d) {
        const Axis bounds = b_.definition().axes[compute.axes[d]];
        copy.axes.push_back(b_.data_axis(d == time ? steps : b_.tidied(bounds.extent),
                                         std::string(b_.names().axes[compute.axes[d]])));
        const ExprId use = b_.axis(copy.axes.back());
        own.axes[compute.axes[d]] = d == time ? plus(use, first()) : use;
      }
      own.read = [this](TensorId tensor, const std::vector<ExprId>& indices) {
        return read_stored(tensor, indices);
      };
      for (const ExprId body : compute.bodies)
        copy.bodies.push_back(b_.substitute(body, own));
      const StageId cloned =
          b_.new_stage(copy, std::string(b_.names().stages[stage]) + "_steps", stage);
      clones_[stage] = cloned;
      for (uint32_t output = 0; output < copy.bodies.size(); ++output)
        forward.push_back({{{cloned, output}, copy.axes, copy.bodies[output], {}}, time});
    }
    for (auto step = forward.rbegin(); step != forward.rend(); ++step)
      lift(*step);
    // Depends on the states, which are active, or on parts, which come behind their readers.
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (active_.is_active(step->node.body)) active_.add(step->node.tensor);
    }
  }

  std::optional<ExprId> read_stored(TensorId tensor, const std::vector<ExprId>& indices) {
    const auto state = std::ranges::find(scan_.state, tensor);
    if (state != scan_.state.end())
      return b_.read({id_, static_cast<uint32_t>(state - scan_.state.begin())}, indices);
    const auto clone = clones_.find(tensor.stage);
    if (clone == clones_.end()) return std::nullopt;
    std::vector<ExprId> all = indices;
    const auto time = static_cast<size_t>(times_[tensor.stage]);
    all[time] = plus(all[time], -first());
    return b_.read({clone->second, tensor.output}, all);
  }

  void lift(Step step) {
    const std::vector<Node> parts = lift_reductions(b_, step.node);
    const AxisId time = step.node.axes[step.time];
    steps_.push_back(step);
    std::map<AxisId, AxisId> stands_for;
    for (const Node& part : parts) {
      std::optional<size_t> at;
      for (size_t d = 0; d < part.axes.size(); ++d) {
        AxisId origin = part.origin[d];
        while (stands_for.contains(origin))
          origin = stands_for[origin];
        stands_for[part.axes[d]] = origin;
        if (origin == time) at = d;
      }
      if (at) {
        steps_.push_back({part, *at});
      } else {
        constants_.push_back(part);
        if (active_.is_active(part.body)) active_.add(part.tensor);
      }
    }
  }

  /// Which states have an adjoint: those that are read, and those that such states are made of.
  void find_needed() {
    for (const auto& [s, tensor] : given_)
      needed_.insert(s);
    while (true) {
      const size_t before = needed_.size();
      to_cell_.clear();
      to_states_.clear();
      outside_.clear();
      for (const uint32_t s : needed_)
        give_to_update(s);
      for (const Step& step : steps_) {
        if (!to_cell_.contains(step.node.tensor) || !active_.is_active(step.node.body)) continue;
        const ExprId seed = seeds_.read(step.node.tensor, b_.uses(step.node.axes));
        for (Contribution& found : sweep(b_, active_, step.node, seed))
          sort_in(std::move(found), step);
      }
      if (needed_.size() == before) return;
    }
  }

  /// The update at a step is the state at its index.
  void give_to_update(uint32_t s) {
    const TensorId update = scan_.update[s];
    const TensorId tensor{clones_.at(update.stage), update.output};
    const auto step = std::ranges::find_if(
        steps_, [&](const Step& candidate) { return candidate.node.tensor == tensor; });
    Contribution copy{.tensor = tensor, .loops = b_.data_axes(tensor)};
    copy.indices = b_.uses(copy.loops);
    std::vector<ExprId> at = copy.indices;
    at[step->time] = plus(at[step->time], first());
    copy.value = seeds_.read({id_, s}, at);
    to_cell_[tensor].push_back(std::move(copy));
  }

  void sort_in(Contribution found, const Step& step) {
    if (found.tensor.stage == id_) {
      const ExprId time = b_.axis(step.node.axes[step.time]);
      const ExprId distance = b_.sub(found.indices[scan_.dimension], plus(time, first()));
      const int64_t steps = *b_.polynomial(distance).as_constant();
      const int64_t lag = scan_.reverse ? steps : -steps;
      lags_.insert(lag);
      needed_.insert(found.tensor.output);
      to_states_[{found.tensor.output, lag}].push_back(std::move(found));
      return;
    }
    const bool is_step = std::ranges::any_of(
        steps_, [&](const Step& other) { return other.node.tensor == found.tensor; });
    if (is_step) {
      to_cell_[found.tensor].push_back(std::move(found));
    } else {
      outside_.push_back(std::move(found));
    }
  }

  int64_t longest() const { return *lags_.rbegin(); }
  /// Steps in front of the first in the scan of adjoints: what steps before that would read.
  int64_t shift() const { return scan_.reverse ? longest() - 1 : 0; }
  size_t time_dimension() const { return seeds_.leading.size() + scan_.dimension; }

  /// The scan of adjoints: as many initial steps as the longest lag, of which the last in memory,
  /// or in time, is the adjoint that is given there, and the others are beyond the end.
  void make_scan(ScanAdjoints& result) {
    total_ = plus(all_steps_, longest() - 1);
    Scan adjoint;
    for (const uint32_t s : needed_) {
      adjoint.init.push_back(initial_adjoint(s));
      adjoint.state.push_back(state_of(s));
      states_[s] = adjoint.state.back();
    }
    for (const int64_t lag : lags_)
      adjoint_cell(lag);
    for (const uint32_t s : needed_)
      adjoint.update.push_back(update_of(s));
    adjoint.axis =
        b_.new_axis(AxisKind::Time, b_.integer(longest()), plus(total_, -longest()), "t");
    adjoint.dimension = static_cast<uint32_t>(time_dimension());
    adjoint.reverse = !scan_.reverse;
    const StageId id = b_.new_stage(adjoint, name_ + "_grad", id_);
    uint32_t output = 0;
    for (const uint32_t s : needed_)
      result.of_output[s] = {{id, output++}, time_dimension(), shift()};
  }

  std::string name_of(uint32_t s) const {
    return scan_.state.size() == 1 ? name_ : fmt::format("{}_{}", name_, s);
  }

  std::vector<AxisId> leading_axes() {
    std::vector<AxisId> axes;
    for (const AxisId axis : seeds_.leading) {
      const Axis bounds = b_.definition().axes[axis];
      axes.push_back(b_.data_axis(bounds.extent, std::string(b_.names().axes[axis])));
    }
    return axes;
  }

  /// Axes of a result of the scan, with another extent of time.
  std::vector<AxisId> axes_with(uint32_t s, ExprId steps) {
    std::vector<AxisId> axes = b_.data_axes({id_, s});
    axes[scan_.dimension] = b_.data_axis(steps, "t");
    return axes;
  }

  TensorId initial_adjoint(uint32_t s) {
    std::vector<AxisId> axes = leading_axes();
    const std::vector<AxisId> own = axes_with(s, b_.integer(longest()));
    axes.insert(axes.end(), own.begin(), own.end());
    std::vector<ExprId> indices = b_.uses(axes);
    const ExprId time = indices[time_dimension()];
    indices[time_dimension()] = scan_.reverse ? b_.integer(0) : plus(all_steps_, -1);
    ExprId body = b_.number(b_.definition().type_of(scan_.state[s]), 0);
    if (given_.contains(s)) {
      const ExprId is_last = b_.op(Operator::Equal, {time, b_.integer(shift())});
      body = b_.guarded({is_last}, b_.read(given_.at(s), indices));
    }
    return b_.compute(axes, body, name_of(s) + "_grad_init", id_);
  }

  TensorId state_of(uint32_t s) {
    Placeholder placeholder{b_.definition().type_of(scan_.state[s]), {}};
    for (const AxisId axis : seeds_.leading)
      placeholder.shape.push_back(b_.definition().axes[axis].extent);
    for (const ExprId extent : b_.definition().shape_of(scan_.state[s]))
      placeholder.shape.push_back(b_.tidied(extent));
    placeholder.shape[time_dimension()] = total_;
    return {b_.new_stage(placeholder, name_of(s) + "_grad_state", id_), 0};
  }

  /// An adjoint at one step of the scan of adjoints.
  AdjointSpec spec_at_step(TensorId tensor, size_t time, int64_t from_time, int64_t lag,
                           const std::string& name) {
    AdjointSpec spec{
        .tensor = tensor, .leading = leading_axes(), .axes = b_.data_axes(tensor), .name = name};
    spec.axes[time] = b_.data_axis(total_, "t");
    const ExprId least = b_.integer(scan_.reverse ? longest() : 0);
    b_.restrict_axis(spec.axes[time], least, plus(total_, -longest()));
    spec.elements = b_.uses(spec.axes);
    spec.elements[time] = plus(spec.elements[time], from_time);
    spec.adjoint_of = [this, lag](TensorId other, const std::vector<ExprId>& indices) {
      return read_at_step(other, indices, lag);
    };
    spec.is_cell = true;
    return spec;
  }

  /// What the index of a step of the cell is, less the index in the scan of adjoints, where the
  /// state is read `lag` steps later.
  int64_t step_offset(int64_t lag) const { return -shift() - back(lag) - first(); }

  /// Adjoints of the stages of the cell, `lag` steps after the state whose adjoint is computed.
  void adjoint_cell(int64_t lag) {
    for (const Step& step : steps_) {
      const auto found = to_cell_.find(step.node.tensor);
      if (found == to_cell_.end() || is_state_alone(step.node.tensor)) continue;
      AdjointSpec spec =
          spec_at_step(step.node.tensor, step.time, step_offset(lag), lag,
                       fmt::format("{}_grad", b_.names().stages[step.node.tensor.stage]));
      const ExprId index = spec.elements[step.time];
      spec.conditions = {b_.op(Operator::LessEqual, {b_.integer(0), index}),
                         b_.op(Operator::Less, {index, plus(all_steps_, -initial_)})};
      at_step_[{step.node.tensor, lag}] = accumulate(b_, seeds_, spec, found->second);
    }
  }

  /// An update that nothing of the cell reads has the adjoint of its state.
  bool is_state_alone(TensorId tensor) const {
    const auto& found = to_cell_.at(tensor);
    return found.size() == 1 && state_of_seed(found[0]).has_value();
  }

  std::optional<uint32_t> state_of_seed(const Contribution& contribution) const {
    const auto* read = b_.as<Read>(contribution.value);
    const auto tensor = read == nullptr ? std::nullopt : seeds_.tensor_of(read->tensor);
    if (!tensor || tensor->stage != id_) return std::nullopt;
    return tensor->output;
  }

  ExprId read_at_step(TensorId tensor, const std::vector<ExprId>& indices, int64_t lag) {
    std::vector<ExprId> all = indices;
    if (tensor.stage == id_) {
      all[time_dimension()] = plus(all[time_dimension()], shift());
      return b_.read(states_.at(tensor.output), all);
    }
    const Step& step = *std::ranges::find_if(
        steps_, [&](const Step& candidate) { return candidate.node.tensor == tensor; });
    ExprId& time = all[seeds_.leading.size() + step.time];
    if (is_state_alone(tensor)) {
      time = plus(time, first() + shift());
      return b_.read(states_.at(*state_of_seed(to_cell_.at(tensor)[0])), all);
    }
    time = plus(time, -step_offset(lag));
    return b_.read(at_step_.at({tensor, lag}), all);
  }

  /// What readers gave, and what each lag adds.
  TensorId update_of(uint32_t s) {
    std::vector<TensorId> parts;
    for (const int64_t lag : lags_) {
      std::vector<Contribution> all;
      const auto found = to_states_.find({s, lag});
      if (found != to_states_.end()) all = found->second;
      if (parts.empty() && given_.contains(s)) all.push_back(copy_of_given(s));
      if (all.empty()) continue;
      const AdjointSpec spec =
          spec_at_step({id_, s}, scan_.dimension, -shift(), lag, name_of(s) + "_grad_update");
      parts.push_back(accumulate(b_, seeds_, spec, all));
    }
    if (parts.size() == 1) return parts[0];
    std::vector<AxisId> axes = leading_axes();
    const std::vector<AxisId> own = axes_with(s, total_);
    axes.insert(axes.end(), own.begin(), own.end());
    ExprId total = b_.number(b_.definition().type_of(scan_.state[s]), 0);
    for (const TensorId part : parts)
      total = b_.add(total, b_.read(part, b_.uses(axes)));
    return b_.compute(axes, total, name_of(s) + "_grad_update", id_);
  }

  Contribution copy_of_given(uint32_t s) {
    Contribution copy{.tensor = {id_, s}, .loops = b_.data_axes({id_, s})};
    copy.indices = b_.uses(copy.loops);
    std::vector<ExprId> indices = b_.uses(seeds_.leading);
    indices.insert(indices.end(), copy.indices.begin(), copy.indices.end());
    copy.value = b_.read(given_.at(s), indices);
    return copy;
  }

  /// Initial steps are copied: at the first indices, or in reverse at the last.
  void give_to_inits(ScanAdjoints& result) {
    for (const uint32_t s : needed_) {
      const TensorId init = scan_.init[s];
      if (!active_.is_active(init)) continue;
      Contribution copy{.tensor = init, .loops = b_.data_axes(init)};
      copy.indices = b_.uses(copy.loops);
      std::vector<ExprId> at = copy.indices;
      ExprId& time = at[scan_.dimension];
      if (scan_.reverse) time = b_.add(plus(all_steps_, -initial_), time);
      copy.value = seeds_.read({id_, s}, at);
      result.contributions.push_back(std::move(copy));
    }
  }

  Builder& b_;
  Seeds& seeds_;
  Activity& active_;
  const StageId id_;
  const Scan scan_;
  const std::vector<StageId>& cell_;
  const std::map<uint32_t, TensorId>& given_;
  const std::string name_;
  ExprId all_steps_ = 0;
  int64_t initial_ = 1;
  std::vector<int> times_;
  std::map<StageId, StageId> clones_;
  std::vector<Step> steps_;  // readers before what they read
  std::vector<Node> constants_;

  std::set<uint32_t> needed_;
  std::set<int64_t> lags_;
  std::map<TensorId, std::vector<Contribution>> to_cell_;
  std::map<std::pair<uint32_t, int64_t>, std::vector<Contribution>> to_states_;
  std::vector<Contribution> outside_;

  ExprId total_ = 0;  // steps of the scan of adjoints
  std::map<uint32_t, TensorId> states_;
  std::map<std::pair<TensorId, int64_t>, TensorId> at_step_;
};

}  // namespace

ScanAdjoints differentiate_scan(Builder& builder, Seeds& seeds, Activity& activity, StageId scan,
                                const std::vector<StageId>& cell,
                                const std::map<uint32_t, TensorId>& given) {
  return ScanAdjoint(builder, seeds, activity, scan, cell, given).run();
}

}  // namespace kiln::autodiff
