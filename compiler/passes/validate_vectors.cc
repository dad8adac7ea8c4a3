#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/apart.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/passes.h"

namespace kiln::passes {
namespace {

using namespace ir;

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

/// The name of a buffer through which one iteration may need another one; nothing when none does.
std::optional<std::string> find_dependence(const For& loop) {
  const std::vector<Access> all = accesses_of(loop.body);
  std::vector<LoopRange> moving;
  for (const Access& access : all) {
    for (const For* inner : access.loops)
      moving.push_back({inner->var, inner->extent});
  }

  for (const Access& stored : all) {
    if (!stored.is_store) continue;
    std::vector<Access> same;
    std::vector<std::vector<Expr>> places;
    for (const Access& access : all) {
      if (access.buffer != stored.buffer) continue;
      same.push_back(access);
      places.push_back(access.indices);
    }
    if (same.size() == 1 || is_reduction(same, loop.var)) continue;
    if (!are_apart(places, {{loop.var, loop.extent}}, moving)) return stored.buffer->name;
  }
  return std::nullopt;
}

class ValidateVectors : public Mutator {
 public:
  explicit ValidateVectors(Kernel& kernel) : kernel_(kernel) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.loop_kind != LoopKind::Vectorized) return Mutator::visit(loop);
    const std::optional<std::string> buffer = find_dependence(loop);
    if (!buffer) return Mutator::visit(loop);
    add_note(kernel_, fmt::format("{} runs serially, not as vectors: one iteration may need what "
                                  "another one stores in {}",
                                  loop.var->name, *buffer));
    return For::make(loop.var, loop.extent, LoopKind::Serial, (*this)(loop.body));
  }

  Kernel& kernel_;
};

}  // namespace

ir::Kernel validate_vectors(ir::Kernel kernel, const PassContext&) {
  ValidateVectors mutator(kernel);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
