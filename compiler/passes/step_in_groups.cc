// A recurrence along a row that a thread computes, as a running sum: several steps' elements are
// loaded at once, and their results stored at once, 128 bits at a time.
//
//   S[i, 0] = X[i, 0]    for t in 0..4095 { S[i, t + 1] = S[i, t] + X[i, t + 1] }
//     ->
//   allocate S.last: float32[1] scope(local) { S.last[0] = S[i, 0]
//     unrolled for u in 0..3 { S.last[0] = S.last[0] + X[i, u + 1]    S[i, u + 1] = S.last[0] }
//     for g in 0..255 {
//       vectorized, 4 at a time: X.steps[0..16] = X[i, g*16 + 4 ..]
//       unrolled for u in 0..16 { S.last[0] = S.last[0] + X.steps[u]    S.steps[u] = S.last[0] }
//       vectorized, 4 at a time: S[i, g*16 + 4 ..] = S.steps[0..16] }
//     the steps that are left, one by one }
//
// The rows of a warp's threads lie apart, so that each access of one element takes a line of the
// cache for each thread; of four elements it takes no more. And loads do not wait for the stores of
// the steps before, which could be to the same place for all that a compiler of CUDA C knows.
//
// While indices are per dimension; vectorize_loops knows what is aligned.
#include <algorithm>
#include <optional>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/thread_mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kVectorBytes = 16;  // that a thread moves at once
constexpr int64_t kVectors = 4;       // that are under way at once
constexpr int64_t kMostRows = 4;      // that are held beside the result

/// The elements of a row that a loop goes along, from `first` on.
struct Row {
  BufferRef buffer;
  std::vector<Expr> outer;  // all indices but the last
  int64_t first = 0;
};

/// A row, where the last index alone goes up by one from step to step.
std::optional<Row> row_of(const BufferRef& buffer, const std::vector<Expr>& indices,
                          const VarRef& step) {
  const bool is_global = buffer->scope == Scope::Global && !indices.empty();
  if (!is_global || analysis::stride_of(indices.back(), step) != 1) return std::nullopt;
  Row row{buffer, {indices.begin(), indices.end() - 1}, 0};
  const auto moves = [&](const Expr& index) { return uses_var(index, step); };
  if (std::ranges::any_of(row.outer, moves) || std::ranges::any_of(indices, reads_memory))
    return std::nullopt;
  const Expr first = analysis::simplify(substitute(indices.back(), {{step, index(0)}}));
  const std::optional<int64_t> constant = as_const_int(first);
  if (!constant) return std::nullopt;
  row.first = *constant;
  return row;
}

bool is_same_row(const Row& a, const Row& b) {
  const auto are_equal = [](const Expr& x, const Expr& y) { return equal_trees(x, y); };
  return a.buffer == b.buffer && std::ranges::equal(a.outer, b.outer, are_equal);
}

bool is_same_element(const Row& a, const Row& b) { return is_same_row(a, b) && a.first == b.first; }

/// A row, and the buffer that holds a group of its elements.
using Held = std::vector<std::pair<Row, BufferRef>>;

/// What a step reads: its own result of the step before, and rows of other tensors.
class ReadRows : public Visitor {
 public:
  ReadRows(const Row& result, VarRef step) : result_(result), step_(std::move(step)) {}

