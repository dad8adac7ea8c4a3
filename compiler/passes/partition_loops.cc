// Splits loops where a `likely` guard begins or ceases to hold: full tiles run without the guard.
//
//   for i in 0..ceildiv(n, 4) { for j in 0..4 { if likely(i*4 + j < n) { S } } }
//     ->
//   for i in 0..floordiv(n, 4) { for j in 0..4 { S } }
//   if floordiv(n, 4) < ceildiv(n, 4) { for j in 0..n - floordiv(n, 4)*4 { S at the last i } }
//
// Conditions of if_then_else count as guards, and one may begin to hold, as padding does: the
// iterations before come first then, in a loop of their own. A parallel loop stays one, with both
// in an if, around what has guards alone; where loops over tiles inside of it can be cut, it is
// left to them. So it is of a serial one, where loops inside of it end with the guards and what is
// beside them is unrolled code. What only the last iteration of a loop around has left over knows
// which it is. Last iterations that do nothing are left out. Nested tiles are split from the
// outside in, up to 8 copies of a statement; loops over GPU indices are left alone, as are those
// whose full tiles end at more minima than the guards are worth. Leaves the kernel simplified.
//
// Cuts loops where guards begin or cease to hold: index set splitting, as Halide's partition_loops
// and TVM's LoopPartition do it. From the outside in, with the bounds of each part known as facts
// inside it, so that the guards of full tiles are proved away. Each cut copies the body, which is
// why copies are counted and each cut has to be worth one.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/find_guards.h"
#include "compiler/passes/simplify.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Facts;

/// Copies of one statement that partitioning may make: 2^3, for three nested tiled loops.
constexpr int kMaxCopies = 8;

/// Minima and maxima in the end of the full tiles: two guards, and no tile at all.
constexpr int kMaxChoices = 2;

class CountChoices : public Visitor {
 public:
  int count = 0;

 private:
  using Visitor::visit;
  void visit(const Binary& node) override {
    if (node.op == Operator::Min || node.op == Operator::Max) ++count;
    Visitor::visit(node);
  }
};

/// Whether the loop has many iterations in which what is stored arrives later: all threads of a
/// block take those together, so that a tile is full where it is for all of them. Fewer would
/// hardly be more than there are memories that take turns.
bool stores_late(const For& loop) {
  constexpr int64_t kMany = 16;
  return as_const_int(loop.extent).value_or(0) >= kMany && has_background(loop.body);
}

/// Whether an end is worth computing: one made of many minima, each of which all that stands inside
/// would repeat, costs more than the guard.
bool is_simple(const Expr& end) {
  CountChoices walk;
  walk(end);
  return walk.count <= kMaxChoices;
}

/// The iterations of a loop for which guards hold, and what stands outside them.
struct FullTiles {
  Expr begin;  // null: the first
  Expr end;    // the extent when none fails at the end
  bool whole;  // nothing runs outside
};

/// An iteration of a loop around: its last one, where that alone has a rest to run.
struct LastOfLoop {
  VarRef var;
  Expr value;
};

/// Of what is left over of a loop, a GPU's unrolled loops that are guarded become plain ones again:
/// they run once, for fewer iterations than there would be copies, each with its guard. Where they
/// choose among a thread's own elements, which lie in registers, they stay.
class PlainRests : public Mutator {
 private:
  class Chooses : public Visitor {
   public:
    explicit Chooses(const VarRef& var) : var_(var) {}
    bool found = false;

   private:
    void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
      const bool is_own = buffer->scope == Scope::Local;
      found = found || (is_own && std::ranges::any_of(indices, [&](const Expr& index) {
                          return uses_var(index, var_);
                        }));
      Visitor::element(buffer, indices);
    }
    const VarRef& var_;
  };

  using Mutator::visit;
  Stmt visit(const For& loop) override {
    const Stmt rebuilt = Mutator::visit(loop);
    const If* guard = as<If>(loop.body);
    const bool is_guarded = loop.loop_kind == LoopKind::Unrolled && guard != nullptr &&
                            !guard->else_body && uses_var(guard->condition, loop.var);
    if (!is_guarded) return rebuilt;
    Chooses walk(loop.var);
    walk(loop.body);
    if (walk.found) return rebuilt;
    return For::make(loop.var, loop.extent, LoopKind::Serial, as<For>(rebuilt)->body);
  }
};

