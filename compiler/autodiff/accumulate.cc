// Turns what each read gives to a tensor into stages that compute the tensor's adjoint. Gathers
// add up in one body; each reduction is a stage of its own, so that a contraction stays one for
// those who schedule it; scatters come last, each starting from what was there before.
#include "compiler/autodiff/accumulate.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "compiler/autodiff/phases.h"
#include "compiler/autodiff/solve.h"
#include "runtime/core/error.h"

namespace kiln::autodiff {
namespace {

using namespace language;

class Accumulator {
 public:
  Accumulator(Builder& b, const Seeds& seeds, const AdjointSpec& spec)
      : b_(b), seeds_(seeds), spec_(spec), type_(b.definition().type_of(spec.tensor)) {}

  TensorId run(const std::vector<Contribution>& contributions) {
    std::vector<ExprId> terms;
    std::vector<const Contribution*> scattered;
    for (const Contribution& contribution : contributions) {
      if (const auto term = gathered(contribution)) {
        terms.push_back(*term);
      } else {
        scattered.push_back(&contribution);
      }
    }
    TensorId total = sum_of(terms, !scattered.empty());
    for (const Contribution* contribution : scattered)
      total = scatter(*contribution, total);
    return total;
  }

 private:
  /// The stage's own axes for those that stand for them, and adjoints where they are computed.
  Substitution replacing(const std::map<AxisId, ExprId>& axes) {
    Substitution result{axes, {}};
    for (size_t d = 0; d < seeds_.leading.size(); ++d)
      result.axes[seeds_.leading[d]] = b_.axis(leading_[d]);
    result.read = [this](TensorId tensor,
                         const std::vector<ExprId>& indices) -> std::optional<ExprId> {
      const auto adjoint = seeds_.tensor_of(tensor);
      if (!adjoint) return std::nullopt;
      return spec_.adjoint_of(*adjoint, indices);
    };
    return result;
  }

  /// Which element adds up, and where it exists.
  struct Element {
    std::vector<ExprId> indices;
    std::vector<ExprId> conditions;
  };

  std::optional<ExprId> gathered(const Contribution& contribution) {
    leading_ = spec_.leading;
    const Element whole = {spec_.elements, spec_.conditions};
    const std::optional<Solution> solution = solved(contribution, whole);
    if (!solution) return std::nullopt;
    // A cell of a scan has no other stages beside it.
    if (!solution->loops.empty() && !spec_.is_cell) {
      if (const auto read = gathered_in_phases(contribution, solution->phases)) return read;
    }
    return added_up(contribution, *solution, whole);
  }

  std::optional<Solution> solved(const Contribution& contribution, const Element& element) {
    std::vector<Equation> equations;
    for (size_t d = 0; d < contribution.indices.size(); ++d)
      equations.push_back({contribution.indices[d], element.indices[d]});
    for (const auto& [loop, leading] : contribution.diagonal)
      equations.push_back({b_.axis(loop), own_leading(leading)});
    return solve(b_, contribution.loops, equations);
  }

  ExprId added_up(const Contribution& contribution, const Solution& solution,
                  const Element& element) {
    const Substitution replaced = replacing(solution.axes);
    std::vector<ExprId> conditions = element.conditions;
    // Ranges first: what the user's conditions read is in range only where the iteration exists.
    conditions.insert(conditions.end(), solution.conditions.begin(), solution.conditions.end());
    for (const ExprId condition : contribution.conditions)
      conditions.push_back(b_.substitute(condition, replaced));
    return summed(conditions, b_.substitute(contribution.value, replaced), solution.loops);
  }

  /// Computed with the remainders as axes of their own, in a stage that is then read.
  std::optional<ExprId> gathered_in_phases(const Contribution& contribution,
                                           const std::vector<Phase>& phases) {
    const std::optional<InPhases> place = in_phases(b_, spec_.axes, phases);
    if (!place) return std::nullopt;
    const Substitution replaced{place->old, {}};
    Element element;
    for (const ExprId index : spec_.elements)
      element.indices.push_back(b_.substitute(index, replaced));
    for (const ExprId condition : spec_.conditions)
      element.conditions.push_back(b_.substitute(condition, replaced));
    const std::optional<Solution> solution = solved(contribution, element);
    if (!solution) return std::nullopt;
    const TensorId sums = stage(added_up(contribution, *solution, element), place->axes,
                                fmt::format("{}_phases{}", spec_.name, phase_stages_++));
    b_.keep_apart(sums.stage);
    std::vector<ExprId> at = b_.uses(spec_.leading);
    at.insert(at.end(), place->at.begin(), place->at.end());
    return b_.guarded(joined(place->conditions), b_.read(sums, at));
  }

