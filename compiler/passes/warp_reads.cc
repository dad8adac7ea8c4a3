// What a thread reads of its warp's memory another thread may hold: it is shuffled to it, by a
// statement in front of the one that reads, to which all threads come. So guards that threads do
// not agree on go inward, to the statements that they are about.
//
//   if t < n { for k { C[t, k] = W[k] } }
//     ->
//   for k { shuffle lane floormod(k, 32) of 32: r[0] = W.part[floordiv(k, 32)]
//           if t < n { C[t, k] = r[0] } }
//
// A shuffle passes on one element of the lane that is asked. Where lanes ask for different ones of
// neighbours, as a sliding window does at its end, each of these is shuffled, and the thread
// chooses.
#include "compiler/passes/warp_reads.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"

namespace kiln::passes {

using namespace ir;
using analysis::Facts;
using analysis::simplify;

namespace {

/// Neighbouring elements of a lane of which each is shuffled, where the thread chooses one.
constexpr int64_t kMostChoices = 4;

class FindBuffer : public Visitor {
 public:
  explicit FindBuffer(const BufferRef& buffer) : buffer_(buffer) {}
  bool found = false;

 private:
  using Visitor::visit;
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    found = found || buffer == buffer_;
    Visitor::element(buffer, indices);
  }
  const BufferRef& buffer_;
};

template <typename Tree>
bool names(const Tree& tree, const BufferRef& buffer) {
  FindBuffer walk(buffer);
  walk(tree);
  return walk.found;
}

}  // namespace

bool is_uniform(const Expr& expr, const std::unordered_set<VarRef>& varying) {
  return !reads_memory(expr) &&
         std::ranges::none_of(varying, [&](const VarRef& var) { return uses_var(expr, var); });
}

/// The accesses of one statement. Without `shuffles` those of other lanes are left, and counted.
class WarpReads::Accesses : public Mutator {
 public:
  Accesses(WarpReads& around, bool shuffles)
      : around_(around), buffer_(around.buffer_), shuffles_(shuffles), own_(around.facts_) {
    for (const Expr& guard : around.guards_)
      if (!reads_memory(guard)) own_.push_condition(guard);
  }

