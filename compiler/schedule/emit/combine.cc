// Writes one step of a reduction. A reducer with several values reads all of them before it stores
// one, so a value that a later result still needs is stored last, from a local copy.
//
//   v, i = max(v, x), v < x ? j : i  ->  v.next = max(v, x);  i = v < x ? j : i;  v = v.next
#include "compiler/schedule/emit/combine.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/error.h"

namespace kiln::schedule {
namespace {

class CountUses : public ir::Visitor {
 public:
  explicit CountUses(const ir::VarRef& var) : var_(var) {}
  int count = 0;

 private:
  using Visitor::visit;
  void visit(const ir::Var& var) override { count += &var == var_.get() ? 1 : 0; }
  const ir::VarRef& var_;
};

int uses_of(const ir::VarRef& var, const std::vector<ir::Expr>& exprs) {
  CountUses walk(var);
  for (const ir::Expr& expr : exprs)
    walk(expr);
  return walk.count;
}

/// Whether it costs nothing to write the expression out several times.
bool is_plain(const ir::Expr& expr) {
  if (const ir::Cast* cast = ir::as<ir::Cast>(expr)) return is_plain(cast->value);
  return expr->kind == ir::NodeKind::Load || expr->kind == ir::NodeKind::Var ||
         expr->kind == ir::NodeKind::IntImm || expr->kind == ir::NodeKind::FloatImm;
}

/// The statements of one combination by a reducer of the user's own.
class Combine {
 public:
  Combine(const ir::Reducer& reducer, std::span<const Accumulator> accumulators)
      : reducer_(reducer), accumulators_(accumulators) {}

  ir::Stmt run(const std::vector<ir::Expr>& sources) {
    ir::Substitution values;
    for (size_t i = 0; i < sources.size(); ++i) {
      values[reducer_.left[i]] = value_of(i);
      const bool is_kept =
          !is_plain(sources[i]) && uses_of(reducer_.right[i], reducer_.results) > 1;
      // A reducer that names its term twice would compute it twice.
      values[reducer_.right[i]] = is_kept ? keep(i, "term", sources[i]) : sources[i];
    }
    std::vector<ir::Stmt> copies;
    for (size_t i = 0; i < sources.size(); ++i) {
      const ir::Expr result = ir::substitute(reducer_.results[i], values);
      const std::vector<ir::Expr> later(reducer_.results.begin() + static_cast<long>(i) + 1,
                                        reducer_.results.end());
      const bool is_needed = uses_of(reducer_.left[i], later) > 0;
      (is_needed ? copies : stmts_)
          .push_back(store(i, is_needed ? keep(i, "next", result) : result));
    }
    stmts_.insert(stmts_.end(), copies.begin(), copies.end());
    ir::Stmt all = ir::Block::make(std::move(stmts_));
    for (auto buffer = kept_.rbegin(); buffer != kept_.rend(); ++buffer)
      all = ir::Allocate::make(*buffer, std::move(all));
    return all;
  }

 private:
  ir::Expr value_of(size_t i) const {
    return ir::Load::make(accumulators_[i].buffer, accumulators_[i].indices);
  }
  ir::Stmt store(size_t i, const ir::Expr& value) const {
    return ir::Store::make(accumulators_[i].buffer, accumulators_[i].indices, value);
  }

  /// A local copy of a value.
  ir::Expr keep(size_t i, std::string_view what, const ir::Expr& value) {
    const ir::Buffer& buffer = *accumulators_[i].buffer;
    kept_.push_back(ir::Buffer::make(fmt::format("{}.{}", buffer.name, what), buffer.type, {},
                                     ir::Scope::Local));
    stmts_.push_back(ir::Store::make(kept_.back(), {}, value));
    return ir::Load::make(kept_.back(), {});
  }

  const ir::Reducer& reducer_;
  const std::span<const Accumulator> accumulators_;
  std::vector<ir::BufferRef> kept_;
  std::vector<ir::Stmt> stmts_;
};

}  // namespace

ir::Stmt combine_values(const ir::Combination& how, std::span<const Accumulator> accumulators,
                        const std::vector<ir::Expr>& sources) {
  KILN_CHECK(accumulators.size() == sources.size());
  if (how.reducer) return Combine(*how.reducer, accumulators).run(sources);
  const auto& [buffer, indices] = accumulators[0];
  return ir::Store::make(buffer, indices,
                         ir::combine(*how.combiner, ir::Load::make(buffer, indices), sources[0]));
}

}  // namespace kiln::schedule
