// Collects what a definition asks of the sizes of a call, which shapes do not say: that a scan's
// time axis has room for its initial steps. A requirement is tied to a dimension of a parameter, an
// input's first, so that the message can name what the caller passed.
#include "compiler/requirements.h"

#include "compiler/analysis/prove.h"
#include "compiler/codegen/size_expr.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/expressions.h"

namespace kiln {
namespace {

/// The dimension of a parameter that is `extent`, an input's before an output's.
void name_dimension(SizeRequirement& requirement, const language::Definition& definition,
                    const std::vector<SizeExpr>& expressions) {
  for (const bool outputs : {false, true}) {
    for (size_t p = 0; p < definition.parameters.size(); ++p) {
      const language::TensorId tensor = definition.parameters[p];
      if (definition.is_output(tensor) != outputs) continue;
      const std::vector<language::ExprId> shape = definition.shape_of(tensor);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (expressions[shape[d]] != requirement.value) continue;
        requirement.parameter = static_cast<int32_t>(p);
        requirement.dimension = static_cast<int32_t>(d);
        return;
      }
    }
  }
}

}  // namespace

// By the definition alone: no schedule changes what a scan needs.
std::vector<SizeRequirement> size_requirements(const language::Definition& definition,
                                               const std::vector<ir::VarRef>& sizes) {
  std::vector<ir::VarRef> axes;
  for (size_t i = 0; i < definition.axes.size(); ++i) {
    axes.push_back(ir::Var::make("axis"));
  }
  const std::vector<ir::Expr> expressions = schedule::expressions_of(definition, sizes, axes);
  const auto size_expr = [&](const ir::Expr& expr) {
    return codegen::to_size_expr(analysis::simplify(expr), sizes);
  };
  std::vector<SizeExpr> shapes(expressions.size());
  for (const language::TensorId tensor : definition.parameters) {
    for (const language::ExprId extent : definition.shape_of(tensor)) {
      shapes[extent] = size_expr(expressions[extent]);
    }
  }

  std::vector<SizeRequirement> requirements;
  for (size_t stage = 0; stage < definition.stages.size(); ++stage) {
    const auto* scan = std::get_if<language::Scan>(&definition.stages[stage]);
    if (scan == nullptr) continue;
    const language::Axis& time = definition.axes[scan->axis];
    SizeRequirement requirement;
    requirement.kind = SizeRequirement::Kind::ScanExtent;
    requirement.stage = static_cast<int32_t>(stage);
    requirement.minimum = size_expr(expressions[time.minimum]);
    requirement.value = size_expr(expressions[time.minimum] + expressions[time.extent]);
    name_dimension(requirement, definition, shapes);
    requirements.push_back(std::move(requirement));
  }
  return requirements;
}

}  // namespace kiln
