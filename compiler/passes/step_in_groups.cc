// A recurrence that a thread computes, as a running sum: several steps' elements are loaded at
// once, and their results stored at once; along rows 128 bits at a time.
//
//   S[i, 0] = X[i, 0]    for t in 0..4095 { S[i, t + 1] = S[i, t] + X[i, t + 1] }
//     ->
//   allocate S.last: float32[1] scope(local) { S.last[0] = S[i, 0]
//     unrolled for u in 0..3 { S.last[0] = S.last[0] + X[i, u + 1]    S[i, u + 1] = S.last[0] }
//     for g in 0..255 {
//       vectorized, 4 at a time: X.steps[0..16] = X[i, g*16 + 4 ..]
//       unrolled for u in 0..16 { S.last[0] = S.last[0] + X.steps[u]    X.steps[u] = S.last[0] }
//       vectorized, 4 at a time: S[i, g*16 + 4 ..] = X.steps[0..16] }
//     the steps that are left, one by one }
//
// Where no loop is bound to threads, one runs the whole. Where threads are few there are more steps
// in a group, and one of the size above behind those (analysis/steps_at_once.h).
//
// The rows of a warp's threads lie apart, so that each access of one element takes a line of the
// cache for each thread; of four elements it takes no more. And loads do not wait for the stores of
// the steps before, which could be to the same place for all that a compiler of CUDA C knows: down
// columns, S[t + 1, j] = S[t, j] + X[t + 1, j], that is all, since a warp's threads read side by
// side there, and a thread has 32 or 64 loads under way instead of one.
//
// While indices are per dimension; vectorize_loops knows what is aligned.
#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/analysis/steps_at_once.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/step_lines.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kVectors = 4;    // that are under way at once
constexpr int64_t kElements = 32;  // the same where each is loaded by itself, of all lines
constexpr int64_t kMostLines = 4;  // that are held beside the result

/// A line, and the buffer that holds a group of its elements.
using Held = std::vector<std::pair<Line, BufferRef>>;

/// The value of a step with the last result where it is held, and elements of lines at this place
/// of theirs.
class UseHeld : public Mutator {
 public:
  UseHeld(const Line& result, BufferRef last, VarRef step, const Held& lines, Expr place)
      : result_(result),
        last_(std::move(last)),
        step_(std::move(step)),
        lines_(lines),
        place_(std::move(place)) {}

 private:
  using Mutator::visit;
  Expr visit(const Load& load) override {
    if (load.buffer == result_.buffer) return Load::make(last_, {index(0)});
    const std::optional<Line> line = line_of(load.buffer, load.indices, step_);
    for (const auto& [known, held] : lines_)
      if (line && is_same_element(known, *line)) return Load::make(held, {place_});
    return Mutator::visit(load);
  }

  const Line& result_;
  const BufferRef last_;
  const VarRef step_;
  const Held& lines_;
  const Expr place_;
};

/// A loop whose body is the store of a step.
class Steps {
 public:
  /// Which so many threads run at once.
  Steps(const For& loop, const Store& store, Line result, std::vector<Line> lines,
        std::optional<int64_t> threads)
      : loop_(loop),
        store_(store),
        result_(std::move(result)),
        lines_(std::move(lines)),
        per_vector_(per_vector(result_)),
        groups_{group_of(result_, lines_.size())},
        last_(local(result_.buffer, ".last", 1)) {
    if (!threads || !as_const_int(loop.extent)) return;
    const int64_t many = analysis::steps_at_once(
        groups_[0], *threads, size_of(result_.buffer->type), static_cast<int64_t>(lines_.size()));
    if (many > groups_[0]) groups_.insert(groups_.begin(), many);
  }

  /// Steps that are done at once at least, where a step reads so many lines.
  static int64_t group_of(const Line& result, size_t lines) {
    return result.is_row() ? per_vector(result) * kVectors
                           : kElements / static_cast<int64_t>(std::bit_ceil(lines));
  }

  Stmt write() const {
    // The first elements up to a vector of the result, and those after the last group.
    const int64_t before = (per_vector_ - first_of_vector(result_).value_or(0)) % per_vector_;
    std::vector<Stmt> all = {
        Store::make(last_, {index(0)}, Load::make(result_.buffer, result_.at(index(-1))))};
    add_single(all, index(before), index(0));
    Expr first = index(before);
    Expr left = loop_.extent - before;
    for (const int64_t steps : groups_) {
      const Expr groups = analysis::simplify(floordiv(left, index(steps)));
      const VarRef g = Var::make("g");
      if (!is_const(groups, 0))
        all.push_back(
            For::make(g, groups, LoopKind::Serial, written_group(Expr(g) * steps + first, steps)));
      first = analysis::simplify(groups * steps + first);
      left = analysis::simplify(floormod(left, index(steps)));
    }
    add_single(all, left, first);
    const Stmt steps = Allocate::make(last_, Block::make(std::move(all)));
    if (as_const_int(loop_.extent)) return steps;
    // Before no step there may be no element.
    if (before == 0) return If::make(less(index(0), loop_.extent), steps);
    return If::make(less_equal(index(before), loop_.extent), steps, fresh_copy(&loop_));
  }

  /// Where in a vector the first element of a line lies; nothing where that is not known.
  static std::optional<int64_t> first_of_vector(const Line& line) {
    return as_const_int(analysis::simplify(floormod(line.first, index(per_vector(line)))));
  }

 private:
  static BufferRef local(const BufferRef& of, const char* suffix, int64_t count) {
    return Buffer::make(of->name + suffix, of->type, {index(count)}, Scope::Local);
  }

