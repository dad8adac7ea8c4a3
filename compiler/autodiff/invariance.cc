// What becomes of a tensor T that is subtracted inside of an exponential. Every expression is
// independent of T, or T shifts it (x + c*T), or scales it (x*exp(c*T)), or nothing is known; exp
// and log lead from one to the other, and shares cancel.
//
//   E = exp(X - T), Y = E/sum(E)     E and its sum are scaled by exp(-T), so Y is independent
//
// Only extremes (max, min) are looked at: nobody needs others to cancel, and where one does its
// gradient costs a sum that is 0.
#include "compiler/autodiff/invariance.h"

#include <algorithm>
#include <optional>

namespace kiln::autodiff {
namespace {

using namespace language;

enum class Kind { Independent, Zero, Shifted, Scaled, Unknown };

/// How a value depends on the element of T at `at`, by which factor.
struct Dependence {
  Kind kind = Kind::Independent;
  int factor = 0;
  std::vector<ExprId> at;

  bool is_free() const { return kind == Kind::Independent || kind == Kind::Zero; }
  bool is(Kind other) const { return kind == other; }
  bool operator==(const Dependence&) const = default;
};

const Dependence kUnknown = {Kind::Unknown, 0, {}};

Dependence with_factor(Kind kind, int factor, const std::vector<ExprId>& at) {
  if (factor == 0) return {};
  return {kind, factor, at};
}

class Dependences {
 public:
  Dependences(Builder& b, TensorId tensor) : b_(b), tensor_(tensor) {}

  bool is_independent(TensorId output) {
    const auto stages = static_cast<StageId>(b_.definition().stages.size());
    for (StageId id = tensor_.stage; id < stages && id <= output.stage; ++id)
      look_at(id);
    return of_tensor(output).is_free();
  }

 private:
  void look_at(StageId id) {
    const Stage stage = b_.definition().stages[id];
    if (const auto* compute = std::get_if<Compute>(&stage)) {
      for (uint32_t output = 0; output < compute->bodies.size(); ++output) {
        memo_.clear();
        const TensorId tensor{id, output};
        if (tensor == tensor_) continue;
        found_[tensor] = of(b_.tidied(compute->bodies[output]));
      }
      return;
    }
    // Of what scans and scatters make of a value nothing is known.
    if (!reads_dependent(stage)) return;
    for (uint32_t output = 0; output < output_count(stage); ++output)
      found_[{id, output}] = kUnknown;
  }

  bool reads_dependent(const Stage& stage) {
    const auto depends = [&](TensorId tensor) { return !of_tensor(tensor).is_free(); };
    if (const auto* scan = std::get_if<Scan>(&stage)) {
      return std::ranges::any_of(scan->init, depends) || std::ranges::any_of(scan->update, depends);
    }
    if (const auto* scatter = std::get_if<Scatter>(&stage)) {
      if (depends(scatter->base)) return true;
      for (const ExprId body : bodies_of(stage)) {
        if (std::ranges::any_of(b_.reads(body), depends)) return true;
      }
    }
    return false;
  }

  Dependence of_tensor(TensorId tensor) const {
    if (tensor == tensor_) return kUnknown;
    const auto found = found_.find(tensor);
    return found == found_.end() ? Dependence{} : found->second;
  }

  /// What is tidied is counted as a step there, and is looked at once here.
  Dependence of(ExprId expr) {
    const auto known = memo_.find(expr);
    if (known != memo_.end()) return known->second;
    return memo_[expr] = look(expr);
  }

  Dependence look(ExprId expr) {
    const Expression expression = b_.definition().expressions[expr];
    if (b_.is_number(expr, 0)) return {Kind::Zero, 0, {}};
    if (const auto* read = std::get_if<Read>(&expression.node)) return of_read(*read);
    if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
      const Dependence operand = of(cast->operand);
      return operand.is_free() || is_float(expression.type) ? operand : kUnknown;
    }
    if (const auto* reduction = std::get_if<Reduction>(&expression.node))
      return of_reduction(*reduction);
    const auto* operation = std::get_if<Operation>(&expression.node);
    return operation == nullptr ? Dependence{} : of_operation(*operation);
  }

  Dependence of_read(const Read& read) {
    for (const ExprId index : read.indices) {
      if (!of(index).is_free()) return kUnknown;
    }
    if (read.tensor == tensor_) return {Kind::Shifted, 1, read.indices};
    Dependence found = of_tensor(read.tensor);
    if (!found.is(Kind::Shifted) && !found.is(Kind::Scaled)) return found;
    const auto& compute = std::get<Compute>(b_.definition().stages[read.tensor.stage]);
    Substitution own;
    for (size_t d = 0; d < compute.axes.size(); ++d)
      own.axes[compute.axes[d]] = read.indices[d];
    for (ExprId& index : found.at)
      index = b_.substitute(index, own);
    return found;
  }