  ExprId own_leading(AxisId leading) {
    const auto at = std::ranges::find(seeds_.leading, leading);
    return b_.axis(leading_[static_cast<size_t>(at - seeds_.leading.begin())]);
  }

  /// One condition where none of them reads anything; those that do stay behind what they need.
  std::vector<ExprId> joined(const std::vector<ExprId>& conditions) {
    std::vector<ExprId> result;
    for (const ExprId condition : conditions) {
      if (b_.as_bool(condition) == true) continue;
      if (!result.empty() && !has_read(condition)) {
        result.back() = b_.op(Operator::And, {result.back(), condition});
      } else {
        result.push_back(condition);
      }
    }
    return result;
  }

  bool has_read(ExprId expr) const {
    if (b_.as<Read>(expr) != nullptr) return true;
    if (const auto* cast = b_.as<CastTo>(expr)) return has_read(cast->operand);
    const auto* operation = b_.as<Operation>(expr);
    return operation != nullptr && std::ranges::any_of(operation->operands, [&](ExprId operand) {
             return has_read(operand);
           });
  }

  /// Conditions as they are found, of the iterations of the loops.
  ExprId summed(const std::vector<ExprId>& conditions, ExprId value,
                const std::vector<AxisId>& loops) {
    // A sum is taken in the type that the factors have, and rounded once.
    if (const auto* cast = b_.as<CastTo>(value); cast != nullptr && !loops.empty()) {
      const DType from = b_.type(cast->operand);
      if (is_float(from) && size_of(from) > size_of(b_.type(value)))
        return b_.cast(b_.type(value), summed(conditions, cast->operand, loops));
    }
    std::vector<AxisId> used;
    ExprId times = b_.number(b_.type(value), 1);
    for (size_t i = loops.size(); i-- > 0;) {
      if (is_used(loops[i], value, conditions, used)) {
        used.insert(used.begin(), loops[i]);
      } else {
        const ExprId extent = b_.definition().axes[loops[i]].extent;
        times = b_.mul(times, b_.cast(b_.type(value), extent));
      }
    }
    if (used.empty()) return b_.mul(b_.guarded(joined(conditions), value), times);
    return b_.mul(b_.sum(guarded_factor(conditions, value), used), times);
  }

  bool is_used(AxisId axis, ExprId value, const std::vector<ExprId>& conditions,
               const std::vector<AxisId>& inner) {
    const auto in = [&](ExprId expr) { return b_.uses_axis(expr, axis); };
    return in(value) || std::ranges::any_of(conditions, in) ||
           std::ranges::any_of(inner, [&](AxisId other) {
             const Axis& bounds = b_.definition().axes[other];
             return in(bounds.minimum) || in(bounds.extent);
           });
  }

  /// A product of two elements stays one, 0 times the other: one is guarded, or each by what
  /// concerns it alone.
  ExprId guarded_factor(const std::vector<ExprId>& conditions, ExprId value) {
    const std::vector<ExprId> all = joined(conditions);
    if (all.empty()) return value;
    const auto* found = b_.as<Operation>(value);
    if (found == nullptr || found->op != Operator::Mul) return b_.guarded(all, value);
    const std::vector<ExprId> factors = found->operands;
    if (!is_element(factors[0]) || !is_element(factors[1])) return b_.guarded(all, value);
    for (const size_t i : {0, 1}) {
      if (!is_inside(factors[1 - i])) continue;
      const ExprId guarded = b_.guarded(all, factors[i]);
      return i == 0 ? b_.mul(guarded, factors[1]) : b_.mul(factors[0], guarded);
    }
    if (const auto apart = guarded_apart(conditions, factors)) return *apart;
    return b_.guarded(all, value);
  }

