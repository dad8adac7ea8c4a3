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
#include <vector>

#include "compiler/codegen/size_expr.h"
#include "compiler/ir/build.h"
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
      return Range{std::min(a.min, int64_t{0}), std::max(a.max, int64_t{0})};
    }
    case Operator::FloorMod:
    case Operator::TruncMod: {
      if (b.min < 1) return std::nullopt;
      const bool may_be_negative = op == Operator::TruncMod && a.min < 0;
      return Range{may_be_negative ? 1 - b.max : 0, b.max - 1};
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

/// How far a value lies from 0 at most, as the call's sizes have it; kTooFar for all beyond it, so
/// that no product of sizes overflows.
struct Distance {
  SizeExpr most;
  bool is_negative = false;  // perhaps
};
constexpr int64_t kTooFar = int64_t{1} << 31;

using Op = SizeExpr::Op;
SizeExpr folded(Op op, const SizeExpr& a, const SizeExpr& b) {
  const SizeExpr result = SizeExpr::binary(op, a, b);
  return constant_of(a) && constant_of(b) ? SizeExpr::constant(result.evaluate({})) : result;
}
SizeExpr at_least_1(const SizeExpr& a) { return folded(Op::Max, a, SizeExpr::constant(1)); }
SizeExpr bounded(const SizeExpr& a) { return folded(Op::Min, a, SizeExpr::constant(kTooFar)); }

/// At calls of which it notes what must not be too far. A value that is made of others by sums and
/// products is as far as each of them, so that what nothing is made of is enough.
class NarrowWhere : public WideNodes {
 public:
  explicit NarrowWhere(const Kernel& kernel) {
    for (const VarRef& size : kernel.sizes) {
      const auto place = static_cast<int64_t>(distances_.size());
      distances_.emplace(size.get(), Distance{bounded(SizeExpr::scalar(place))});
    }
  }

  std::optional<SizeExpr> condition() const {
    if (!holds) return std::nullopt;
    SizeExpr all = SizeExpr::constant(1);
    for (const SizeExpr& each : near_) {
      const SizeExpr is_near = SizeExpr::binary(Op::Less, each, SizeExpr::constant(kTooFar));
      all = constant_of(all) ? is_near : SizeExpr::binary(Op::And, all, is_near);
    }
    return all;
  }

 private:
  void add_loop(const VarRef& var, const Expr& extent) override {
    if (const std::optional<Distance> count = distance_of(extent))
      distances_.insert_or_assign(var.get(), Distance{count->most});
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
      return Distance{SizeExpr::constant(std::abs(imm->value)), imm->value < 0};
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
      if (!a || !b) return std::nullopt;
      return Distance{folded(Op::Max, a->most, b->most), a->is_negative || b->is_negative};
    }
    if (const Cast* cast = as<Cast>(expr)) {
      const DType from = cast->value->type.element;
      if (is_wide(from)) return distance_of(cast->value);
      const std::optional<Range> range = range_of_narrow(from);
      // What data says of more bits may be anything, and a product with a size too far.
      if (!range || bits_of(from) > 8) return std::nullopt;
      return Distance{SizeExpr::constant(range->max), range->min < 0};
    }
    return std::nullopt;
  }

  std::optional<Distance> combined_distance(const Binary& node, const Distance& a,
                                            const Distance& b) {
    const bool may_be_negative = a.is_negative || b.is_negative;
    switch (node.op) {
      case Operator::Add:
        return Distance{bounded(folded(Op::Add, a.most, b.most)), may_be_negative};
      case Operator::Sub: return Distance{bounded(folded(Op::Add, a.most, b.most)), true};
      case Operator::Mul:
        return Distance{bounded(folded(Op::Mul, at_least_1(a.most), at_least_1(b.most))),
                        may_be_negative};
      case Operator::Min:
      case Operator::Max: return Distance{folded(Op::Max, a.most, b.most), may_be_negative};
      case Operator::FloorDiv:
      case Operator::TruncDiv: return quotient(node, a, b, may_be_negative);
      case Operator::FloorMod:
      case Operator::TruncMod:
        if (!note(a.most)) return std::nullopt;
        return Distance{b.most, may_be_negative};
      default: return std::nullopt;
    }
  }

  /// Nearer than what is divided, where the divisor is known.
  std::optional<Distance> quotient(const Binary& node, const Distance& a, const Distance& b,
                                   bool may_be_negative) {
    if (!note(a.most) || !note(b.most)) return std::nullopt;
    const std::optional<int64_t> divisor = as_const_int(node.b);
    if (!divisor || *divisor < 1) return Distance{at_least_1(a.most), may_be_negative};
    const SizeExpr most = folded(Op::FloorDiv, a.most, SizeExpr::constant(*divisor));
    return Distance{may_be_negative ? folded(Op::Add, most, SizeExpr::constant(1)) : most,
                    may_be_negative};
  }

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
  constexpr size_t kMostNodes = 256;  // each call evaluates it
  if (is_always || !condition || condition->nodes.size() > kMostNodes) return std::nullopt;
  const std::vector<int64_t> small(kernel.sizes.size(), 64);
  if (condition->evaluate(small) == 0) return std::nullopt;  // of no call that is worth it
  return condition;
}

}  // namespace kiln::codegen
