// Runs the steps of a running sum in parts at once: first the sum of each part, then what is before
// each part, then all steps from there.
//
//   S[0] = X[0]    for t in 0..4095 { S[t + 1] = S[t] + X[t + 1] }
//     -> in parts of 64 steps
//   for p in 0..64 bind {
//     if p == 0 { S[0] = X[0] }
//     if p < 63 { S.sums[p] = p == 0 ? S[0] : X[p*64]
//                 for t in 0..63 { S.sums[p] = S.sums[p] + X[p*64 + t + 1] } } }
//   S.before[0] = S.sums[0]    for p in 0..62 { S.before[p + 1] = S.before[p] + S.sums[p + 1] }
//   for p in 0..64 bind {
//     if p > 0 { S[p*64] = S.before[p - 1] + X[p*64] }
//     for t in 0..63 { S[p*64 + t + 1] = S[p*64 + t] + X[p*64 + t + 1] } }
//
// Three passes over time instead of one that each step waits for: reduce, scan, scan (Merrill and
// Grimshaw, Parallel Scan for Stream Architectures, 2009, 3.2). Parts begin at multiples of their
// steps, so that a thread's vectors do.
#include "compiler/schedule/emit/scan_parts.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "runtime/core/error.h"

namespace kiln::schedule {
namespace {

using namespace ir;

// Of a block, those of columns included: rather many blocks, since each multiprocessor looks up the
// lines of its threads one by one.
constexpr int64_t kThreads = kWarp;
// Steps whose elements a thread has under way at once while it adds up a part, as step_in_groups
// has for the others.
constexpr int64_t kGroup = 32;
constexpr int64_t kVectorBytes = 16;  // that a thread moves at once

/// The loops around time and what stands before it, from the loops of a scan.
struct Found {
  std::vector<Stmt> around;  // loops and guards, outermost first
  std::vector<Stmt> before;  // the initial step
  std::vector<Stmt> checks;  // of the elements of all steps
  const For* time = nullptr;
};

/// Looks for a node of one kind of which something holds.
template <typename Node>
class Find : public Visitor {
 public:
  explicit Find(std::function<bool(const Node&)> is) : is_(std::move(is)) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Node& node) override {
    found = found || is_(node);
    Visitor::visit(node);
  }
  const std::function<bool(const Node&)> is_;
};

template <typename Node>
bool has(
    const auto& root, std::function<bool(const Node&)> is = [](const Node&) { return true; }) {
  Find<Node> find(std::move(is));
  find(root);
  return find.found;
}

void find_time(const Stmt& stmt, const VarRef& time, Found& found) {
  if (const auto* loop = as<For>(stmt)) {
    if (loop->var == time) {
      found.time = loop;
      return;
    }
    found.around.push_back(stmt);
    return find_time(loop->body, time, found);
  }
  if (const auto* guard = as<If>(stmt)) {
    found.around.push_back(stmt);
    return find_time(guard->then_body, time, found);
  }
  const auto* block = as<Block>(stmt);
  KILN_CHECK(block != nullptr && !block->body.empty());
  for (auto each = block->body.begin(); each + 1 != block->body.end(); ++each)
    (has<Check>(*each) ? found.checks : found.before).push_back(*each);
  find_time(block->body.back(), time, found);
}

/// The one store of a step.
class FindStore : public Visitor {
 public:
  const Store* store = nullptr;

 private:
  using Visitor::visit;
  void visit(const Store& found) override {
    KILN_CHECK(store == nullptr);
    store = &found;
  }
};

/// Whether a value may be one of several, of which others may not be there to be loaded.
bool may_choose(const Expr& value) {
  return has<Call>(value,
                   [](const Call& call) { return call.op == language::Operator::IfThenElse; });
}

/// A step with another store; without its checks, where its elements are looked at elsewhere.
class WithStore : public Mutator {
 public:
  WithStore(Stmt store, bool has_checks) : store_(std::move(store)), has_checks_(has_checks) {}

 private:
  using Mutator::visit;
  Stmt visit(const Store&) override { return store_; }
  Stmt visit(const Check& check) override { return has_checks_ ? Stmt(&check) : Block::make({}); }