  bool needs_others = false;
  std::vector<Stmt> before;         // the shuffles
  std::vector<BufferRef> received;  // what they fill

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (!as_const_int(loop.extent)) ++around_.conditions_;
    own_.push_range(loop.var, index(0), reads_memory(loop.extent) ? Expr() : loop.extent);
    const Stmt result = Mutator::visit(loop);
    own_.pop();
    if (!as_const_int(loop.extent)) --around_.conditions_;
    return result;
  }
  Stmt visit(const If& node) override {
    const Expr condition = (*this)(node.condition);
    const auto branch = [&](const Stmt& body, const Expr& holds) {
      if (!body) return body;
      const bool is_fact = !reads_memory(holds);
      if (is_fact) own_.push_condition(holds);
      ++around_.conditions_;
      const Stmt result = (*this)(body);
      --around_.conditions_;
      if (is_fact) own_.pop();
      return result;
    };
    const Stmt then_body = branch(node.then_body, node.condition);
    return If::make(condition, then_body, branch(node.else_body, logical_not(node.condition)),
                    node.likely);
  }

  Stmt visit(const Store& store) override {
    if (store.buffer != buffer_.whole) return Mutator::visit(store);
    if (!is_own(store.indices) || store.predicate) {
      buffer_.refuse(
          "a thread stores an element there that another one holds; bind an axis of it to "
          "threadIdx.x, along which its elements lie side by side");
    }
    if (around_.conditions_ > 0) around_.stores_conditionally_ = true;
    const Expr value = (*this)(store.value);
    return Store::make(buffer_.part, {buffer_.layout.place_of(store.indices, own_)}, value);
  }
  Stmt visit(const Atomic& node) override { return plain(node); }
  Stmt visit(const Prefetch& node) override { return plain(node); }
  Stmt visit(const Shuffle& node) override { return plain(node); }

  template <typename Node>
  Stmt plain(const Node& node) {
    if (node.buffer == buffer_.whole)
      buffer_.refuse("its elements are updated in one piece, which registers are not; name shared");
    return Mutator::visit(node);
  }

  Expr visit(const Load& load) override {
    if (load.buffer != buffer_.whole) return Mutator::visit(load);
    std::vector<Expr> indices;
    for (const Expr& given : load.indices)
      indices.push_back((*this)(given));
    if (is_own(indices)) return Load::make(buffer_.part, {buffer_.layout.place_of(indices, own_)});
    if (shuffles_) return shuffled(indices);
    needs_others = true;
    return &load;
  }

  bool is_own(const std::vector<Expr>& indices) const {
    return analysis::can_prove(equal(buffer_.layout.lane_of(indices, own_), buffer_.lane), own_);
  }

  /// Outside of the guards, where an index may be any: it is taken to be one that is there.
  Expr shuffled(const std::vector<Expr>& indices) {
    const Facts& facts = around_.facts_;
    if (const int64_t lanes = buffer_.layout.lanes(); lanes > kWarp) {
      buffer_.refuse(
          fmt::format("a thread reads what another one holds, and its block has {} threads along "
                      "threadIdx.x, but those of one warp are 1, 2, 4, 8, 16 or 32; split the axis "
                      "before bind()",
                      lanes));
    }
    const bool reads =
        std::ranges::any_of(indices, [](const Expr& at) { return reads_memory(at); });
    if (reads && !around_.guards_.empty()) {
      buffer_.refuse(
          "data says which element is read, in a branch that not all threads of the warp take; "
          "name shared");
    }
    const Expr lane = buffer_.layout.lane_of(indices, facts);
    const Expr place = buffer_.layout.place_of(indices, facts);
    const int64_t elements = buffer_.layout.elements();
    if (elements == 1) return received_from(lane, index(0));
    if (is_uniform(place, buffer_.varying)) return received_from(lane, clamped(place));
    const auto [first, count] = choices(place, elements);
    Expr result = received_from(lane, clamped(first));
    for (int64_t i = 1; i < count; ++i) {
      const Expr other = received_from(lane, clamped(first + i));
      result = Call::make(Operator::Select, {equal(place, first + i), other, result});
    }
    return result;
  }

  /// The elements of a lane that threads may ask for at once: the first one, and how many.
  std::pair<Expr, int64_t> choices(const Expr& place, int64_t elements) const {
    if (elements <= kMostChoices) return {index(0), elements};
    std::vector<Facts::Range> inner;
    for (const Facts::Entry& entry : around_.facts_.entries()) {
      if (entry.range && buffer_.varying.contains(entry.range->var)) inner.push_back(*entry.range);
    }
    const analysis::Interval bounds = analysis::bounds_of(place, inner, around_.facts_);
    if (bounds.min && bounds.max && is_uniform(bounds.min, buffer_.varying)) {
      const auto more = as_const_int(simplify(bounds.max - bounds.min, around_.facts_));
      if (more && *more < kMostChoices) return {bounds.min, *more + 1};
    }
    buffer_.refuse(
        "its threads read elements at once that lie too far apart in the registers of the others; "
        "name shared");
    return {};
  }

  /// One of the elements of a lane, whatever the index is outside of the guards.
  Expr clamped(const Expr& place) const {
    const int64_t last = buffer_.layout.elements() - 1;
    const auto holds = [&](const Expr& condition) {
      return analysis::can_prove(condition, around_.facts_);
    };
    Expr result = place;
    if (!holds(less_equal(place, index(last)))) result = min(result, index(last));
    if (!holds(less_equal(index(0), place))) result = max(result, index(0));
    return result;
  }

  Expr received_from(const Expr& lane, const Expr& place) {
    const Expr own = Load::make(buffer_.part, {place});
    for (size_t i = 0; i < before.size(); ++i) {
      const Shuffle& known = *as<Shuffle>(before[i]);
      if (equal_trees(known.lane, lane) && equal_trees(known.value, own))
        return Load::make(received[i], {index(0)});
    }
    const BufferRef& whole = buffer_.whole;
    received.push_back(Buffer::make(whole->name + ".read", whole->type, {index(1)}, Scope::Local));
    before.push_back(Shuffle::make(0, lane, static_cast<int>(buffer_.layout.lanes()),
                                   received.back(), {index(0)}, own));
    return Load::make(received.back(), {index(0)});
  }

  WarpReads& around_;
  const WarpBuffer& buffer_;
  const bool shuffles_;
  Facts own_;  // of what the thread itself does, inside of its guards
};