  /// Whether a step reads the one before, and of the result nothing else.
  bool is_recurrence() const { return reads_last_ && !reads_more_; }
  std::vector<Row> rows;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    const std::optional<Row> row = row_of(load.buffer, load.indices, step_);
    if (load.buffer == result_.buffer) {
      const bool is_last = row && is_same_row(*row, result_) && row->first == result_.first - 1;
      reads_last_ = reads_last_ || is_last;
      reads_more_ = reads_more_ || !is_last || load.predicate;
    } else if (row && !load.predicate && load.type.lanes == 1 && may_be_vector(*row)) {
      const auto is_known = [&](const Row& known) { return is_same_element(known, *row); };
      if (std::ranges::none_of(rows, is_known)) rows.push_back(*row);
    }
    Visitor::visit(load);
  }
  void visit(const Call& call) override {
    // What is chosen may not be there to be loaded.
    reads_more_ = reads_more_ || call.op == Operator::IfThenElse;
    Visitor::visit(call);
  }
  bool may_be_vector(const Row& row) const {
    const int64_t per_vector = kVectorBytes / size_of(result_.buffer->type);
    return size_of(row.buffer->type) == size_of(result_.buffer->type) &&
           (row.first - result_.first) % per_vector == 0;
  }

  const Row& result_;
  const VarRef step_;
  bool reads_last_ = false;
  bool reads_more_ = false;
};

/// The value of a step with the last result where it is held, and elements of rows at this place
/// of theirs.
class UseHeld : public Mutator {
 public:
  UseHeld(const Row& result, BufferRef last, VarRef step, const Held& rows, Expr place)
      : result_(result),
        last_(std::move(last)),
        step_(std::move(step)),
        rows_(rows),
        place_(std::move(place)) {}

 private:
  using Mutator::visit;
  Expr visit(const Load& load) override {
    if (load.buffer == result_.buffer) return Load::make(last_, {index(0)});
    const std::optional<Row> row = row_of(load.buffer, load.indices, step_);
    for (const auto& [known, held] : rows_)
      if (row && is_same_element(known, *row)) return Load::make(held, {place_});
    return Mutator::visit(load);
  }

  const Row& result_;
  const BufferRef last_;
  const VarRef step_;
  const Held& rows_;
  const Expr place_;
};

/// A loop whose body is the store of a step.
class Steps {
 public:
  Steps(const For& loop, const Store& store, Row result, const std::vector<Row>& rows,
        int64_t count)
      : loop_(loop),
        store_(store),
        result_(std::move(result)),
        per_vector_(kVectorBytes / size_of(result_.buffer->type)),
        count_(count),
        last_(local(result_.buffer, ".last", 1)) {
    for (const Row& row : rows)
      held_.emplace_back(row, local(row.buffer, ".steps", per_vector_ * kVectors));
  }

  Stmt write() const {
    // The first elements up to a vector of the result, and those after the last group.
    const int64_t before = (per_vector_ - result_.first % per_vector_) % per_vector_;
    const int64_t group = per_vector_ * kVectors;
    const int64_t groups = (count_ - before) / group;
    std::vector<Expr> start = result_.outer;
    start.push_back(index(result_.first - 1));
    std::vector<Stmt> all = {
        Store::make(last_, {index(0)}, Load::make(result_.buffer, std::move(start)))};
    add_single(all, before, index(0));
    const VarRef g = Var::make("g");
    all.push_back(For::make(g, index(groups), LoopKind::Serial,
                            written_group(Expr(g) * group + before, group)));
    add_single(all, count_ - before - groups * group, index(before + groups * group));
    return Allocate::make(last_, Block::make(std::move(all)));
  }

 private:
  static BufferRef local(const BufferRef& of, const char* suffix, int64_t count) {
    return Buffer::make(of->name + suffix, of->type, {index(count)}, Scope::Local);
  }

  /// Steps one by one, from `first` on.
  void add_single(std::vector<Stmt>& all, int64_t count, const Expr& first) const {
    if (count == 0) return;
    const VarRef u = Var::make("u");
    const Expr step = first + Expr(u);
    std::vector<Expr> place = result_.outer;
    place.push_back(step + result_.first);
    Stmt body = Block::make({Store::make(last_, {index(0)}, value_at(step, {}, nullptr)),
                             Store::make(result_.buffer, place, Load::make(last_, {index(0)}))});
    all.push_back(For::make(u, index(count), LoopKind::Unrolled, std::move(body)));
  }

