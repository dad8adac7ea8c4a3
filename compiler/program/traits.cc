// Looks at the stages of a node's kernel for what its group may be.
#include "compiler/program/traits.h"

#include <algorithm>

namespace kiln::program {
namespace {

bool multiplies_reads(const language::Definition& definition,
                      const language::Reduction& reduction) {
  if (reduction.combiner != language::Combiner::Sum) return false;
  const auto* product =
      std::get_if<language::Operation>(&definition.expressions[reduction.sources[0]].node);
  return product != nullptr && product->op == language::Operator::Mul;
}

}  // namespace

Traits traits_of(const language::Definition& definition) {
  Traits traits;
  for (const language::Stage& stage : definition.stages) {
    if (std::holds_alternative<language::Placeholder>(stage)) continue;
    ++traits.stages;
    const auto* compute = std::get_if<language::Compute>(&stage);
    traits.is_copy =
        traits.is_copy && compute != nullptr &&
        std::ranges::all_of(compute->bodies, [&](language::ExprId body) {
          return std::holds_alternative<language::Read>(definition.expressions[body].node);
        });
    if (compute == nullptr || compute->axes.size() < 2) continue;
    const language::Reduction* reduction = definition.whole_reduction(*compute);
    if (reduction != nullptr && multiplies_reads(definition, *reduction)) ++traits.products;
  }
  return traits;
}

}  // namespace kiln::program
