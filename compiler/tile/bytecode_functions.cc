// Functions that are applied element by element, and reductions along a dimension.
#include "compiler/tile/bytecode_functions.h"

#include <array>
#include <bit>
#include <optional>

#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"

namespace kiln::tile {
namespace {

using language::Combiner;
using language::Operator;

constexpr uint8_t kUnordered = 0;  // a comparison of nan holds
constexpr uint8_t kOrdered = 1;
constexpr uint64_t kKeepSubnormal = 0;
constexpr uint64_t kFlushSubnormal = 1;  // what takes four more instructions an element otherwise

/// What a comparison is called.
std::optional<uint8_t> predicate_of(Operator function) {
  switch (function) {
    case Operator::Equal: return 0;
    case Operator::NotEqual: return 1;
    case Operator::Less: return kIsLess;
    case Operator::LessEqual: return 3;
    case Operator::Greater: return 4;
    case Operator::GreaterEqual: return 5;
    default: return std::nullopt;
  }
}

class FunctionWriter {
 public:
  FunctionWriter(CodeWriter& code, TypeNumber result, std::span<const Value> operands)
      : code_(code), result_(result), operands_(operands) {}

  Value floats(Operator function) {
    switch (function) {
      case Operator::Add: return rounded(kAddF);
      case Operator::Sub: return rounded(kSubF);
      case Operator::Mul: return rounded(kMulF);
      case Operator::Div: return rounded(kDivF);
      case Operator::Fma: return rounded(kFma);
      case Operator::Min: return flagged(kMinF, kWithNan);
      case Operator::Max: return flagged(kMaxF, kWithNan);
      case Operator::Sqrt: return rounded(kSqrt);
      case Operator::Exp2: return flagged(kExp2, kFlushSubnormal);
      case Operator::Rsqrt: return flagged(kRsqrt, kKeepSubnormal);
      // At most 2 ulp, as their specification says of them where it is not asked for less.
      case Operator::Exp: return extended(kExp, kInFull);
      case Operator::Log: return plain(kLog);
      case Operator::Tanh: return extended(kTanH, kInFull);
      case Operator::Negative: return plain(kNegF);
      default: KILN_CHECK(false);
    }
  }
  Value integers(Operator function) {
    switch (function) {
      case Operator::Add: return plain(kAddI, {kMayWrap});
      case Operator::Sub: return plain(kSubI, {kMayWrap});
      case Operator::Mul: return plain(kMulI, {kMayWrap});
      case Operator::Min: return plain(kMinI, {kSigned});
      case Operator::Max: return plain(kMaxI, {kSigned});
      case Operator::Negative: return extended(kNegI, kMayWrap);
      default: KILN_CHECK(false);
    }
  }
  Value bools(Operator function) {
    switch (function) {
      case Operator::And: return plain(kAndI);
      case Operator::Or: return plain(kOrI);
      case Operator::Not: return negated();
      default: KILN_CHECK(false);
    }
  }
  Value choice() { return plain(kSelect); }
  Value comparison(uint8_t predicate, DType type) {
    if (!is_float(type)) return plain(kCmpI, {predicate, kSigned});
    const bool is_unequal = predicate == predicate_of(Operator::NotEqual);
    return plain(kCmpF, {predicate, is_unequal ? kUnordered : kOrdered});
  }

 private:
  Value plain(Opcode opcode, std::initializer_list<uint8_t> attributes = {}) {
    begin(opcode);
    for (const uint8_t attribute : attributes)
      code_.out().byte(attribute);
    return finished();
  }
  Value flagged(Opcode opcode, uint64_t flags) {
    begin(opcode);
    code_.out().number(flags);
    return finished();
  }
  /// With an attribute that the first version does not have.
  Value extended(Opcode opcode, uint8_t attribute) {
    begin(opcode);
    code_.added(attribute);
    return finished();
  }
  Value rounded(Opcode opcode) {
    begin(opcode);
    code_.out().number(kKeepSubnormal);
    code_.out().byte(kToNearest);
    return finished();
  }
  /// True is what anything equals itself.
  Value negated() {
    const Value operand = operands_[0];
    const Value truth = code_.plain(kCmpI, result_, {0, kUnsigned}, {operand, operand});
    return code_.plain(kXOrI, result_, {}, {operand, truth});
  }

  void begin(Opcode opcode) {
    code_.begin(opcode);
    code_.out().number(result_);
  }
  Value finished() {
    for (const Value operand : operands_)
      code_.out().number(operand);
    return code_.made();
  }

  CodeWriter& code_;
  const TypeNumber result_;
  const std::span<const Value> operands_;
};

/// A float's bits as a signed number is written, its sign last.
uint64_t folded(uint32_t bits) { return uint64_t{bits} << 1; }

void write_identity(CodeWriter& code, Combiner combiner, DType type) {
  Bytes& out = code.out();
  const language::Scalar identity = language::identity_of(combiner, type);
  out.byte(is_float(type) ? kFloatTag : kIntegerTag);
  out.number(code.types.element(type));
  if (is_float(type)) {
    out.number(folded(std::bit_cast<uint32_t>(static_cast<float>(identity.floating))));
  } else {
    out.number(static_cast<uint32_t>(identity.integer));
  }
}

}  // namespace

Value write_function(CodeWriter& code, Operator function, DType type, TypeNumber result,
                     std::span<const Value> operands) {
  FunctionWriter writer(code, result, operands);
  if (function == Operator::Select) return writer.choice();
  if (const auto predicate = predicate_of(function)) return writer.comparison(*predicate, type);
  if (type == DType::Bool) return writer.bools(function);
  return is_float(type) ? writer.floats(function) : writer.integers(function);
}

Value write_reduce(CodeWriter& code, Combiner combiner, DType type, TypeNumber result,
                   Value operand, uint32_t dimension) {
  Bytes& out = code.out();
  code.begin(kReduce);
  out.number(1);
  out.number(result);
  out.number(dimension);
  out.number(1);
  write_identity(code, combiner, type);
  out.number(1);
  out.number(operand);
  const TypeNumber element = code.scalar(type);
  const std::array<TypeNumber, 2> both = {element, element};
  code.region(both, [&] {
    const std::array<Value, 2> pair = {code.next - 2, code.next - 1};
    const Operator function = language::row_of(combiner).op;
    const Value whole = write_function(code, function, type, element, pair);
    code.begin(kYield);
    code.out().number(0);
    code.write_values({&whole, 1});
  });
  return code.made();
}

}  // namespace kiln::tile