/// Walks from the outside in with the facts that hold at the current place. `body_of` goes on
/// inside with the range of a part; the statements around are put together again from what it gives
/// back.
class PartitionLoops : public Mutator {
 public:
  PartitionLoops(const Kernel& kernel, bool is_for_threads)
      : facts_(facts_of_sizes(kernel)), is_for_threads_(is_for_threads) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const bool is_thread = loop.loop_kind == LoopKind::ThreadIndex;
    if (!is_thread) {
      const std::vector<Guard> guards =
          find_guards(loop, around_, facts_, stores_late(loop) ? threads_ : decltype(threads_)());
      if (!guards.empty()) return partition_work(loop, guards);
    }
    if (is_thread) threads_.push_back({loop.var, index(0), loop.extent});
    const Stmt result =
        with_body(loop, loop.extent, body_of(loop.var, index(0), loop.extent, loop.body));
    if (is_thread) threads_.pop_back();
    return result;
  }

  Stmt visit(const If& node) override {
    const bool is_fact = !reads_memory(node.condition);  // else the body may change it
    if (is_fact) facts_.push_condition(node.condition);
    const Stmt then_body = (*this)(node.then_body);
    if (is_fact) facts_.pop();
    const Stmt else_body = node.else_body ? (*this)(node.else_body) : Stmt();
    if (then_body == node.then_body && else_body == node.else_body) return &node;
    return If::make(node.condition, then_body, else_body, node.likely);
  }

  static Stmt with_body(const For& loop, const Expr& extent, const Stmt& body) {
    if (extent == loop.extent && body == loop.body) return &loop;
    return For::make(loop.var, extent, loop.loop_kind, loop.thread, body);
  }

  /// The body for these values of the variable, itself partitioned.
  Stmt body_of(const VarRef& var, const Expr& begin, const Expr& end, const Stmt& body) {
    facts_.push_range(var, begin, end);
    around_.push_back(var);
    ends_.push_back(end);
    const Stmt result = (*this)(body);
    ends_.pop_back();
    around_.pop_back();
    facts_.pop();
    return result;
  }

  bool proves(const Expr& condition) { return analysis::can_prove(condition, facts_); }

  /// Where all guards hold. In what peeling at a start has left, only ends are looked for.
  FullTiles full_tiles(const For& loop, const std::vector<Guard>& guards) {
    FullTiles full{nullptr, loop.extent, false};
    for (const Guard& guard : guards) {
      if (guard.span.begin)
        full.begin = full.begin ? max(full.begin, guard.span.begin) : guard.span.begin;
      if (guard.span.end) full.end = min(guard.span.end, full.end);
    }
    // A guard of the whole body that does not depend on inner loops: there is no rest.
    full.whole = guards.size() == 1 && guards[0].is_whole && guards[0].span.exact;
    if (full.begin) {
      full.begin = analysis::simplify(min(max(full.begin, index(0)), loop.extent), facts_);
      if (is_const(full.begin, 0)) full.begin = nullptr;
    }
    const Expr least = full.begin ? full.begin : index(0);
    full.end = analysis::simplify(max(full.end, least), facts_);
    return full;
  }

  /// Whether a bound is the same for all threads: else threads would diverge there, and a barrier
  /// inside would not be reached by all.
  bool is_uniform(const Expr& bound) const {
    return std::none_of(threads_.begin(), threads_.end(),
                        [&](const Facts::Range& thread) { return uses_var(bound, thread.var); });
  }

  /// Whether the loop may be cut there, and gains by it.
  bool is_worth_it(const For& loop, const FullTiles& full) {
    if (!is_uniform(full.end) || !is_simple(full.end)) return false;
    if (full.begin && (!is_uniform(full.begin) || !is_simple(full.begin))) return false;
    // Vectors and unrolled loops are of constant extent, and not worth a second copy.
    const bool wants_constant =
        loop.loop_kind == LoopKind::Vectorized || loop.loop_kind == LoopKind::Unrolled;
    if (wants_constant && !(full.whole && !full.begin && as_const_int(full.end))) return false;
    const Expr least = full.begin ? full.begin : index(0);
    return (full.whole || 2 * copies_ <= kMaxCopies) && !proves(less_equal(full.end, least));
  }

  /// Without the iterations at the end in which nothing runs: of the tiles in the last block, some
  /// may lie outside.
  Stmt partition_work(const For& loop, std::vector<Guard> guards) {
    const std::optional<int64_t> end = end_of_work(loop, facts_);
    const bool is_vector = loop.loop_kind == LoopKind::Vectorized;
    const int64_t extent = as_const_int(loop.extent).value_or(0);
    if (is_vector || !end || *end >= extent) return partition(loop, std::move(guards));
    return (*this)(For::make(loop.var, index(*end), loop.loop_kind, loop.thread, loop.body));
  }

  Stmt partition(const For& loop, std::vector<Guard> guards) {
    if (in_rest_) {
      std::erase_if(guards, [](const Guard& guard) { return guard.span.begin || guard.is_choice; });
    }
    if (!may_be_empty(loop, guards)) return partition_by(loop, guards);
    const Expr is_run = less(index(0), loop.extent);
    facts_.push_condition(is_run);
    const Stmt result = partition_by(loop, guards);
    facts_.pop();
    return If::make(is_run, result);
  }

  Stmt partition_by(const For& loop, const std::vector<Guard>& guards) {
    const FullTiles full = full_tiles(loop, guards);
    if (guards.empty() || !is_worth_it(loop, full)) {
      return with_body(loop, loop.extent, body_of(loop.var, index(0), loop.extent, loop.body));
    }

    std::unordered_set<Expr> conjuncts;
    for (const Guard& guard : guards)
      conjuncts.insert(guard.conjunct);
    const Stmt body = drop_conjuncts(loop.body, conjuncts);
    const bool is_parallel = loop.loop_kind == LoopKind::Parallel && !full.whole;
    if (full.begin && !is_parallel) return peel_both(loop, full, body);

    const bool all_full = !full.begin && (full.whole || proves(less_equal(loop.extent, full.end)));
    if (all_full) {
      return with_body(loop, full.end, body_of(loop.var, index(0), full.end, body));
    }
    if (!full.begin && loop.loop_kind == LoopKind::Serial && ends_loops_inside(loop, conjuncts)) {
      return with_body(loop, loop.extent, body_of(loop.var, index(0), loop.extent, loop.body));
    }
    // One parallel region stays one: starting another costs more than the branch.
    if (is_parallel) {
      if (!full.begin && is_cut_inside(loop, conjuncts, facts_)) {
        return with_body(loop, loop.extent, body_of(loop.var, index(0), loop.extent, loop.body));
      }
      return with_body(loop, loop.extent, divided(loop, full, conjuncts, loop.body));
    }
    if (const std::optional<LastOfLoop> last = last_with_rest(loop, full)) {
      return partition_of_last(loop, full, body, *last);
    }
    const auto [clean, rest] = halves(loop, full, body, loop.body);
    return Block::make({with_body(loop, full.end, clean),
                        part(loop, full.end, end_of_rest(loop, full, guards), rest)});
  }

  /// The end of what is left over behind the full tiles: one tile more, where all others have
  /// nothing to do.
  Expr end_of_rest(const For& loop, const FullTiles& full, const std::vector<Guard>& guards) {
    const Expr next = full.end + 1;
    const bool is_one = std::ranges::any_of(guards, [&](const Guard& guard) {
      const Expr end = guard.is_whole ? end_of(guard, loop, facts_) : Expr();
      return end && proves(less_equal(end, next));
    });
    return is_one ? analysis::simplify(min(loop.extent, next), facts_) : loop.extent;
  }

  /// The last iteration of a loop around, where no other one leaves a rest of this loop.
  std::optional<LastOfLoop> last_with_rest(const For& loop, const FullTiles& full) {
    for (size_t i = 0; i < around_.size(); ++i) {
      const std::optional<int64_t> end = as_const_int(ends_[i]);
      if (!end || !uses_var(full.end, around_[i])) continue;
      facts_.push_range(around_[i], index(0), index(*end - 1));
      const bool is_full = proves(less_equal(loop.extent, full.end));
      facts_.pop();
      if (is_full) return LastOfLoop{around_[i], index(*end - 1)};
    }
    return std::nullopt;
  }

  /// What is left over is known there as well as that iteration is.
  Stmt partition_of_last(const For& loop, const FullTiles& full, const Stmt& body,
                         const LastOfLoop& last) {
    const std::unordered_map<VarRef, Expr> known = {{last.var, last.value}};
    const Expr end = analysis::simplify(substitute(full.end, known), facts_);
    copies_ *= 2;
    const Stmt clean = body_of(loop.var, index(0), full.end, body);
    const Stmt rest =
        fresh_copy((*this)(part(loop, end, loop.extent, substitute(loop.body, known))));
    copies_ /= 2;
    return Block::make(
        {with_body(loop, full.end, clean), If::make(less_equal(last.value, last.var), rest)});
  }

  /// Whether it is worth asking first if the loop runs at all: a start of one iteration is simpler
  /// where it does.
  bool may_be_empty(const For& loop, const std::vector<Guard>& guards) {
    const bool starts = std::ranges::any_of(guards, [](const Guard& guard) {
      return guard.span.begin && is_const(guard.span.begin, 1);
    });
    return starts && loop.loop_kind == LoopKind::Serial && !proves(less(index(0), loop.extent));
  }

  /// The full tiles stand between a start and an end. These hold few iterations, so that loops
  /// inside them are cut no further, and do not count as copies of the others.
  Stmt peel_both(const For& loop, const FullTiles& full, const Stmt& body) {
    const Stmt clean = body_of(loop.var, full.begin, full.end, body);
    if (full.whole) return part(loop, full.begin, full.end, clean);
    const auto rest = [&](const Expr& begin, const Expr& end) {
      return part(loop, begin, end, rest_of(loop.var, begin, end, loop.body));
    };
    std::vector<Stmt> parts = {rest(index(0), full.begin), part(loop, full.begin, full.end, clean)};
    if (!proves(less_equal(loop.extent, full.end))) parts.push_back(rest(full.end, loop.extent));
    return Block::make(std::move(parts));
  }

  /// A part of a parallel loop's body, asking in each iteration whether it is a full tile. What
  /// stands beside the guards is there once.
  Stmt divided(const For& loop, const FullTiles& full, const std::unordered_set<Expr>& conjuncts,
               const Stmt& stmt) {
    const auto has_guard = [&](const Stmt& part) {
      return drop_conjuncts(part, conjuncts) != part;
    };
    if (const auto* allocate = as<Allocate>(stmt)) {
      return Allocate::make(allocate->buffer, divided(loop, full, conjuncts, allocate->body));
    }
    const auto* block = as<Block>(stmt);
    if (block != nullptr && !std::ranges::all_of(block->body, has_guard)) {
      std::vector<Stmt> parts;
      for (const Stmt& part : block->body) {
        parts.push_back(has_guard(part) ? divided(loop, full, conjuncts, part)
                                        : body_of(loop.var, index(0), loop.extent, part));
      }
      return Block::make(std::move(parts));
    }
    const Stmt body = drop_conjuncts(stmt, conjuncts);
    if (full.begin) {
      const Stmt clean = body_of(loop.var, full.begin, full.end, body);
      const Expr is_full = logical_and(less_equal(full.begin, loop.var), less(loop.var, full.end));
      return If::make(is_full, clean, rest_of(loop.var, index(0), loop.extent, stmt));
    }
    const auto [clean, rest] = halves(loop, full, body, stmt);
    const std::optional<int64_t> only = as_const_int(full.end);
    const bool is_one = only && as_const_int(loop.extent) == *only + 1;
    const Stmt last = is_one ? substitute(rest, {{loop.var, full.end}}) : rest;
    return If::make(less(loop.var, full.end), clean, last);
  }

  /// A body for the full tiles from the start on, and that of the iterations after them.
  std::pair<Stmt, Stmt> halves(const For& loop, const FullTiles& full, const Stmt& body,
                               const Stmt& guarded) {
    copies_ *= 2;
    const Stmt clean = body_of(loop.var, index(0), full.end, body);
    const Stmt rest = fresh_copy(body_of(loop.var, full.end, loop.extent, guarded));
    copies_ /= 2;
    return {clean, is_for_threads_ ? PlainRests()(rest) : rest};
  }

  Stmt rest_of(const VarRef& var, const Expr& begin, const Expr& end, const Stmt& body) {
    const bool before = std::exchange(in_rest_, true);
    copies_ *= 2;
    const Stmt rest = fresh_copy(body_of(var, begin, end, body));
    copies_ /= 2;
    in_rest_ = before;
    return rest;
  }

  /// The iterations from `begin` to before `end` of a loop, with this body of theirs.
  Stmt part(const For& loop, const Expr& begin, const Expr& end, const Stmt& body) {
    const Expr count = analysis::simplify(end - begin, facts_);
    if (proves(less_equal(count, index(1)))) {
      return If::make(less(begin, end), substitute(body, {{loop.var, begin}}));
    }
    const VarRef var = Var::make(loop.var->name);
    return For::make(var, count, loop.loop_kind, loop.thread,
                     substitute(body, {{loop.var, begin + var}}));
  }

  Facts facts_;
  const bool is_for_threads_;
  std::vector<Facts::Range> threads_;  // of the loops around the current place
  std::vector<VarRef> around_;         // of all loops around it
  std::vector<Expr> ends_;             // of these variables
  int copies_ = 1;                     // of it, so far
  bool in_rest_ = false;               // it is outside the full tiles between a start and an end
};

}  // namespace

ir::Kernel partition_loops(ir::Kernel kernel, const PassContext& context) {
  kernel.body = PartitionLoops(kernel, context.target.traits().has_threads)(kernel.body);
  return simplify(std::move(kernel), context);
}

}  // namespace kiln::passes