bool WarpReads::names_buffer(const Stmt& stmt) const { return names(stmt, buffer_.whole); }

Stmt WarpReads::operator()(const Stmt& stmt) {
  if (!names_buffer(stmt)) return guarded(stmt);
  if (const Block* block = as<Block>(stmt)) {
    std::vector<Stmt> body;
    for (const Stmt& inner : block->body)
      body.push_back((*this)(inner));
    return Block::make(std::move(body));
  }
  if (const Allocate* allocate = as<Allocate>(stmt))
    return Allocate::make(allocate->buffer, (*this)(allocate->body));
  if (as<For>(stmt)) return of_loop(stmt);
  if (as<If>(stmt)) return of_branch(stmt);
  return with_shuffles(stmt);
}

Stmt WarpReads::of_loop(const Stmt& stmt) {
  const For& loop = *as<For>(stmt);
  if (!is_uniform(loop.extent, buffer_.varying)) {
    if (const std::optional<Stmt> own = without_shuffles(stmt)) return guarded(*own);
    buffer_.refuse(
        "not all threads of the warp come to where it is read, in a loop that each of them runs as "
        "often as its index says; name shared");
  }
  const bool may_not_run = !as_const_int(loop.extent);
  conditions_ += may_not_run ? 1 : 0;
  facts_.push_range(loop.var, index(0), loop.extent);
  const Stmt body = (*this)(loop.body);
  facts_.pop();
  conditions_ -= may_not_run ? 1 : 0;
  return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, body);
}

Stmt WarpReads::of_branch(const Stmt& stmt) {
  const If& node = *as<If>(stmt);
  if (const std::optional<Stmt> own = without_shuffles(stmt)) return guarded(*own);
  const auto branch = [&](const Stmt& body, const Expr& holds) {
    if (!body) return body;
    facts_.push_condition(holds);
    ++conditions_;
    Stmt result = (*this)(body);
    --conditions_;
    facts_.pop();
    return result;
  };
  if (is_uniform(node.condition, buffer_.varying)) {
    const Stmt then_body = branch(node.then_body, node.condition);
    return If::make(node.condition, then_body, branch(node.else_body, logical_not(node.condition)),
                    node.likely);
  }
  if (node.else_body || reads_memory(node.condition)) {
    buffer_.refuse(
        "not all threads of the warp come to where it is read, in a branch that data chooses or "
        "that has another side; name shared");
  }
  guards_.push_back(node.condition);
  ++conditions_;
  Stmt result = (*this)(node.then_body);
  --conditions_;
  guards_.pop_back();
  return result;
}

Stmt WarpReads::with_shuffles(const Stmt& stmt) {
  Accesses accesses(*this, true);
  const Stmt rewritten = accesses(stmt);
  std::vector<Stmt> body = accesses.before;
  body.push_back(guarded(rewritten));
  Stmt result = Block::make(std::move(body));
  for (const BufferRef& buffer : accesses.received)
    result = Allocate::make(buffer, result);
  return result;
}

std::optional<Stmt> WarpReads::without_shuffles(const Stmt& stmt) {
  Accesses accesses(*this, false);
  const Stmt rewritten = accesses(stmt);
  if (accesses.needs_others) return std::nullopt;
  return rewritten;
}

Stmt WarpReads::guarded(Stmt stmt) const {
  for (size_t i = guards_.size(); i-- > 0;)
    stmt = If::make(guards_[i], stmt);
  return stmt;
}

}  // namespace kiln::passes
