// Interval arithmetic over the loops of a launch, whose extents must have a largest value that is
// known. What is not index arithmetic on loop variables, constants and integers of at most 32 bits
// is not looked into.
#include "compiler/codegen/narrow_index.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

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

class NarrowIndices : public Visitor {
 public:
  bool holds = true;

  void add(const VarRef& var, const Expr& extent) {
    (*this)(extent);
    if (const std::optional<Range> count = range_of(extent))
      ranges_[var.get()] = {0, std::max<int64_t>(count->max - 1, 0)};
  }

 private:
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
    holds = range_of(Expr(&node)).has_value();
  }

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
    if (const Cast* cast = as<Cast>(expr)) return range_of_cast(*cast);
    return std::nullopt;
  }

  std::optional<Range> range_of_cast(const Cast& cast) {
    const DType from = cast.value->type.element;
    if (is_wide(from)) return range_of(cast.value);
    const bool is_signed = is_signed_int(from);
    if (!is_int(from) || (!is_signed && bits_of(from) == 32)) return std::nullopt;
    const int64_t most = (int64_t{1} << (bits_of(from) - (is_signed ? 1 : 0))) - 1;
    return Range{is_signed ? -most - 1 : 0, most};
  }

  std::unordered_map<const Var*, Range> ranges_;
  std::unordered_map<const ExprNode*, std::optional<Range>> known_;
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

}  // namespace kiln::codegen