  const Stmt store_;
  const bool has_checks_;
};

class Parts {
 public:
  Parts(Found found, int64_t steps, TargetKind target)
      : found_(std::move(found)), time_(*found_.time), steps_(steps), target_(target) {
    FindStore find;
    find(time_.body);
    KILN_CHECK(find.store != nullptr);
    store_ = find.store;
    const auto* step = as<Binary>(store_->value);
    KILN_CHECK(step != nullptr);
    step_ = step;
    const auto* left = as<Load>(step->a);
    is_left_ = left != nullptr && left->buffer == store_->buffer;
    last_ = is_left_ ? left : as<Load>(step->b);
    KILN_CHECK(last_ != nullptr && last_->buffer == store_->buffer);
    const auto moves = [&](const Expr& index) { return uses_var(index, time_.var); };
    const auto along = std::ranges::find_if(store_->indices, moves);
    dimension_ = along - store_->indices.begin();
    // One for the initial step.
    count_ = analysis::simplify(ceildiv(time_.extent + 1, ir::index(steps)));
    sums_ = buffer_of_parts(".sums");
    before_ = buffer_of_parts(".before");
  }

  Stmt write() const {
    const Stmt parts = Block::make({sums(), starts(), all_steps()});
    const Stmt all = Allocate::make(sums_, Allocate::make(before_, parts));
    // No part may read an element before all of them are looked at.
    if (found_.checks.empty()) return all;
    return Block::make({around(Block::make(found_.checks)), all});
  }

 private:
  BufferRef buffer_of_parts(const char* suffix) const {
    std::vector<Expr> shape = store_->buffer->shape;
    shape.erase(shape.begin() + dimension_);
    shape.insert(shape.begin(), count_);
    return Buffer::make(store_->buffer->name + suffix, store_->buffer->type, std::move(shape),
                        Scope::Global);
  }

  std::vector<Expr> at(const Expr& part) const {
    std::vector<Expr> place = store_->indices;
    place.erase(place.begin() + dimension_);
    place.insert(place.begin(), part);
    return place;
  }
  Expr sum_of(const Expr& part) const { return Load::make(sums_, at(part)); }
  Expr before(const Expr& part) const { return Load::make(before_, at(part)); }
  const Expr& value() const { return is_left_ ? step_->b : step_->a; }
  Expr combined(const Expr& before, const Expr& value) const {
    return is_left_ ? Binary::make(step_->op, before, value)
                    : Binary::make(step_->op, value, before);
  }

  /// A step, over the columns that are not around time, with this store.
  Stmt step(const Expr& at, const BufferRef& to, const std::vector<Expr>& place, const Expr& value,
            bool has_checks = true) const {
    const Stmt changed = WithStore(Store::make(to, place, value), has_checks)(time_.body);
    return fresh_copy(substitute(changed, {{time_.var, analysis::simplify(at)}}));
  }

  Stmt loop(const Expr& first, const Expr& extent, LoopKind kind,
            const std::function<Stmt(const Expr&)>& body) const {
    const VarRef var = Var::make(time_.var->name);
    return For::make(var, extent, kind, body(first + Expr(var)));
  }

  /// Whether a thread has one column, so that it can add up in a register and load a group of
  /// elements before that.
  bool has_groups() const {
    if (!traits_of(target_).has_threads || steps_ % kGroup != 0) return false;
    return !has<For>(time_.body);
  }

  /// What the steps of a part add up to, in groups.
  Stmt sum_in_groups(const Expr& part, const Expr& first) const {
    const BufferRef sum = local(".sum", 1);
    const std::vector<Expr> one = {ir::index(0)};
    const Expr so_far = Load::make(sum, one);
    const auto add = [&](const Expr& at) { return step(at, sum, one, combined(so_far, value())); };
    const VarRef group = Var::make("g");
    const Expr next = first + Expr(group) * kGroup + (kGroup - 1);
    return Allocate::make(
        sum, Block::make({first_of_part(part, sum, one),
                          loop(first, ir::index(kGroup - 1), LoopKind::Unrolled, add),
                          For::make(group, ir::index(steps_ / kGroup - 1), LoopKind::Serial,
                                    added_group(sum, next)),
                          step(first, sums_, at(part), so_far, false)}));
  }

