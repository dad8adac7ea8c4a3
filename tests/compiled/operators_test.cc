#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"
#include "tests/support/run_on_cpu.h"

namespace kiln {
namespace {

using namespace ir;
using language::Scalar;
using testing::HostTensor;

constexpr int kLanes = 16;

std::vector<DType> all_types() {
  std::vector<DType> types;
  for (int i = 1; i <= 15; ++i) {
    types.push_back(*dtype_from_number(i));
  }
  return types;
}

/// Ordinary values and all that is at an edge.
std::vector<Scalar> interesting(DType type) {
  if (type == DType::Bool) return {Scalar::of_bool(false), Scalar::of_bool(true)};
  std::vector<Scalar> values;
  if (is_int(type)) {
    // Unsigned, since the neighbours of the highest number wrap.
    const uint64_t highest =
        is_signed_int(type) ? (uint64_t{1} << (bits_of(type) - 1)) - 1 : ~uint64_t{0};
    const auto of = [](int64_t value) { return static_cast<uint64_t>(value); };
    for (const uint64_t value :
         {of(0), of(1), of(-1), of(2), of(-2), of(3), of(7), of(-7), of(31), of(64), of(100),
          of(-100), of(12345), highest, highest - 1, highest + 1, highest + 2}) {
      values.push_back(Scalar::of_int(type, static_cast<int64_t>(value)));
    }
    return values;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double value :
       {0.0,   -0.0,   1.0,   -1.0,  0.5,    -0.5, 2.5,      -2.5,      3.5,   1.0 / 3, -7.25,
        10.0,  90.0,   -90.0, 200.0, -103.5, 1e-3, 448.0,    464.0,     465.0, 65504.0, 1e5,
        -1e20, 3.0e38, 1e300, 1e-39, -1e-45, 5e-8, infinity, -infinity, nan}) {
    values.push_back(Scalar::of_float(type, value));
  }
  return values;
}

HostTensor tensor(DType type, const std::vector<Scalar>& values) {
  HostTensor result = testing::zeros(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    language::write_element(result, static_cast<int64_t>(i), values[i]);
  }
  return result;
}

std::string text_of(const Scalar& value) {
  return is_float(value.type) ? fmt::format("{}", value.floating)
                              : fmt::format("{}", value.integer);
}

/// How far apart two floats of a type are, in steps from one to the next; 0 for two nans.
double distance(const Scalar& a, const Scalar& b) {
  if (std::isnan(a.floating) && std::isnan(b.floating)) return 0;
  if (a.floating == b.floating)
    return std::signbit(a.floating) == std::signbit(b.floating) ? 0 : 0.5;
  const double infinity = std::numeric_limits<double>::infinity();
  if (!std::isfinite(a.floating) || !std::isfinite(b.floating)) {
    // Where a result is next to the largest number, infinity is one step away.
    const double finite = std::isfinite(a.floating) ? a.floating : b.floating;
    if (std::isnan(a.floating) || std::isnan(b.floating) || !std::isfinite(finite)) return infinity;
    return Scalar::of_float(a.type, finite * 1.01).floating == a.floating ? 1 : infinity;
  }
  const int mantissa = a.type == DType::Float64      ? 52
                       : a.type == DType::Float32    ? 23
                       : a.type == DType::Float16    ? 10
                       : a.type == DType::BFloat16   ? 7
                       : a.type == DType::Float8E5M2 ? 2
                                                     : 3;
  const int least = a.type == DType::Float64        ? -1022
                    : a.type == DType::Float32      ? -126
                    : a.type == DType::BFloat16     ? -126
                    : a.type == DType::Float8E4M3FN ? -6
                                                    : -14;
  const double largest = std::max(std::fabs(a.floating), std::fabs(b.floating));
  const int exponent = std::max(std::ilogb(largest), least);
  return std::fabs(a.floating - b.floating) / std::ldexp(1.0, exponent - mantissa);
}

double allowed(Operator op, DType type) {
  const std::string_view accuracy = language::row_of(op).accuracy;
  if (accuracy == "exact") return 0;
  const double steps = std::atof(std::string(accuracy).c_str());
  // The oracle rounds a double once; a small float rounds what is rounded to float32 already.
  return bits_of(type) < 32 ? 1 : steps;
}

/// out[i] = value(i), once with a loop over elements and once over vectors.
struct Both {
  BufferRef scalar;
  BufferRef vector;
};

class OperatorKernel {
 public:
  explicit OperatorKernel(int64_t count) : count_(count) {}

  BufferRef input(DType type) { return parameter(type, false); }
  void output(DType type, const std::function<Expr(Expr index)>& value) {
    const BufferRef scalar = parameter(type, true);
    const BufferRef vector = parameter(type, true);
    const VarRef i = Var::make("i");
    body_.push_back(
        For::make(i, index(count_), LoopKind::Serial, Store::make(scalar, {i}, value(i))));
    const VarRef j = Var::make("j");
    const Expr row = Ramp::make(j * kLanes, index(1), kLanes);
    body_.push_back(For::make(j, index(count_ / kLanes), LoopKind::Serial,
                              Store::make(vector, {row}, value(row))));
  }
  Kernel take() {
    kernel_.name = "operators";
    kernel_.body = Block::make(body_);
    return kernel_;
  }

