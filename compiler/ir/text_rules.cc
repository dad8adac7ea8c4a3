// Rules that printer and parser share, so that text -> tree -> text is the same text: which
// operands of an operator share a type, what shows its own type, and how constants are spelled,
// with the fewest digits that give the value back.
#include "compiler/ir/text_rules.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/mutator.h"
#include "runtime/core/small_float.h"

namespace kiln::ir {
namespace {

class CollectVars : public Visitor {
 public:
  std::vector<VarRef> vars;

 private:
  using Visitor::visit;
  void visit(const Var& var) override {
    if (std::find(vars.begin(), vars.end(), VarRef(&var)) == vars.end()) vars.push_back(&var);
  }
};

class FindStore : public Visitor {
 public:
  explicit FindStore(const BufferRef& buffer) : buffer_(buffer) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Store& store) override { found = found || store.buffer == buffer_; }
  void visit(const Atomic& node) override { found = found || node.buffer == buffer_; }
  const BufferRef& buffer_;
};

/// A number that is seen to be floating.
std::string with_point(std::string digits) {
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

/// The fewest digits that give the value back in a type of 8 or 16 bits.
std::string small_number_text(DType type, double value) {
  if (value == std::trunc(value) && std::abs(value) < 1e6) return fmt::format("{:.1f}", value);
  for (int precision = 1; precision < 9; ++precision) {
    std::string digits = fmt::format("{:.{}g}", value, precision);
    if (round_to(type, std::stod(digits)) == value) return with_point(std::move(digits));
  }
  return with_point(fmt::format("{}", value));
}

/// A float32 is held as a double, and written with the digits of a float: 0.1, not
/// 0.10000000149011612.
std::string number_text(DType type, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (bits_of(type) < 32) return small_number_text(type, value);
  const auto narrow = static_cast<float>(value);
  const bool as_float = type != DType::Float64 && static_cast<double>(narrow) == value;
  std::string text = as_float ? fmt::format("{}", narrow) : fmt::format("{}", value);
  return with_point(std::move(text));
}

}  // namespace

SharedType shared_type_of(Operator op) {
  switch (language::row_of(op).type_rule) {
    case language::TypeRule::Compare:
    case language::TypeRule::Bits:
    case language::TypeRule::FromBits:
    case language::TypeRule::FloatTest: return {0, false};
    case language::TypeRule::Choose: return {1, true};
    default: return {0, true};
  }
}

bool is_anchored(const Expr& expr) {
  if (as<IntImm>(expr)) return expr->type.element == DType::Bool;
  if (as<FloatImm>(expr)) return false;
  if (const Broadcast* node = as<Broadcast>(expr)) return is_anchored(node->value);
  if (const Binary* node = as<Binary>(expr)) {
    return !shared_type_of(node->op).is_result || is_anchored(node->a) || is_anchored(node->b);
  }
  if (const Call* node = as<Call>(expr)) {
    const SharedType shared = shared_type_of(node->op);
    return !shared.is_result ||
           std::any_of(node->args.begin() + shared.first_operand, node->args.end(), is_anchored);
  }
  if (const VectorReduce* node = as<VectorReduce>(expr)) {
    return is_anchored(node->start) || is_anchored(node->vector);
  }
  return true;
}

std::vector<Expected> expected_operands(Operator op, const std::vector<Expr>& args,
                                        Expected expected) {
  const SharedType shared = shared_type_of(op);
  std::vector<Expected> result(args.size(), DType::Bool);
  const auto first = static_cast<std::ptrdiff_t>(shared.first_operand);
  if (shared.is_result && expected) {
    std::fill(result.begin() + first, result.end(), expected);
    return result;
  }
  const auto anchor = std::find_if(args.begin() + first, args.end(), is_anchored);
  const Expected type = anchor == args.end() ? std::nullopt : Expected((*anchor)->type.element);
  std::fill(result.begin() + first, result.end(), type);
  if (anchor != args.end()) result[static_cast<size_t>(anchor - args.begin())] = std::nullopt;
  return result;
}

std::string literal_text(const IntImm& imm, Expected expected) {
  const DType type = imm.type.element;
  if (type == DType::Bool) return imm.value != 0 ? "true" : "false";
  const std::string digits = type == DType::UInt64
                                 ? std::to_string(static_cast<uint64_t>(imm.value))
                                 : std::to_string(imm.value);
  if (type == expected.value_or(DType::Int64)) return digits;
  return fmt::format("{}:{}", digits, type);
}

std::string literal_text(const FloatImm& imm, Expected expected) {
  const DType type = imm.type.element;
  const std::string digits = number_text(type, imm.value);
  if (type == expected.value_or(DType::Float32)) return digits;
  return fmt::format("{}:{}", digits, type);
}

std::vector<VarRef> sizes_of(const std::vector<BufferRef>& parameters) {
  CollectVars collect;
  for (const BufferRef& parameter : parameters) {
    for (const Expr& extent : parameter->shape)
      collect(extent);
  }
  return std::move(collect.vars);
}

bool stores_to(const Stmt& body, const BufferRef& buffer) {
  FindStore find(buffer);
  find(body);
  return find.found;
}

}  // namespace kiln::ir
