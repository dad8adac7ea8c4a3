// Makes a vectorised loop serial, with a note, when an iteration may need what another one stored.
//
// Stands before flatten_storage, since indices that are kept per dimension are far easier to tell
// apart. What it leaves marked, vectorize_loops may run in any order of statements and lanes.
//
// Keeps a loop serial that was to run as vectors, where one iteration may need what another one
// stores: A[i + 1] = A[i] + 1. Whether iterations touch the same elements is asked of
// analysis/affine; a sum into one place is left to vectorize_loops.
#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/carried.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Access;

bool equal_places(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return equal_trees(x, y); });
}

/// Whether all accesses are those of one `place = place op term` whose place the variable does not
/// change: vectorize_loops makes a reduction of it.
bool is_reduction(const std::vector<Access>& accesses, const VarRef& var) {
  const auto uses = [&](const Expr& expr) { return uses_var(expr, var); };
  const bool is_one_place = std::ranges::all_of(accesses, [&](const Access& access) {
    return access.statement == accesses[0].statement &&
           equal_places(access.indices, accesses[0].indices) &&
           std::ranges::none_of(access.indices, uses);
  });
  const Store* store = as<Store>(accesses[0].statement);
  if (!is_one_place || accesses.size() != 2 || store == nullptr) return false;
  return as<Binary>(store->value) != nullptr;
}

class ValidateVectors : public Mutator {
 public:
  explicit ValidateVectors(Kernel& kernel) : kernel_(kernel), facts_(facts_of_sizes(kernel)) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const auto ignores = [&](const std::vector<Access>& accesses) {
      return is_reduction(accesses, loop.var);
    };
    const std::optional<std::string> buffer = loop.loop_kind == LoopKind::Vectorized
                                                  ? carried_through(loop, facts_, ignores)
                                                  : std::optional<std::string>();
    if (buffer) {
      add_note(kernel_, fmt::format("{} runs serially, not as vectors: one iteration may need what "
                                    "another one stores in {}",
                                    loop.var->name, *buffer));
    }
    facts_.push_range(loop.var, index(0), reads_memory(loop.extent) ? Expr() : loop.extent);
    const Stmt result = Mutator::visit(loop);
    facts_.pop();
    if (!buffer) return result;
    return For::make(loop.var, loop.extent, LoopKind::Serial, as<For>(result)->body);
  }

  Kernel& kernel_;
  analysis::Facts facts_;  // of the loops around
};

}  // namespace

ir::Kernel validate_vectors(ir::Kernel kernel, const PassContext&) {
  ValidateVectors mutator(kernel);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
