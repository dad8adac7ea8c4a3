#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/solve.h"
#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// A part of a guard, and for which iterations of a loop it holds. Guards are `likely` branches and
/// the conditions of if_then_else.
struct Guard {
  ir::Expr conjunct;
  analysis::Span span;
  bool is_whole;                              // nothing of the loop's body runs when it fails
  bool is_choice;                             // of an if_then_else
  std::vector<analysis::Facts::Range> inner;  // the loops inside that stand around it
};

/// The iteration of the loop from which on a guard fails for all values of the loops inside; null
/// where it is not known.
ir::Expr end_of(const Guard& guard, const ir::For& loop, const analysis::Facts& facts);

/// The guards in the body of a loop that hold for iterations side by side. One that begins to hold,
/// or is the condition of an if_then_else, is left out unless its bounds are the same whatever the
/// loops around do: `around` are their variables. Each holds for all values of those in `all`, too.
std::vector<Guard> find_guards(const ir::For& loop, const std::vector<ir::VarRef>& around,
                               const analysis::Facts& facts,
                               std::vector<analysis::Facts::Range> all = {});

/// The iterations from which on nothing runs, since each statement of the body stands behind guards
/// that do not hold any more; nothing where that is no constant.
std::optional<int64_t> end_of_work(const ir::For& loop, const analysis::Facts& facts);

/// Whether serial loops around unrolled ones, inside of this loop, can be cut where these parts of
/// guards fail: then code that is long stands there twice instead of once for the loop and twice
/// for what is left of it.
bool is_cut_inside(const ir::For& loop, const std::unordered_set<ir::Expr>& conjuncts,
                   const analysis::Facts& facts);

/// Whether serial loops inside of this one can end where these parts of guards fail, each of which
/// is all that such a loop has, and unrolled code stands beside them: then nothing has to stand
/// there twice.
bool ends_loops_inside(const ir::For& loop, const std::unordered_set<ir::Expr>& conjuncts);

/// Each of the conditions that all must hold for this one to.
void for_each_conjunct(const ir::Expr& condition,
                       const std::function<void(const ir::Expr&)>& visit);

/// The statement without these parts of guards.
ir::Stmt drop_conjuncts(const ir::Stmt& stmt, const std::unordered_set<ir::Expr>& conjuncts);

}  // namespace kiln::passes
