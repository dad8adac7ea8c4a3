// Collects what the caller of a kernel has promised: `A: float32[n, m - 1]` says `0 <= n` and
// `0 <= m - 1`. Negative extents are refused at the call, before any loop runs.
#include "compiler/passes/facts_of.h"

#include <unordered_set>

#include "compiler/ir/build.h"

namespace kiln::passes {

analysis::Facts facts_of_sizes(const ir::Kernel& kernel) {
  analysis::Facts facts;
  std::unordered_set<ir::VarRef> ranged;
  for (const ir::BufferRef& parameter : kernel.parameters) {
    for (const ir::Expr& extent : parameter->shape) {
      if (ir::as<ir::IntImm>(extent)) continue;
      const ir::Var* var = ir::as<ir::Var>(extent);
      if (var == nullptr) {
        facts.push_condition(ir::less_equal(ir::index(0), extent));
      } else if (ranged.insert(var).second) {
        facts.push_range(var, ir::index(0), nullptr);
      }
    }
  }
  return facts;
}

}  // namespace kiln::passes