  /// Adds a group of steps, whose elements are fetched before; 128 bits at a time along a row.
  Stmt added_group(const BufferRef& sum, const Expr& first) const {
    const BufferRef values = local(".values", kGroup);
    const bool is_row = dimension_ + 1 == static_cast<std::ptrdiff_t>(store_->indices.size());
    const int64_t bytes = size_of(store_->buffer->type);
    const int64_t lanes = is_row && !may_choose(value()) ? kVectorBytes / bytes : 1;
    const VarRef vector = Var::make("n");
    const VarRef lane = Var::make("lane");
    const Expr place = lanes == 1 ? Expr(vector) : Expr(vector) * lanes + Expr(lane);
    Stmt fetch = step(first + place, values, {place}, value());
    if (lanes > 1) fetch = For::make(lane, ir::index(lanes), LoopKind::Vectorized, fetch);
    fetch = For::make(vector, ir::index(kGroup / lanes), LoopKind::Unrolled, fetch);
    const std::vector<Expr> one = {ir::index(0)};
    const VarRef u = Var::make("u");
    const Expr next = combined(Load::make(sum, one), Load::make(values, {Expr(u)}));
    const Stmt add = For::make(u, ir::index(kGroup), LoopKind::Unrolled,
                               step(first + Expr(u), sum, one, next, false));
    return Allocate::make(values, Block::make({fetch, add}));
  }

  /// The first step of a part, to where it is added up.
  Stmt first_of_part(const Expr& part, const BufferRef& to, const std::vector<Expr>& place) const {
    const Expr initial = substitute(Expr(last_), {{time_.var, ir::index(0)}});
    return If::make(equal(part, ir::index(0)), step(ir::index(0), to, place, initial, false),
                    step(part * steps_ - 1, to, place, value()));
  }

  BufferRef local(const char* suffix, int64_t count) const {
    return Buffer::make(store_->buffer->name + suffix, store_->buffer->type, {ir::index(count)},
                        Scope::Local);
  }

  Stmt sums() const {
    return at_once([&](const Expr& part) {
      const Expr first = part * steps_;
      const auto add = [&](const Expr& at) {
        return step(at, sums_, this->at(part), combined(sum_of(part), value()));
      };
      const Stmt sum =
          has_groups() ? sum_in_groups(part, first)
                       : Block::make({first_of_part(part, sums_, at(part)),
                                      loop(first, ir::index(steps_ - 1), LoopKind::Serial, add)});
      return Block::make(
          {If::make(equal(part, ir::index(0)), fresh_copy(Block::make(found_.before))),
           If::make(less(part, count_ - 1), sum)});
    });
  }

  /// What is before each part but the first.
  Stmt starts() const {
    const Expr zero = ir::index(0);
    const VarRef part = Var::make("part");
    const Stmt first = step(zero, before_, at(zero), sum_of(zero), false);
    const Stmt next = step(zero, before_, at(Expr(part) + 1),
                           combined(before(part), sum_of(Expr(part) + 1)), false);
    const Stmt all = Block::make(
        {first, For::make(part, analysis::simplify(count_ - 2), LoopKind::Serial, next)});
    return around(in_a_thread(If::make(less(ir::index(1), count_), all)));
  }

  /// On a GPU, what no loop of columns stands around is one launch of one thread.
  Stmt in_a_thread(Stmt body) const {
    if (!traits_of(target_).has_threads || !found_.around.empty()) return body;
    for (const ThreadAxis axis : {ThreadAxis::ThreadX, ThreadAxis::BlockX}) {
      body = For::make(Var::make(std::string(name_of(axis))), ir::index(1), LoopKind::ThreadIndex,
                       axis, std::move(body));
    }
    return body;
  }