 private:
  BufferRef parameter(DType type, bool is_output) {
    const std::string name = "p" + std::to_string(kernel_.parameters.size());
    kernel_.parameters.push_back(Buffer::make(name, type, {index(count_)}, Scope::Global));
    kernel_.is_output.push_back(is_output);
    return kernel_.parameters.back();
  }

  int64_t count_;
  Kernel kernel_;
  std::vector<Stmt> body_;
};

/// Operand values: all pairs, with a third that runs along.
struct Operands {
  std::vector<Scalar> a, b, c, condition;
};

Operands operands_of(DType type) {
  const std::vector<Scalar> values = interesting(type);
  Operands operands;
  size_t next = 0;
  for (const Scalar& a : values) {
    for (const Scalar& b : values) {
      operands.a.push_back(a);
      operands.b.push_back(b);
      operands.c.push_back(values[(next * 7) % values.size()]);
      operands.condition.push_back(Scalar::of_bool(next % 3 == 0));
      ++next;
    }
  }
  while (operands.a.size() % kLanes != 0) {
    for (auto* list : {&operands.a, &operands.b, &operands.c, &operands.condition}) {
      list->push_back(list->front());
    }
  }
  return operands;
}

bool takes(Operator op, DType type) {
  const language::OperatorRow& row = language::row_of(op);
  if (row.type_rule == language::TypeRule::Choose) return true;
  std::vector<DType> operands(static_cast<size_t>(row.arity), type);
  try {
    language::result_type(op, operands);
    return true;
  } catch (const Error&) {
    return false;
  }
}

class OperatorsOf : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, OperatorsOf, ::testing::ValuesIn(all_types()),
                         [](const auto& info) { return std::string(name_of(info.param)); });

Expr applied(Operator op, const std::vector<Expr>& args) {
  const auto rule = language::row_of(op).type_rule;
  const bool is_binary =
      args.size() == 2 && rule != language::TypeRule::SameFloat && op != Operator::Pow;
  const bool is_named = op == Operator::Atan2 || op == Operator::Pow || op == Operator::Fmod ||
                        op == Operator::Hypot || op == Operator::CopySign ||
                        op == Operator::Ldexp || op == Operator::NextAfter;
  if (is_binary || op == Operator::Div) return Binary::make(op, args[0], args[1]);
  KILN_CHECK(args.size() != 2 || is_named);
  return Call::make(op, args);
}

void expect_result(Operator op, const Scalar& actual, const std::vector<Scalar>& args,
                   std::string_view how) {
  const Scalar expected = language::apply_operator(op, args);
  std::string shown;
  for (const Scalar& arg : args) {
    shown += " " + text_of(arg);
  }
  if (!is_float(expected.type)) {
    EXPECT_EQ(actual.integer, expected.integer)
        << language::row_of(op).spelling << shown << " by " << how;
    return;
  }
  EXPECT_LE(distance(actual, expected), allowed(op, expected.type))
      << language::row_of(op).spelling << shown << " by " << how << " is " << text_of(actual)
      << ", expected " << text_of(expected);
}

TEST_P(OperatorsOf, GiveWhatTheTableSays) {
  const DType type = GetParam();
  const Operands operands = operands_of(type);
  OperatorKernel kernel(static_cast<int64_t>(operands.a.size()));
  const BufferRef a = kernel.input(type);
  const BufferRef b = kernel.input(type);
  const BufferRef c = kernel.input(type);
  const BufferRef condition = kernel.input(DType::Bool);
  std::vector<Operator> emitted;
  for (const language::OperatorRow& row : language::operator_table()) {
    if (!takes(row.op, type)) continue;
    const bool chooses = row.type_rule == language::TypeRule::Choose;
    std::vector<BufferRef> sources = {a, b, c};
    if (chooses) sources = {condition, a, b};
    sources.resize(static_cast<size_t>(row.arity));
    std::vector<DType> types;
    for (const BufferRef& source : sources) {
      types.push_back(source->type);
    }
    kernel.output(language::result_type(row.op, types), [&](const Expr& at) {
      std::vector<Expr> args;
      for (const BufferRef& source : sources) {
        args.push_back(Load::make(source, {at}));
      }
      return applied(row.op, args);
    });
    emitted.push_back(row.op);
  }
  const Kernel lowered = kernel.take();
  std::vector<HostTensor> tensors = {tensor(type, operands.a), tensor(type, operands.b),
                                     tensor(type, operands.c),
                                     tensor(DType::Bool, operands.condition)};
  tensors.resize(lowered.parameters.size());
  testing::run_artifact(testing::compile_lowered(lowered), tensors);

  for (size_t n = 0; n < emitted.size(); ++n) {
    const language::OperatorRow& row = language::row_of(emitted[n]);
    for (size_t i = 0; i < operands.a.size(); ++i) {
      std::vector<Scalar> args = {operands.a[i], operands.b[i], operands.c[i]};
      if (row.type_rule == language::TypeRule::Choose) {
        args = {operands.condition[i], operands.a[i], operands.b[i]};
      }
      args.resize(static_cast<size_t>(row.arity));
      const auto at = static_cast<int64_t>(i);
      expect_result(emitted[n], language::read_element(tensors[4 + 2 * n], at), args, "elements");
      expect_result(emitted[n], language::read_element(tensors[5 + 2 * n], at), args, "vectors");
    }
    if (HasFailure()) break;  // one operator's differences are enough to read
  }
}

/// Results that need no library to know, which the oracle, elements and vectors all give: in
/// float32 to the bit, in float64, where functions are those of the C library, as accurate as they
/// are.
struct KnownResult {
  Operator op;
  double operand;
  double result;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr KnownResult kKnownResults[] = {
    {Operator::Exp, 0, 1},
    {Operator::Exp, -kInfinity, 0},
    {Operator::Expm1, -0.0, -0.0},
    {Operator::Expm1, 0x1p-60, 0x1p-60},
    {Operator::Expm1, 0x1p-1074, 0x1p-1074},
    {Operator::Expm1, -0x1p-149, -0x1p-149},
    {Operator::Expm1, -200, -1},
    {Operator::Expm1, -kInfinity, -1},
    {Operator::Expm1, 800, kInfinity},
    {Operator::Expm1, kInfinity, kInfinity},
    {Operator::Cbrt, -0.0, -0.0},
    {Operator::Cbrt, 27, 3},
    {Operator::Cbrt, -27, -3},
    {Operator::Cbrt, 0x1p-126, 0x1p-42},
    {Operator::Cbrt, -0x1p-147, -0x1p-49},
    {Operator::Cbrt, 0x1p126, 0x1p42},
    {Operator::Cbrt, -kInfinity, -kInfinity},
    {Operator::Log, 1, 0},
    {Operator::Log, 0, -kInfinity},
    {Operator::Log1p, -0.0, -0.0},
    {Operator::Log1p, 0x1p-60, 0x1p-60},
    {Operator::Tanh, -kInfinity, -1},
    {Operator::Erf, 10, 1},
};

TEST(Operators, HaveTheResultsThatAreKnown) {
  for (const DType type : {DType::Float32, DType::Float64}) {
    for (const auto& [op, operand, result] : kKnownResults) {
      const Scalar given = Scalar::of_float(type, operand);
      const Scalar expected = Scalar::of_float(type, result);
      OperatorKernel kernel(kLanes);
      const BufferRef a = kernel.input(type);
      const Operator applied_op = op;
      kernel.output(type,
                    [&](const Expr& at) { return applied(applied_op, {Load::make(a, {at})}); });
      std::vector<HostTensor> tensors = {tensor(type, std::vector(size_t{kLanes}, given)), {}, {}};
      testing::run_artifact(testing::compile_lowered(kernel.take()), tensors);
      for (const Scalar& actual :
           {language::apply_operator(op, {&given, 1}), language::read_element(tensors[1], 0),
            language::read_element(tensors[2], 0)}) {
        const bool is_own = type == DType::Float32 || result == 0 || std::isinf(result);
        EXPECT_LE(distance(actual, expected), is_own ? 0 : allowed(op, type))
            << language::row_of(op).spelling << " of " << text_of(given) << " is "
            << text_of(actual) << " in " << name_of(type);
      }
    }
  }
}

TEST_P(OperatorsOf, CastToEveryType) {
  const DType from = GetParam();
  std::vector<Scalar> values = interesting(from);
  while (values.size() % kLanes != 0) {
    values.push_back(values[0]);
  }
  OperatorKernel kernel(static_cast<int64_t>(values.size()));
  const BufferRef a = kernel.input(from);
  for (const DType to : all_types()) {
    kernel.output(to, [&](const Expr& at) {
      const Expr value = Load::make(a, {at});
      return Cast::make(value->type.lanes == 1 ? Type{to, 1} : Type{to, kLanes}, value);
    });
  }
  const Kernel lowered = kernel.take();
  std::vector<HostTensor> tensors = {tensor(from, values)};
  tensors.resize(lowered.parameters.size());
  testing::run_artifact(testing::compile_lowered(lowered), tensors);

  for (size_t n = 0; n < all_types().size(); ++n) {
    const DType to = all_types()[n];
    for (size_t i = 0; i < values.size(); ++i) {
      const Scalar expected = language::convert(to, values[i]);
      for (const size_t output : {1 + 2 * n, 2 + 2 * n}) {
        const Scalar actual = language::read_element(tensors[output], static_cast<int64_t>(i));
        const bool same =
            is_float(to) ? distance(actual, expected) == 0 : actual.integer == expected.integer;
        EXPECT_TRUE(same) << name_of(from) << " " << text_of(values[i]) << " as " << name_of(to)
                          << " is " << text_of(actual) << ", expected " << text_of(expected);
      }
    }
  }
}

}  // namespace
}  // namespace kiln