  Dependence of_reduction(const Reduction& reduction) {
    Dependence found = of(reduction.sources[0]);
    for (const ExprId part : parts_of(reduction)) {
      if (part != reduction.sources[0] && !of(part).is_free()) return kUnknown;
    }
    if (found.is_free()) return {};
    const bool is_sum = reduction.combiner == Combiner::Sum && found.is(Kind::Scaled);
    const bool is_extreme =
        (reduction.combiner == Combiner::Max || reduction.combiner == Combiner::Min) &&
        found.is(Kind::Shifted);
    if ((!is_sum && !is_extreme) || !reduction.init.empty()) return kUnknown;
    for (const AxisId axis : reduction.axes) {
      for (const ExprId index : found.at) {
        if (b_.uses_axis(index, axis)) return kUnknown;
      }
    }
    return found;
  }

  Dependence of_operation(const Operation& operation) {
    std::vector<Dependence> parts;
    for (const ExprId operand : operation.operands)
      parts.push_back(of(operand));
    if (std::ranges::all_of(parts, &Dependence::is_free)) return {};
    switch (operation.op) {
      case Operator::Negative:
        return parts[0].is(Kind::Shifted)
                   ? with_factor(Kind::Shifted, -parts[0].factor, parts[0].at)
                   : parts[0];
      case Operator::Exp:
        return parts[0].is(Kind::Shifted) ? with_factor(Kind::Scaled, parts[0].factor, parts[0].at)
                                          : kUnknown;
      case Operator::Log:
        return parts[0].is(Kind::Scaled) ? with_factor(Kind::Shifted, parts[0].factor, parts[0].at)
                                         : kUnknown;
      case Operator::Add: return of_sum(parts[0], parts[1], 1);
      case Operator::Sub: return of_sum(parts[0], parts[1], -1);
      case Operator::Mul: return of_product(parts[0], parts[1], 1);
      case Operator::Div: return of_product(parts[0], parts[1], -1);
      case Operator::Select:
      case Operator::IfThenElse:
        if (!parts[0].is_free()) return kUnknown;
        if (parts[1] == parts[2]) return parts[1];
        if (parts[1].is(Kind::Scaled) && parts[2].is(Kind::Zero)) return parts[1];
        if (parts[2].is(Kind::Scaled) && parts[1].is(Kind::Zero)) return parts[2];
        return kUnknown;
      default: return kUnknown;
    }
  }

  static Dependence of_sum(const Dependence& a, const Dependence& b, int sign) {
    if (a.is(Kind::Shifted) && b.is_free()) return a;
    if (b.is(Kind::Shifted) && a.is_free())
      return with_factor(Kind::Shifted, sign * b.factor, b.at);
    if (a.is(Kind::Shifted) && b.is(Kind::Shifted) && a.at == b.at)
      return with_factor(Kind::Shifted, a.factor + sign * b.factor, a.at);
    if (a.is(Kind::Scaled) && (a == b || b.is(Kind::Zero))) return a;
    if (b.is(Kind::Scaled) && a.is(Kind::Zero)) return b;
    return kUnknown;
  }

  static Dependence of_product(const Dependence& a, const Dependence& b, int sign) {
    if (a.is(Kind::Scaled) && b.is_free()) return a;
    if (b.is(Kind::Scaled) && a.is_free()) return with_factor(Kind::Scaled, sign * b.factor, b.at);
    if (a.is(Kind::Scaled) && b.is(Kind::Scaled) && a.at == b.at)
      return with_factor(Kind::Scaled, a.factor + sign * b.factor, a.at);
    return kUnknown;
  }

  Builder& b_;
  const TensorId tensor_;
  std::map<TensorId, Dependence> found_;  // others are independent
  std::map<ExprId, Dependence> memo_;     // of the stage at hand
};

bool is_extreme(const Builder& b, const Stage& stage) {
  const auto* compute = std::get_if<Compute>(&stage);
  if (compute == nullptr || compute->bodies.size() != 1) return false;
  const auto* reduction = b.as<Reduction>(compute->bodies[0]);
  return reduction != nullptr &&
         (reduction->combiner == Combiner::Max || reduction->combiner == Combiner::Min);
}

}  // namespace

std::set<TensorId> find_cancelled(Builder& builder, const std::vector<TensorId>& outputs) {
  std::set<TensorId> found;
  const auto stages = static_cast<StageId>(builder.definition().stages.size());
  for (StageId id = 0; id < stages; ++id) {
    if (!is_extreme(builder, builder.definition().stages[id])) continue;
    const bool is_cancelled = std::ranges::all_of(outputs, [&](TensorId output) {
      return Dependences(builder, {id, 0}).is_independent(output);
    });
    if (is_cancelled) found.insert({id, 0});
  }
  return found;
}

}  // namespace kiln::autodiff