  /// Each factor behind the conditions that say nothing of other axes than it has, where these
  /// keep it in range.
  std::optional<ExprId> guarded_apart(const std::vector<ExprId>& conditions,
                                      const std::vector<ExprId>& factors) {
    std::array<std::vector<ExprId>, 2> own;
    for (const ExprId condition : conditions) {
      if (b_.as_bool(condition) == true) continue;
      if (has_read(condition)) return std::nullopt;
      const auto concerns = [&](ExprId factor) { return b_.has_axes_of(factor, condition); };
      if (concerns(factors[0])) {
        own[0].push_back(condition);
      } else if (concerns(factors[1])) {
        own[1].push_back(condition);
      } else {
        return std::nullopt;
      }
    }
    std::array<ExprId, 2> guarded{};
    for (const size_t i : {0, 1}) {
      if (!is_inside(factors[i], own[i])) return std::nullopt;
      guarded[i] = b_.guarded(joined(own[i]), factors[i]);
    }
    return b_.mul(guarded[0], guarded[1]);
  }

  bool is_element(ExprId expr) const {
    if (const auto* cast = b_.as<CastTo>(expr)) return is_element(cast->operand);
    return b_.as<Read>(expr) != nullptr;
  }

  /// Whether an element exists for all values of the axes, of those for which conditions hold.
  bool is_inside(ExprId expr, const std::vector<ExprId>& conditions = {}) {
    if (const auto* cast = b_.as<CastTo>(expr)) return is_inside(cast->operand, conditions);
    const auto holds = [&](ExprId condition) {
      return b_.as_bool(condition) == true || std::ranges::count(conditions, condition) > 0;
    };
    const Read read = *b_.as<Read>(expr);
    const std::vector<ExprId> shape = b_.definition().shape_of(read.tensor);
    for (size_t d = 0; d < shape.size(); ++d) {
      const ExprId index = read.indices[d];
      if (!holds(b_.op(Operator::LessEqual, {b_.integer(0), index})) ||
          !holds(b_.op(Operator::Less, {index, b_.tidied(shape[d])}))) {
        return false;
      }
    }
    return true;
  }

  std::vector<AxisId> all_axes() const {
    std::vector<AxisId> axes = spec_.leading;
    axes.insert(axes.end(), spec_.axes.begin(), spec_.axes.end());
    return axes;
  }

  /// The same axes anew: each stage has its own.
  TensorId stage(ExprId body, const std::vector<AxisId>& behind_leading, const std::string& name) {
    Substitution own;
    std::vector<AxisId> axes = spec_.leading;
    axes.insert(axes.end(), behind_leading.begin(), behind_leading.end());
    for (AxisId& axis : axes) {
      const Axis bounds = b_.definition().axes[axis];
      const AxisId fresh = b_.data_axis(bounds.extent, std::string(b_.names().axes[axis]));
      own.axes[axis] = b_.axis(fresh);
      axis = fresh;
    }
    return b_.compute(axes, b_.substitute(body, own), name, spec_.tensor.stage);
  }

  TensorId sum_of(const std::vector<ExprId>& terms, bool is_base) {
    const auto is_sum = [&](ExprId term) { return b_.as<Reduction>(term) != nullptr; };
    std::vector<ExprId> read;
    std::vector<ExprId> pairs;
    int part = 0;
    for (ExprId term : terms) {
      if (is_sum(term) && terms.size() > 1) {
        const TensorId own = stage(term, spec_.axes, fmt::format("{}_{}", spec_.name, part++));
        term = b_.read(own, b_.uses(all_axes()));
      }
      read.push_back(term);
    }
    // In pairs, so that no expression is deep where a tensor is read often.
    for (; read.size() > 1; read = std::move(pairs)) {
      pairs.clear();
      for (size_t i = 0; i + 1 < read.size(); i += 2)
        pairs.push_back(b_.add(read[i], read[i + 1]));
      if (read.size() % 2 == 1) pairs.push_back(read.back());
    }
    const std::string name = is_base ? spec_.name + "_base" : spec_.name;
    const ExprId body = read.empty() ? b_.number(type_, 0) : read[0];
    return b_.compute(all_axes(), body, name, spec_.tensor.stage);
  }

