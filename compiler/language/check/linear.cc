// Extents compared as sums of terms, so that shapes agree however they are written.
//
//   (m + 1)*2 - m  ->  2 + 1*m     floordiv(n, 2)  ->  a term of its own, by its spelling
//
// Small and without facts about signs: what needs a proof is left to compiler/analysis.
#include "compiler/language/check/linear.h"

#include <fmt/format.h>

namespace kiln::language {
namespace {

/// Expressions may share parts, so spelling one out can take far longer than it is large.
constexpr int kNodeBudget = 250;

class Linearizer {
 public:
  explicit Linearizer(const Definition& definition) : definition_(definition) {}

  LinearForm form(ExprId expr) {
    if (--budget_ < 0) return opaque(fmt::format("e{}", expr));
    const auto& node = definition_.expressions[expr].node;
    if (const auto* integer = std::get_if<IntegerConstant>(&node)) return {integer->value, {}};
    if (const auto* use = std::get_if<VariableUse>(&node)) {
      return opaque(fmt::format("v{}", use->variable));
    }
    if (const auto* use = std::get_if<AxisUse>(&node)) return opaque(linear_term(use->axis));
    if (definition_.expressions[expr].type == DType::Int64) {
      if (const auto* operation = std::get_if<Operation>(&node))
        return of_operation(*operation, expr);
    }
    return opaque(fmt::format("e{}", expr));
  }

 private:
  static LinearForm opaque(std::string term) { return {0, {{std::move(term), 1}}}; }

  LinearForm of_operation(const Operation& operation, ExprId expr) {
    std::vector<LinearForm> operands;
    for (const ExprId operand : operation.operands) {
      operands.push_back(form(operand));
    }
    std::optional<LinearForm> result;
    switch (operation.op) {
      case Operator::Add: result = sum(operands[0], operands[1], 1); break;
      case Operator::Sub: result = sum(operands[0], operands[1], -1); break;
      case Operator::Negative: result = sum(LinearForm{}, operands[0], -1); break;
      case Operator::Mul:
        if (operands[1].terms.empty()) result = scaled(operands[0], operands[1].constant);
        if (operands[0].terms.empty()) result = scaled(operands[1], operands[0].constant);
        break;
      default: break;
    }
    return result ? std::move(*result) : spelled_out(operation, operands, expr);
  }

  /// An operation that is not linear as one term: its operands' forms make the spelling, so that
  /// floordiv(n + 1, 2) and floordiv(1 + n, 2) are equal.
  LinearForm spelled_out(const Operation& operation, const std::vector<LinearForm>& operands,
                         ExprId expr) {
    std::string text = fmt::format("{}(", row_of(operation.op).spelling);
    for (const LinearForm& operand : operands) {
      for (const auto& [term, factor] : operand.terms) {
        text += fmt::format("{}*{}+", factor, term);
      }
      text += fmt::format("{},", operand.constant);
    }
    // Long spellings count as nodes: they are copied at each level.
    budget_ -= static_cast<int>(text.size() / 64);
    return budget_ < 0 ? opaque(fmt::format("e{}", expr)) : opaque(text + ")");
  }

  /// a + sign * b, or nothing when a number leaves the range.
  static std::optional<LinearForm> sum(LinearForm a, const LinearForm& b, int64_t sign) {
    const std::optional<LinearForm> signed_b = scaled(b, sign);
    if (!signed_b) return std::nullopt;
    if (__builtin_add_overflow(a.constant, signed_b->constant, &a.constant)) return std::nullopt;
    for (const auto& [term, factor] : signed_b->terms) {
      int64_t& total = a.terms[term];
      if (__builtin_add_overflow(total, factor, &total)) return std::nullopt;
      if (total == 0) a.terms.erase(term);
    }
    return a;
  }

  static std::optional<LinearForm> scaled(const LinearForm& form, int64_t by) {
    LinearForm result;
    if (by == 0) return result;
    if (__builtin_mul_overflow(form.constant, by, &result.constant)) return std::nullopt;
    for (const auto& [term, factor] : form.terms) {
      if (__builtin_mul_overflow(factor, by, &result.terms[term])) return std::nullopt;
    }
    return result;
  }

  const Definition& definition_;
  int budget_ = kNodeBudget;
};

}  // namespace

LinearForm linear_form(const Definition& definition, ExprId expr) {
  return Linearizer(definition).form(expr);
}

std::optional<int64_t> constant_difference(const Definition& definition, ExprId a, ExprId b) {
  const LinearForm form_a = linear_form(definition, a);
  const LinearForm form_b = linear_form(definition, b);
  int64_t difference = 0;
  if (form_a.terms != form_b.terms ||
      __builtin_sub_overflow(form_a.constant, form_b.constant, &difference)) {
    return std::nullopt;
  }
  return difference;
}

std::optional<int64_t> constant_value(const Definition& definition, ExprId expr) {
  const LinearForm form = linear_form(definition, expr);
  if (!form.terms.empty()) return std::nullopt;
  return form.constant;
}

std::string linear_term(AxisId axis) { return fmt::format("a{}", axis); }

}  // namespace kiln::language
