// Checks the expressions of reducers: over their own parameters and sizes alone, so that a
// reduction may combine in any order and place that it is allowed to.
#include <unordered_set>

#include "compiler/language/check/check.h"

namespace kiln::language {
namespace {

/// The expressions of one reducer.
class ReducerChecker {
 public:
  ReducerChecker(const Checked& checked, ReducerId id)
      : checked_(checked),
        definition_(checked.definition()),
        reducer_(definition_.reducers[id]),
        name_(checked.kernel.names.reducers[id].name) {}

  void check() {
    for (size_t i = 0; i < reducer_.types.size(); ++i) {
      check_own(fmt::format("result {} of {}", i, name_), reducer_.results[i], i);
      const std::string identity = fmt::format("identity {} of {}", i, name_);
      check_own(identity, reducer_.identities[i], i);
      if (checked_.facts.expressions[reducer_.identities[i]].has_parameter) {
        fail(ErrorKind::InvalidArgument, "REDUCER",
             "{} uses a parameter; it is what the values are combined with at first", identity);
      }
      check_parameters(reducer_.results[i]);
    }
  }

 private:
  /// Type and scope of a result or an identity: what a reducer cannot know is refused.
  void check_own(const std::string& what, ExprId expr, size_t value) {
    const Facts::Expr& facts = checked_.facts.expressions[expr];
    if (facts.last_axis >= 0) {
      fail(ErrorKind::InvalidArgument, "REDUCER",
           "{} uses axis {}; a reducer knows its parameters and sizes only", what,
           checked_.axis(static_cast<AxisId>(facts.last_axis)));
    }
    if (facts.has_reduction || facts.has_read) {
      fail(ErrorKind::InvalidArgument, "REDUCER",
           "{} {}; a reducer knows its parameters and sizes only", what,
           facts.has_reduction ? "holds a reduction" : "reads a tensor");
    }
    const DType type = definition_.expressions[expr].type;
    if (type == reducer_.types[value]) return;
    fail(ErrorKind::InvalidArgument, "REDUCER", "{} is {}, but must be {}, as its value; cast it",
         what, type, reducer_.types[value]);
  }

  /// Positions and types of parameters: left ones first, then right ones of the same types.
  void check_parameters(ExprId expr) {
    if (!checked_.facts.expressions[expr].has_parameter || !seen_.insert(expr).second) return;
    const Expression& expression = definition_.expressions[expr];
    if (const auto* operation = std::get_if<Operation>(&expression.node)) {
      for (const ExprId operand : operation->operands)
        check_parameters(operand);
    } else if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
      check_parameters(cast->operand);
    } else if (const auto* parameter = std::get_if<ReducerParameter>(&expression.node)) {
      const size_t values = reducer_.types.size();
      if (parameter->position >= 2 * values) {
        fail(ErrorKind::InvalidArgument, "MALFORMED", "reducer {} uses parameter {}, but has {}",
             name_, parameter->position, 2 * values);
      }
      const DType type = reducer_.types[parameter->position % values];
      if (type == expression.type) return;
      fail(ErrorKind::InvalidArgument, "MALFORMED",
           "reducer {} uses parameter {} as {}, but it is {}", name_, parameter->position,
           expression.type, type);
    }
  }

  const Checked& checked_;
  const Definition& definition_;
  const Reducer& reducer_;
  const std::string& name_;
  std::unordered_set<ExprId> seen_;
};

}  // namespace

void check_reducers(Checked& checked) {
  for (ReducerId id = 0; id < checked.definition().reducers.size(); ++id)
    ReducerChecker(checked, id).check();
}

}  // namespace kiln::language