  /// One update for each iteration of the reader, in its order.
  TensorId scatter(const Contribution& contribution, TensorId base) {
    if (spec_.is_cell) {
      fail(ErrorKind::Unsupported, "GRADIENT_SCAN",
           "a step of a scan reads {} at indices that depend on data; the gradient would be a "
           "scatter inside of a scan, which is not supported",
           b_.names().tensor_name(b_.definition(), spec_.tensor));
    }
    Scatter result{.axes = {}, .base = base, .indices = {}, .update = 0, .combiner = Operator::Add};
    leading_.clear();
    for (const AxisId axis : spec_.leading) {
      const Axis bounds = b_.definition().axes[axis];
      leading_.push_back(b_.data_axis(bounds.extent, std::string(b_.names().axes[axis])));
      result.axes.push_back(leading_.back());
      result.indices.push_back(b_.axis(leading_.back()));
    }
    std::map<AxisId, ExprId> axes;
    for (const AxisId axis : contribution.loops) {
      const Axis bounds = b_.definition().axes[axis];
      refuse_dependent(contribution, bounds);
      result.axes.push_back(
          b_.data_axis(b_.tidied(bounds.extent), std::string(b_.names().axes[axis])));
      axes[axis] = b_.add(b_.axis(result.axes.back()), b_.tidied(bounds.minimum));
    }
    const Substitution replaced = replacing(axes);
    std::vector<ExprId> conditions;
    for (const ExprId condition : contribution.conditions)
      conditions.push_back(b_.substitute(condition, replaced));
    conditions = joined(conditions);
    for (const ExprId index : contribution.indices)
      result.indices.push_back(guarded_index(conditions, b_.substitute(index, replaced)));
    result.update = b_.guarded(conditions, b_.substitute(contribution.value, replaced));
    for (const auto& [loop, leading] : contribution.diagonal) {
      const ExprId same = b_.op(Operator::Equal, {axes.at(loop), own_leading(leading)});
      result.update = b_.guarded({same}, result.update);
    }
    const StageId id = b_.new_stage(result, spec_.name, spec_.tensor.stage);
    return {id, 0};
  }

  /// Where nothing is added, it is added to the first element.
  ExprId guarded_index(const std::vector<ExprId>& conditions, ExprId index) {
    return b_.guarded(conditions, index);
  }

  void refuse_dependent(const Contribution& contribution, const Axis& bounds) {
    for (const AxisId other : contribution.loops) {
      if (!b_.uses_axis(bounds.extent, other) && !b_.uses_axis(bounds.minimum, other)) continue;
      fail(ErrorKind::Unsupported, "GRADIENT_SCATTER",
           "the gradient of {} adds up over axes whose extents depend on {}, at indices that "
           "depend on data; give them constant extents and a condition (where=)",
           b_.names().tensor_name(b_.definition(), spec_.tensor), b_.names().axes[other]);
    }
  }

  Builder& b_;
  const Seeds& seeds_;
  const AdjointSpec& spec_;
  const DType type_;
  std::vector<AxisId> leading_;  // of the stage under construction
  int phase_stages_ = 0;
};

}  // namespace

TensorId accumulate(Builder& builder, const Seeds& seeds, const AdjointSpec& spec,
                    const std::vector<Contribution>& contributions) {
  return Accumulator(builder, seeds, spec).run(contributions);
}

TensorId Seeds::of(TensorId tensor) {
  const auto known = seeds_.find(tensor);
  if (known != seeds_.end()) return known->second;
  Placeholder placeholder{b_.definition().type_of(tensor), {}};
  for (const AxisId axis : leading)
    placeholder.shape.push_back(b_.definition().axes[axis].extent);
  for (const ExprId extent : b_.definition().shape_of(tensor))
    placeholder.shape.push_back(extent);
  const TensorId seed{b_.new_stage(placeholder, "adjoint", tensor.stage), 0};
  tensors_[seed] = tensor;
  return seeds_[tensor] = seed;
}

std::optional<TensorId> Seeds::tensor_of(TensorId seed) const {
  const auto found = tensors_.find(seed);
  return found == tensors_.end() ? std::nullopt : std::optional(found->second);
}

ExprId Seeds::read(TensorId tensor, const std::vector<ExprId>& indices) {
  std::vector<ExprId> all = b_.uses(leading);
  all.insert(all.end(), indices.begin(), indices.end());
  return b_.read(of(tensor), all);
}

}  // namespace kiln::autodiff