  Expr value_at(const Expr& step, const Held& held, const Expr& place) const {
    UseHeld use(result_, last_, loop_.var, held, place);
    return substitute(use(store_.value), {{loop_.var, step}});
  }

  Stmt written_group(const Expr& first, int64_t group) const {
    const BufferRef results = local(result_.buffer, ".steps", group);
    std::vector<Stmt> body;
    for (const auto& [row, held] : held_)
      body.push_back(moved(row, held, first, true));
    const VarRef u = Var::make("u");
    body.push_back(For::make(
        u, index(group), LoopKind::Unrolled,
        Block::make({Store::make(last_, {index(0)}, value_at(first + Expr(u), held_, Expr(u))),
                     Store::make(results, {Expr(u)}, Load::make(last_, {index(0)}))})));
    body.push_back(moved(result_, results, first, false));
    Stmt all = Allocate::make(results, Block::make(std::move(body)));
    for (const auto& [row, held] : held_)
      all = Allocate::make(held, std::move(all));
    return all;
  }

  /// A group of a row to or from the buffer that holds it, in vectors.
  Stmt moved(const Row& row, const BufferRef& held, const Expr& first, bool is_load) const {
    const VarRef n = Var::make("n");
    const VarRef lane = Var::make("lane");
    const Expr within = Expr(n) * per_vector_ + Expr(lane);
    std::vector<Expr> place = row.outer;
    place.push_back(first + row.first + within);
    Stmt move = is_load ? Store::make(held, {within}, Load::make(row.buffer, std::move(place)))
                        : Store::make(row.buffer, std::move(place), Load::make(held, {within}));
    return For::make(n, index(kVectors), LoopKind::Unrolled,
                     For::make(lane, index(per_vector_), LoopKind::Vectorized, std::move(move)));
  }

  const For& loop_;
  const Store& store_;
  const Row result_;
  const int64_t per_vector_;
  const int64_t count_;
  const BufferRef last_;
  Held held_;
};

class StepInVectors : public ThreadMutator {
  using ThreadMutator::visit;

  Stmt visit(const For& loop) override {
    const Stmt result = ThreadMutator::visit(loop);
    const Stmt steps = is_in_threads() ? in_vectors(*as<For>(result)) : nullptr;
    return steps ? steps : result;
  }

  static Stmt in_vectors(const For& loop) {
    // A thread without a row does nothing in any step.
    const auto* guard = as<If>(loop.body);
    if (guard != nullptr) {
      if (guard->else_body || uses_var(guard->condition, loop.var) ||
          reads_memory(guard->condition))
        return nullptr;
      const Stmt steps = in_vectors(loop, guard->then_body);
      return steps ? If::make(guard->condition, steps, nullptr, guard->likely) : nullptr;
    }
    return in_vectors(loop, loop.body);
  }

  static Stmt in_vectors(const For& loop, const Stmt& body) {
    const auto* store = as<Store>(body);
    const std::optional<int64_t> count = as_const_int(loop.extent);
    if (loop.loop_kind != LoopKind::Serial || store == nullptr || store->predicate || !count ||
        store->value->type.lanes != 1 || size_of(store->buffer->type) < 4)
      return nullptr;
    const std::optional<Row> result = row_of(store->buffer, store->indices, loop.var);
    // The first steps, and one group.
    const int64_t least = kVectorBytes / size_of(store->buffer->type) * (kVectors + 1);
    if (!result || result->first < 1 || *count < least) return nullptr;
    ReadRows reads(*result, loop.var);
    reads(store->value);
    if (!reads.is_recurrence() || reads.rows.empty() ||
        reads.rows.size() > static_cast<size_t>(kMostRows))
      return nullptr;
    return Steps(loop, *store, *result, reads.rows, *count).write();
  }
};

}  // namespace

ir::Kernel step_in_vectors(ir::Kernel kernel, const PassContext& context) {
  if (context.layout == Layout::Compact) kernel.body = StepInVectors()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
