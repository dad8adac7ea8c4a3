// Interval arithmetic over the loops of a launch, whose extents must have a largest value that is
// known, or one that follows from the sizes of a call. What is not index arithmetic on loop
// variables, sizes, constants and integers of at most 32 bits is not looked into.
//
//   A[i*n + j], i < m, j < n    ->    narrow where m*n + n < 2^31
#include "compiler/codegen/narrow_index.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/codegen/size_expr.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"

namespace kiln::codegen {
namespace {

using namespace ir;

struct Range {
  int64_t min;
  int64_t max;
};

constexpr Range kInt32 = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
constexpr Range kUInt32 = {0, std::numeric_limits<uint32_t>::max()};

bool is_within(const Range& range, const Range& bounds) {
  return range.min >= bounds.min && range.max <= bounds.max;
}

bool is_wide(DType type) { return type == DType::Int64 || type == DType::UInt64; }

/// Of values within 32 bits, so that nothing here overflows.
std::optional<Range> combined(Operator op, const Range& a, const Range& b) {
  switch (op) {
    case Operator::Add: return Range{a.min + b.min, a.max + b.max};
    case Operator::Sub: return Range{a.min - b.max, a.max - b.min};
    case Operator::Mul: {
      const auto [least, most] =
          std::minmax({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
      return Range{least, most};
    }
    case Operator::Min: return Range{std::min(a.min, b.min), std::min(a.max, b.max)};
    case Operator::Max: return Range{std::max(a.min, b.min), std::max(a.max, b.max)};
    case Operator::FloorDiv:
    case Operator::TruncDiv: {
      if (b.min < 1) return std::nullopt;
      if (a.min >= 0) return Range{a.min / b.max, a.max / b.min};
      return Range{a.min, std::max(a.max, int64_t{0}) / b.min};
    }
    case Operator::FloorMod:
    case Operator::TruncMod: {
      if (b.min < 1) return std::nullopt;
      const bool may_be_negative = op == Operator::TruncMod && a.min < 0;
      const int64_t most = a.min >= 0 ? std::min(a.max, b.max - 1) : b.max - 1;
      return Range{may_be_negative ? 1 - b.max : 0, most};
    }
    default: return std::nullopt;
  }
}

/// Looks at all that a launch computes in 64 bits, whose ranges a subclass knows.
class WideNodes : public Visitor {
 public:
  bool holds = true;

  void add(const VarRef& var, const Expr& extent) {
    (*this)(extent);
    add_loop(var, extent);
  }
  void add_used(const Expr& expr) { (*this)(expr); }

 private:
  virtual void add_loop(const VarRef& var, const Expr& extent) = 0;
  /// Whether the node and its parts are within 32 bits, at all calls that matter.
  virtual bool is_narrow(const Expr& expr) = 0;

  using Visitor::visit;
  void visit(const For& loop) override {
    add(loop.var, loop.extent);
    (*this)(loop.body);
  }
  void visit(const IntImm& node) override { look_at(node); }
  void visit(const Var& node) override { look_at(node); }
  void visit(const Binary& node) override {
    look_at(node);
    Visitor::visit(node);
  }
  void visit(const Call& node) override {
    look_at(node);
    const bool reads_wide =
        std::ranges::any_of(node.args, [](const Expr& arg) { return is_wide(arg->type.element); });
    if (reads_wide && node.op != Operator::Select && node.op != Operator::IfThenElse) holds = false;
    Visitor::visit(node);
  }
  void visit(const Cast& node) override {
    look_at(node);
    Visitor::visit(node);
  }
  void visit(const Load& node) override {
    look_at(node);
    Visitor::visit(node);
  }
  void visit(const Allocate& allocate) override {
    holds = holds && !is_wide(allocate.buffer->type);
    Visitor::visit(allocate);
  }
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    holds = holds && !is_wide(buffer->type);
    Visitor::element(buffer, indices);
  }

  void look_at(const ExprNode& node) {
    if (!holds || !is_wide(node.type.element)) return;
    holds = is_narrow(Expr(&node));
  }
};

/// Of a value that is cast from a type of at most 32 bits, as far as int32 has it.
std::optional<Range> range_of_narrow(DType from) {
  const bool is_signed = is_signed_int(from);
  if (!is_int(from) || (!is_signed && bits_of(from) == 32)) return std::nullopt;
  const int64_t most = (int64_t{1} << (bits_of(from) - (is_signed ? 1 : 0))) - 1;
  return Range{is_signed ? -most - 1 : 0, most};
}

/// At every call.
class NarrowIndices : public WideNodes {
 private:
  void add_loop(const VarRef& var, const Expr& extent) override {
    if (const std::optional<Range> count = range_of(extent))
      ranges_[var.get()] = {0, std::max<int64_t>(count->max - 1, 0)};
  }
  bool is_narrow(const Expr& expr) override { return range_of(expr).has_value(); }

  std::optional<Range> range_of(const Expr& expr) {
    const auto known = known_.find(expr.get());
    if (known != known_.end()) return known->second;
    std::optional<Range> range = computed(expr);
    const DType type = expr->type.element;
    if (range && !is_within(*range, type == DType::UInt64 ? kUInt32 : kInt32)) range.reset();
    return known_[expr.get()] = range;
  }

  std::optional<Range> computed(const Expr& expr) {
    if (const IntImm* imm = as<IntImm>(expr)) return Range{imm->value, imm->value};
    if (const Var* var = as<Var>(expr)) {
      const auto range = ranges_.find(var);
      return range != ranges_.end() ? std::optional(range->second) : std::nullopt;
    }
    if (const Binary* node = as<Binary>(expr)) {
      const std::optional<Range> a = range_of(node->a);
      const std::optional<Range> b = range_of(node->b);
      return a && b ? combined(node->op, *a, *b) : std::nullopt;
    }
    if (const Call* call = as<Call>(expr)) {
      if (call->op != Operator::Select && call->op != Operator::IfThenElse) return std::nullopt;
      const std::optional<Range> a = range_of(call->args[1]);
      const std::optional<Range> b = range_of(call->args[2]);
      return a && b ? std::optional(Range{std::min(a->min, b->min), std::max(a->max, b->max)})
                    : std::nullopt;
    }
    if (const Cast* cast = as<Cast>(expr)) {
      const DType from = cast->value->type.element;
      return is_wide(from) ? range_of(cast->value) : range_of_narrow(from);
    }
    return std::nullopt;
  }

  std::unordered_map<const Var*, Range> ranges_;
  std::unordered_map<const ExprNode*, std::optional<Range>> known_;
};

/// How far a value lies from 0 at most, as the call's sizes have it.
struct Distance {
  SizeExpr most;
  double limit = 0;          // of `most`, whatever the sizes are
  bool is_negative = false;  // perhaps
};
constexpr int64_t kTooFar = int64_t{1} << 31;

using Op = SizeExpr::Op;
SizeExpr folded(Op op, const SizeExpr& a, const SizeExpr& b) {
  const SizeExpr result = SizeExpr::binary(op, a, b);
  return constant_of(a) && constant_of(b) ? SizeExpr::constant(result.evaluate({})) : result;
}
/// Whether an expression of these, none of which is negative, is at least another one wherever that
/// is near: what it adds up or multiplies has the other one in it.
class HasInside {
 public:
  HasInside(const SizeExpr& whole, const SizeExpr& part) : whole_(whole.nodes), part_(part.nodes) {}
  bool operator()() { return found(whole_.size()).is_inside; }

 private:
  struct Found {
    size_t begin;  // of the nodes before `end` that are one operand
    bool is_inside;
  };
  Found found(size_t end) {
    const SizeExpr::Node& root = whole_[end - 1];
    if (root.op == Op::Constant || root.op == Op::Scalar) return {end - 1, is_part(end - 1, end)};
    const Found b = found(end - 1);
    const Found a = found(b.begin);
    // Of sums, products of what is at least 1, and what is bounded; a quotient is less.
    const bool grows = root.op == Op::Add || root.op == Op::Mul || root.op == Op::Max;
    const bool is_inside = (grows && (a.is_inside || b.is_inside)) ||
                           (root.op == Op::Min && a.is_inside && is_bound(end - 2));
    return {a.begin, is_inside || is_part(a.begin, end)};
  }
  bool is_bound(size_t at) const { return whole_[at] == SizeExpr::Node{Op::Constant, kTooFar}; }
  bool is_part(size_t begin, size_t end) const {
    return end - begin == part_.size() &&
           std::equal(part_.begin(), part_.end(), whole_.begin() + static_cast<long>(begin));
  }

  const std::vector<SizeExpr::Node>& whole_;
  const std::vector<SizeExpr::Node>& part_;
};

/// Of what is not negative.
SizeExpr at_least_1(const SizeExpr& a) {
  const size_t count = a.nodes.size();
  const bool is_more = count > 2 && a.nodes[count - 1].op == Op::Add &&
                       a.nodes[count - 2].op == Op::Constant && a.nodes[count - 2].operand > 0;
  return is_more ? a : folded(Op::Max, a, SizeExpr::constant(1));
}

/// kTooFar for all beyond it, where what is made of it could be past the range of int64.
constexpr double kRange = 5e18;  // of which a product of two that are bounded is inside
Distance bounded(const Distance& a) {
  if (a.limit <= static_cast<double>(kTooFar)) return a;
  return {folded(Op::Min, a.most, SizeExpr::constant(kTooFar)), static_cast<double>(kTooFar),
          a.is_negative};
}
Distance sum(const Distance& a, const Distance& b) {
  if (a.limit + b.limit > kRange) return sum(bounded(a), bounded(b));
  return {folded(Op::Add, a.most, b.most), a.limit + b.limit, a.is_negative || b.is_negative};
}
Distance product(const Distance& a, const Distance& b) {
  const double limit = std::max(a.limit, 1.0) * std::max(b.limit, 1.0);
  if (limit > kRange) return product(bounded(a), bounded(b));
  const bool is_negative = a.is_negative || b.is_negative;
  for (const auto& [factor, other] : {std::pair{a, b}, std::pair{b, a}}) {
    if (constant_of(factor.most).value_or(0) >= 1)
      return {folded(Op::Mul, other.most, factor.most), limit, is_negative};
  }
  // As far as either of them, of which nothing else is asked.
  return {folded(Op::Mul, at_least_1(a.most), at_least_1(b.most)), limit, is_negative};
}
Distance farther(const Distance& a, const Distance& b) {
  return {folded(Op::Max, a.most, b.most), std::max(a.limit, b.limit),
          a.is_negative || b.is_negative};
}

/// Without the casts of divide_unsigned, which divides what is not negative.
class Undivided : public Mutator {
 private:
  using Mutator::visit;
  Expr visit(const Cast& node) override {
    const bool is_same = is_wide(node.type.element) && is_wide(node.value->type.element);
    if (!is_same) return Mutator::visit(node);
    const Expr value = (*this)(node.value);
    return value;
  }
  Expr visit(const IntImm& node) override {
    return is_wide(node.type.element) ? index(node.value) : Expr(&node);
  }
  Expr visit(const Binary& node) override {
    const Expr a = (*this)(node.a);
    const Expr b = (*this)(node.b);
    const Operator op = node.op == Operator::TruncDiv   ? Operator::FloorDiv
                        : node.op == Operator::TruncMod ? Operator::FloorMod
                                                        : node.op;
    return Binary::make(op, a, b);
  }
};

/// At calls of which it notes what must not be too far. A value that is made of others by sums and
/// products is as far as each of them, so that what nothing is made of is enough.
class NarrowWhere : public WideNodes {
 public:
  explicit NarrowWhere(const Kernel& kernel) {
    std::unordered_set<const Var*> lengths;
    for (const BufferRef& parameter : kernel.parameters) {
      for (const Expr& extent : parameter->shape)
        if (const Var* length = as<Var>(extent)) lengths.insert(length);
    }
    for (const VarRef& size : kernel.sizes) {
      SizeExpr most = SizeExpr::scalar(static_cast<int64_t>(distances_.size()));
      const bool is_length = lengths.contains(size.get());
      if (!is_length) {
        const SizeExpr zero = SizeExpr::constant(0);
        most = folded(Op::Max, most, folded(Op::Sub, zero, most));
      }
      distances_.emplace(size.get(),
                         Distance{std::move(most), static_cast<double>(kLargestSize), !is_length});
    }
  }

  std::optional<SizeExpr> condition() const {
    if (!holds) return std::nullopt;
    SizeExpr all = SizeExpr::constant(1);
    for (const SizeExpr& each : near_) {
      // Most follow from others: that of an index from that of what is added to it.
      const bool follows = std::ranges::any_of(near_, [&](const SizeExpr& other) {
        return &other != &each && HasInside(other, each)();
      });
      if (follows) continue;
      const SizeExpr is_near = SizeExpr::binary(Op::Less, each, SizeExpr::constant(kTooFar));
      all = constant_of(all) ? is_near : SizeExpr::binary(Op::And, all, is_near);
    }
    return all;
  }

 private:
  void add_loop(const VarRef& var, const Expr& extent) override {
    if (const std::optional<Distance> count = distance_of(extent))
      distances_.insert_or_assign(var.get(), Distance{count->most, count->limit});
    extents_.insert_or_assign(var.get(), extent);
  }
  bool is_narrow(const Expr& expr) override {
    const bool is_new = !known_.contains(expr.get());
    const std::optional<Distance> distance = distance_of(expr);
    return distance && (!is_new || note(distance->most));
  }

  /// False where it is too far whatever the sizes.
  bool note(const SizeExpr& distance) {
    if (const std::optional<int64_t> constant = constant_of(distance)) return *constant < kTooFar;
    if (std::ranges::find(near_, distance) == near_.end()) near_.push_back(distance);
    return true;
  }

  std::optional<Distance> distance_of(const Expr& expr) {
    const auto known = known_.find(expr.get());
    if (known != known_.end()) return known->second;
    std::optional<Distance> distance = computed(expr);
    return known_[expr.get()] = distance;
  }

  std::optional<Distance> computed(const Expr& expr) {
    if (const IntImm* imm = as<IntImm>(expr)) {
      if (imm->value <= -kTooFar || imm->value >= kTooFar) return std::nullopt;
      const int64_t most = std::abs(imm->value);
      return Distance{SizeExpr::constant(most), static_cast<double>(most), imm->value < 0};
    }
    if (const Var* var = as<Var>(expr)) {
      const auto at = distances_.find(var);
      return at != distances_.end() ? std::optional(at->second) : std::nullopt;
    }
    if (const Binary* node = as<Binary>(expr)) {
      const std::optional<Distance> a = distance_of(node->a);
      const std::optional<Distance> b = distance_of(node->b);
      return a && b ? combined_distance(*node, *a, *b) : std::nullopt;
    }
    if (const Call* call = as<Call>(expr)) {
      if (call->op != Operator::Select && call->op != Operator::IfThenElse) return std::nullopt;
      const std::optional<Distance> a = distance_of(call->args[1]);
      const std::optional<Distance> b = distance_of(call->args[2]);
      return a && b ? std::optional(farther(*a, *b)) : std::nullopt;
    }
    if (const Cast* cast = as<Cast>(expr)) {
      const DType from = cast->value->type.element;
      if (is_wide(from)) return distance_of(cast->value);
      const std::optional<Range> range = range_of_narrow(from);
      // What data says of more bits may be anything, and a product with a size too far.
      if (!range || bits_of(from) > 8) return std::nullopt;
      return Distance{SizeExpr::constant(range->max), static_cast<double>(range->max),
                      range->min < 0};
    }
    return std::nullopt;
  }

  std::optional<Distance> combined_distance(const Binary& node, const Distance& a,
                                            const Distance& b) {
    switch (node.op) {
      case Operator::Add: return sum(a, b);
      case Operator::Sub: {
        Distance result = sum(a, b);
        result.is_negative = true;
        return result;
      }
      case Operator::Mul: return product(a, b);
      case Operator::Min: return nearer(a, b);
      case Operator::Max: return farther(a, b);
      case Operator::FloorDiv:
      case Operator::TruncDiv: return quotient(node, a, b);
      case Operator::FloorMod:
      case Operator::TruncMod:
        if (!note(a.most)) return std::nullopt;
        return Distance{b.most, b.limit, a.is_negative || b.is_negative};
      default: return std::nullopt;
    }
  }

  /// Of a number that is not negative and another one, the least is no farther than the other one.
  std::optional<Distance> nearer(const Distance& a, const Distance& b) {
    if (a.is_negative && b.is_negative) return farther(a, b);
    if (!note(a.most) || !note(b.most)) return std::nullopt;
    if (a.is_negative) return a;
    if (b.is_negative) return b;
    return Distance{folded(Op::Min, a.most, b.most), std::min(a.limit, b.limit)};
  }

  /// Nearer than what is divided, where the divisor is known, or a factor of it.
  std::optional<Distance> quotient(const Binary& node, const Distance& a, const Distance& b) {
    if (!note(a.most) || !note(b.most)) return std::nullopt;
    const bool may_be_negative = a.is_negative || b.is_negative;
    if (const auto other = other_factor(node.a, node.b)) return other;
    const std::optional<int64_t> divisor = as_const_int(node.b);
    const Distance one{SizeExpr::constant(1), 1};
    if (!divisor || *divisor < 1) return sum({a.most, a.limit, may_be_negative}, one);
    Distance result{folded(Op::FloorDiv, a.most, SizeExpr::constant(*divisor)),
                    a.limit / static_cast<double>(*divisor), may_be_negative};
    return may_be_negative ? sum(result, one) : result;
  }

  /// A loop of p*q iterations divided by q is less than p.
  std::optional<Distance> other_factor(const Expr& loop, const Expr& divisor) {
    const Expr var = Undivided()(loop);
    const auto extent = as<Var>(var) != nullptr ? extents_.find(as<Var>(var)) : extents_.end();
    const Binary* count = extent != extents_.end() ? as<Binary>(extent->second) : nullptr;
    if (count == nullptr || count->op != Operator::Mul) return std::nullopt;
    const Expr by = Undivided()(divisor);
    if (equal_trees(Undivided()(count->b), by)) return distance_of(count->a);
    if (equal_trees(Undivided()(count->a), by)) return distance_of(count->b);
    return std::nullopt;
  }

  std::unordered_map<const Var*, Expr> extents_;
  std::unordered_map<const Var*, Distance> distances_;
  std::unordered_map<const ExprNode*, std::optional<Distance>> known_;
  std::vector<SizeExpr> near_;
};

}  // namespace

bool has_narrow_indices(const LaunchNest& nest, const HostLoops& around) {
  if (!around.empty()) return false;  // its number is an argument of 64 bits
  NarrowIndices walk;
  for (const For* axis : nest.axes)
    walk.add(axis->var, axis->extent);
  walk(nest.body);
  return walk.holds;
}

std::optional<SizeExpr> where_indices_are_narrow(const Kernel& kernel) {
  // An index of a strided argument has a stride in it, which nothing bounds.
  if (!kernel.strides.empty()) return std::nullopt;
  NarrowWhere walk(kernel);
  bool is_always = true;
  map_launches(kernel.body, [&](const Stmt& launched, const HostLoops& around) {
    const LaunchNest nest = launch_nest(launched);
    is_always = is_always && has_narrow_indices(nest, around);
    for (const For* loop : around)
      walk.add(loop->var, loop->extent);
    for (const For* axis : nest.axes)
      walk.add(axis->var, axis->extent);
    walk(nest.body);
    return launched;
  });
  for (const Kernel::WorkspaceBuffer& entry : kernel.workspace)
    walk.add_used(entry.offset_bytes);
  std::optional<SizeExpr> condition = walk.condition();
  constexpr size_t kMostNodes = 384;  // each call evaluates it, in a microsecond
  if (is_always || !condition || condition->nodes.size() > kMostNodes) return std::nullopt;
  const std::vector<int64_t> small(kernel.sizes.size(), 64);
  if (condition->evaluate(small) == 0) return std::nullopt;  // of no call that is worth it
  return condition;
}

}  // namespace kiln::codegen