  /// Steps one by one, from `first` on.
  void add_single(std::vector<Stmt>& all, const Expr& count, const Expr& first) const {
    if (is_const(count, 0)) return;
    const VarRef u = Var::make("u");
    const Expr step = first + Expr(u);
    Stmt body =
        Block::make({Store::make(last_, {index(0)}, value_at(step, {}, nullptr)),
                     Store::make(result_.buffer, result_.at(step), Load::make(last_, {index(0)}))});
    const bool is_known = as_const_int(count).has_value();
    all.push_back(
        For::make(u, count, is_known ? LoopKind::Unrolled : LoopKind::Serial, std::move(body)));
  }

  Expr value_at(const Expr& step, const Held& held, const Expr& place) const {
    UseHeld use(result_, last_, loop_.var, held, place);
    return substitute(use(store_.value), {{loop_.var, step}});
  }

  Stmt written_group(const Expr& first, int64_t steps) const {
    Held held;
    for (const Line& line : lines_)
      held.emplace_back(line, local(line.buffer, ".steps", steps));
    // A result takes the place of what only its step reads, in registers once.
    const bool has_room = held[0].second->type == result_.buffer->type;
    const BufferRef results = has_room ? held[0].second : local(result_.buffer, ".steps", steps);
    std::vector<Stmt> body;
    for (const auto& [line, memory] : held)
      body.push_back(moved(line, memory, first, steps, true));
    const VarRef u = Var::make("u");
    body.push_back(For::make(
        u, index(steps), LoopKind::Unrolled,
        Block::make({Store::make(last_, {index(0)}, value_at(first + Expr(u), held, Expr(u))),
                     Store::make(results, {Expr(u)}, Load::make(last_, {index(0)}))})));
    body.push_back(moved(result_, results, first, steps, false));
    Stmt all = Block::make(std::move(body));
    if (!has_room) all = Allocate::make(results, std::move(all));
    for (const auto& [line, memory] : held)
      all = Allocate::make(memory, std::move(all));
    return all;
  }

  /// A group of a line to or from the buffer that holds it; in vectors, if it is a row.
  Stmt moved(const Line& line, const BufferRef& held, const Expr& first, int64_t steps,
             bool is_load) const {
    const VarRef n = Var::make("n");
    const VarRef lane = Var::make("lane");
    const Expr within = per_vector_ == 1 ? Expr(n) : Expr(n) * per_vector_ + Expr(lane);
    std::vector<Expr> place = line.at(first + within);
    Stmt move = is_load ? Store::make(held, {within}, Load::make(line.buffer, std::move(place)))
                        : Store::make(line.buffer, std::move(place), Load::make(held, {within}));
    if (per_vector_ > 1)
      move = For::make(lane, index(per_vector_), LoopKind::Vectorized, std::move(move));
    return For::make(n, index(steps / per_vector_), LoopKind::Unrolled, std::move(move));
  }

  const For& loop_;
  const Store& store_;
  const Line result_;
  const std::vector<Line> lines_;
  const int64_t per_vector_;
  std::vector<int64_t> groups_;  // the largest first
  const BufferRef last_;
};

class StepInGroups : public Mutator {
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const std::optional<int64_t> around = threads_;
    if (loop.loop_kind == LoopKind::ThreadIndex) {
      const std::optional<int64_t> extent = as_const_int(loop.extent);
      threads_ = around && extent ? std::optional(*around * *extent) : std::nullopt;
    }
    const Stmt result = Mutator::visit(loop);
    threads_ = around;
    const Stmt steps = in_groups(*as<For>(result));
    return steps ? steps : result;
  }

  Stmt in_groups(const For& loop) const {
    // A thread without a row does nothing in any step.
    const auto* guard = as<If>(loop.body);
    if (guard != nullptr) {
      if (guard->else_body || uses_var(guard->condition, loop.var) ||
          reads_memory(guard->condition))
        return nullptr;
      const Stmt steps = in_groups(loop, guard->then_body);
      return steps ? If::make(guard->condition, steps, nullptr, guard->likely) : nullptr;
    }
    return in_groups(loop, loop.body);
  }

  Stmt in_groups(const For& loop, const Stmt& body) const {
    const auto* store = as<Store>(body);
    if (loop.loop_kind != LoopKind::Serial || store == nullptr || store->predicate ||
        store->value->type.lanes != 1)
      return nullptr;
    const std::optional<Line> result = line_of(store->buffer, store->indices, loop.var);
    if (!result || (result->is_row() && !may_be_vectors(*result))) return nullptr;
    ReadLines reads(*result, loop.var);
    reads(store->value);
    if (!reads.is_recurrence() || reads.lines.empty() ||
        reads.lines.size() > static_cast<size_t>(kMostLines) || !is_long(loop, *result, reads))
      return nullptr;
    return Steps(loop, *store, *result, reads.lines, threads_).write();
  }

  /// A vector begins at a place that is known.
  static bool may_be_vectors(const Line& row) {
    return row.direction > 0 && Steps::first_of_vector(row);
  }

  /// Whether it has a group of steps; of a row the first steps besides, up to a vector. Vectors are
  /// of what a thread loads by itself.
  static bool is_long(const For& loop, const Line& result, const ReadLines& reads) {
    const std::optional<int64_t> count = as_const_int(loop.extent);
    const int64_t group = Steps::group_of(result, reads.lines.size());
    if (!result.is_row()) return count.value_or(group) >= group;
    constexpr int64_t kLeastBytes = 4;
    const int64_t least = group + per_vector(result);
    return count.value_or(least) >= least && size_of(result.buffer->type) >= kLeastBytes;
  }

  std::optional<int64_t> threads_ = 1;  // of the launch; nothing where the call says how many
};

}  // namespace

ir::Kernel step_in_groups(ir::Kernel kernel, const PassContext& context) {
  if (context.layout == Layout::Compact) kernel.body = StepInGroups()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