  Stmt all_steps() const {
    return at_once([&](const Expr& part) {
      const Expr first = part * steps_;
      const auto next = [&](const Expr& at) {
        return step(at, store_->buffer, store_->indices, store_->value);
      };
      const Stmt begin = If::make(
          less(ir::index(0), part),
          step(first - 1, store_->buffer, store_->indices, combined(before(part - 1), value())));
      const Stmt whole = loop(first, ir::index(steps_ - 1), LoopKind::Serial, next);
      // Of the last part, after its first one.
      const Expr left = analysis::simplify(floormod(time_.extent, ir::index(steps_)));
      if (is_const(left, steps_ - 1)) return Block::make({begin, whole});
      const Stmt rest = loop(first, left, LoopKind::Serial, next);
      return Block::make({begin, If::make(less(part, count_ - 1), whole, rest)});
    });
  }

  /// Inside of the loops that are around time.
  Stmt around(Stmt body) const {
    for (size_t i = found_.around.size(); i-- > 0;) {
      if (const auto* guard = as<If>(found_.around[i])) {
        body = If::make(guard->condition, std::move(body), nullptr, guard->likely);
      } else {
        const auto* loop = as<For>(found_.around[i]);
        body = For::make(loop->var, loop->extent, loop->loop_kind, loop->thread, std::move(body));
      }
    }
    return fresh_copy(body);
  }

  /// The same for all parts.
  Stmt at_once(const std::function<Stmt(const Expr&)>& body) const {
    if (!traits_of(target_).has_threads) {
      const VarRef part = Var::make("part");
      return around(For::make(part, count_, LoopKind::Parallel, body(part)));
    }
    const ThreadAxis block_axis =
        free_of({ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ});
    const ThreadAxis thread_axis =
        free_of({ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ});
    const int64_t threads = std::max<int64_t>(kThreads / threads_of_columns(), 1);
    const VarRef block = Var::make(std::string(name_of(block_axis)));
    const VarRef thread = Var::make(std::string(name_of(thread_axis)));
    const Expr part = Expr(block) * threads + Expr(thread);
    const Stmt guarded = If::make(less(part, count_), body(part), nullptr, true);
    return around(For::make(
        block, analysis::simplify(ceildiv(count_, ir::index(threads))), LoopKind::ThreadIndex,
        block_axis,
        For::make(thread, ir::index(threads), LoopKind::ThreadIndex, thread_axis, guarded)));
  }

  /// The first of these axes that no loop of columns is bound to; check_scan_parts() knows that
  /// there is one.
  ThreadAxis free_of(std::initializer_list<ThreadAxis> axes) const {
    const auto is_free = [&](ThreadAxis axis) {
      return std::ranges::none_of(found_.around, [&](const Stmt& stmt) {
        const auto* loop = as<For>(stmt);
        return loop != nullptr && loop->thread == axis;
      });
    };
    const auto* const axis = std::ranges::find_if(axes, is_free);
    KILN_CHECK(axis != axes.end());
    return *axis;
  }

  int64_t threads_of_columns() const {
    int64_t threads = 1;
    for (const Stmt& stmt : found_.around) {
      const auto* loop = as<For>(stmt);
      if (loop != nullptr && is_thread_axis(loop->thread))
        threads *= std::max<int64_t>(as_const_int(loop->extent).value_or(kThreads), 1);
    }
    return threads;
  }

  const Found found_;
  const For& time_;
  const int64_t steps_;
  const TargetKind target_;
  const Store* store_ = nullptr;
  const Binary* step_ = nullptr;
  bool is_left_ = true;           // of the operands of a step, the state is the first
  const Load* last_ = nullptr;    // the state before a step
  std::ptrdiff_t dimension_ = 0;  // that of time
  Expr count_;                    // of parts
  BufferRef sums_;
  BufferRef before_;
};

}  // namespace

Stmt in_parts(const Stmt& scan, const VarRef& time, int64_t steps, TargetKind target) {
  Found found;
  find_time(scan, time, found);
  const std::optional<int64_t> all = as_const_int(found.time->extent);
  if (all && *all < steps) return scan;
  return Parts(std::move(found), steps, target).write();
}

}  // namespace kiln::schedule
