#include "compiler/language/evaluate/evaluate.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "compiler/language/evaluate/scalar.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"
#include "tests/support/tensors.h"

namespace kiln::language::evaluation {
namespace {

using testing::expect_error;
using testing::tensor_of;
using testing::values_of;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<HostTensor> run(const TextKernel& kernel, std::vector<int64_t> sizes,
                            const std::vector<HostTensor>& inputs) {
  return evaluate(kernel.kernel.definition, kernel.kernel.names, sizes, inputs);
}

template <typename T>
std::vector<T> run_one(std::string_view text, std::vector<int64_t> sizes,
                       const std::vector<HostTensor>& inputs) {
  return values_of<T>(run(testing::kernel_of(text), std::move(sizes), inputs)[0]);
}

TEST(Evaluate, ComputesTheTestKernels) {
  const HostTensor x = tensor_of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values_of<float>(run(testing::test_kernel("cumsum"), {3, 2}, {x})[0]),
            (std::vector<float>{1, 2, 4, 6, 9, 12}));
  EXPECT_EQ(values_of<float>(run(testing::test_kernel("two_stage_scan"), {3, 2}, {x})[0]),
            (std::vector<float>{1, 2, 5, 8, 15, 22}));
  const std::vector<HostTensor> two = run(testing::test_kernel("two_state_scan"), {3, 2, 1}, {x});
  EXPECT_EQ(values_of<float>(two[0]), (std::vector<float>{1, 2, 4, 6, 9, 12}));
  EXPECT_EQ(values_of<float>(two[1]), (std::vector<float>{0, 1, 5}));
  EXPECT_EQ(values_of<float>(run(testing::test_kernel("fibonacci"), {1, 6},
                                 {tensor_of<float>({2, 1}, {1, 1})})[0]),
            (std::vector<float>{1, 1, 2, 3, 5, 8}));
}

TEST(Evaluate, ComputesTheFourTransposesOfAProduct) {
  const HostTensor a = tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const HostTensor a_t = tensor_of<float>({3, 2}, {1, 4, 2, 5, 3, 6});
  const HostTensor b = tensor_of<float>({3, 2}, {7, 8, 9, 10, 11, 12});
  const HostTensor b_t = tensor_of<float>({2, 3}, {7, 9, 11, 8, 10, 12});
  const std::vector<float> product = {58, 64, 139, 154};
  // The sizes are in the order in which the parameters name them.
  EXPECT_EQ(values_of<float>(run(testing::test_kernel("matmul", "matmul"), {2, 3, 2}, {a, b})[0]),
            product);
  EXPECT_EQ(
      values_of<float>(run(testing::test_kernel("matmul", "matmul_ta"), {3, 2, 2}, {a_t, b})[0]),
      product);
  EXPECT_EQ(
      values_of<float>(run(testing::test_kernel("matmul", "matmul_tb"), {2, 3, 2}, {a, b_t})[0]),
      product);
  EXPECT_EQ(
      values_of<float>(run(testing::test_kernel("matmul", "matmul_tab"), {3, 2, 2}, {a_t, b_t})[0]),
      product);
}

TEST(Evaluate, ComputesSoftmaxAndWhere) {
  const std::vector<float> y = values_of<float>(
      run(testing::test_kernel("softmax"), {1, 3}, {tensor_of<float>({1, 3}, {0, 1, 2})})[0]);
  EXPECT_NEAR(y[0], 0.09003057, 1e-7);
  EXPECT_NEAR(y[1], 0.24472847, 1e-7);
  EXPECT_NEAR(y[2], 0.66524096, 1e-7);
  const std::vector<HostTensor> outputs =
      run(testing::test_kernel("elementwise", "where"), {3},
          {tensor_of<int32_t>({3}, {-4, 0, 7}), tensor_of<double>({3}, {1, 2, 3})});
  EXPECT_EQ(values_of<double>(outputs[0]), (std::vector<double>{-1, -2, 3}));
  EXPECT_EQ(values_of<int64_t>(outputs[1]), (std::vector<int64_t>{-2, 0, 2}));
}

TEST(Evaluate, RoundsAfterEveryOperation) {
  // 1 + 2^-24 is 1 in float32, so the difference is 0; in one rounding it would be 2^-24.
  EXPECT_EQ(run_one<float>("kernel k(A: float32[1]) -> (B: float32[1]) { B[i] = A[i] + 1 - 1 }", {},
                           {tensor_of<float>({1}, {0x1p-24F})}),
            std::vector<float>{0});
  // 2048 + 1 is 2048 in float16.
  EXPECT_EQ(run_one<float>("kernel k(A: float32[1]) -> (B: float32[1]) {\n"
                           "  B[i] = float32(float16(A[i]) + float16(1))\n"
                           "}",
                           {}, {tensor_of<float>({1}, {2048})}),
            std::vector<float>{2048});
}

TEST(Evaluate, ComputesOnlyTheChosenBranch) {
  EXPECT_EQ(run_one<float>("kernel k(A: float32[n]) -> (B: float32[n]) {\n"
                           "  B[i] = if_then_else(i > 0, A[i - 1], 7)\n"
                           "}",
                           {3}, {tensor_of<float>({3}, {1, 2, 3})}),
            (std::vector<float>{7, 1, 2}));
}

TEST(Evaluate, ReducesOverNothingToTheIdentity) {
  const auto reduced = [](const char* combiner) {
    return run_one<float>("kernel k(A: float32[n]) -> (B: float32[]) { B[] = " +
                              std::string(combiner) + "[k < n](A[k]) }",
                          {0}, {tensor_of<float>({0}, {})})[0];
  };
  EXPECT_EQ(reduced("sum"), 0);
  EXPECT_EQ(reduced("prod"), 1);
  EXPECT_EQ(reduced("min"), kInf);
  EXPECT_EQ(reduced("max"), -kInf);
}

TEST(Evaluate, ReducesOverNothingToTheLargestNumberWhereThereIsNoInfinity) {
  EXPECT_EQ(run_one<float>("kernel k(A: float8_e4m3fn[n]) -> (S: float32[]) {"
                           "  S[] = float32(max[r < n](A[r])) }",
                           {0}, {testing::zeros(DType::Float8E4M3FN, {0})}),
            std::vector<float>{-448});
}

TEST(Evaluate, ReducesOverDependentBounds) {
  EXPECT_EQ(run_one<float>("kernel k(A: float32[n]) -> (B: float32[n]) {\n"
                           "  B[i] = sum[i <= k < n](A[k])\n"
                           "}",
                           {3}, {tensor_of<float>({3}, {1, 2, 4})}),
            (std::vector<float>{7, 6, 4}));
}

TEST(Evaluate, KeepsLongScansOffTheStack) {
  const std::vector<float> ones(200'000, 1);
  const std::vector<float> sums = values_of<float>(
      run(testing::test_kernel("cumsum"), {200'000, 1}, {tensor_of<float>({200'000, 1}, ones)})[0]);
  EXPECT_EQ(sums.back(), 200'000);
}

TEST(Evaluate, RefusesToReadOutside) {
  expect_error(
      [] {
        run(testing::kernel_of(
                "kernel k(A: float32[n, m]) -> (B: float32[n]) { B[i] = A[i + 1, 0] }"),
            {2, 3}, {tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6})});
      },
      ErrorKind::InvalidArgument, "A[2, 0] is outside of A, which has shape (2, 3)");
}

TEST(Evaluate, StopsAtItsLimit) {
  const TextKernel kernel = testing::test_kernel("cumsum");
  const std::vector<int64_t> sizes = {100, 100};
  const std::vector<HostTensor> inputs = {testing::zeros(DType::Float32, {100, 100})};
  expect_error(
      [&] { evaluate(kernel.kernel.definition, kernel.kernel.names, sizes, inputs, 1'000); },
      ErrorKind::ResourceExhausted, "evaluating cumsum element by element takes too many steps");
}

Scalar integer(DType type, int64_t value) { return Scalar::of_int(type, value); }
Scalar number(DType type, double value) { return Scalar::of_float(type, value); }

int64_t apply_ints(Operator op, DType type, int64_t a, int64_t b) {
  const Scalar both[] = {integer(type, a), integer(type, b)};
  return apply_operator(op, both).integer;
}
double apply_floats(Operator op, double a, double b, DType type = DType::Float64) {
  const Scalar both[] = {number(type, a), number(type, b)};
  return apply_operator(op, both).floating;
}
double apply_float(Operator op, double a, DType type = DType::Float64) {
  const Scalar one[] = {number(type, a)};
  return apply_operator(op, one).floating;
}

TEST(Scalar, WrapsIntegersAtTheirWidth) {
  EXPECT_EQ(apply_ints(Operator::Add, DType::Int8, 127, 1), -128);
  EXPECT_EQ(apply_ints(Operator::Sub, DType::UInt8, 0, 1), 255);
  EXPECT_EQ(apply_ints(Operator::Mul, DType::Int32, 65'536, 65'536), 0);
  EXPECT_EQ(apply_ints(Operator::Add, DType::Int64, INT64_MAX, 1), INT64_MIN);
}

TEST(Scalar, DividesIntegersAsTheTableSays) {
  struct Row {
    int64_t a, b, floordiv, floormod, truncdiv, truncmod;
  };
  for (const Row& row :
       {Row{7, 2, 3, 1, 3, 1}, Row{-7, 2, -4, 1, -3, -1}, Row{7, -2, -4, -1, -3, 1},
        Row{-7, -2, 3, -1, 3, -1}, Row{6, -3, -2, 0, -2, 0}, Row{5, 0, 0, 0, 0, 0}}) {
    EXPECT_EQ(apply_ints(Operator::FloorDiv, DType::Int32, row.a, row.b), row.floordiv);
    EXPECT_EQ(apply_ints(Operator::FloorMod, DType::Int32, row.a, row.b), row.floormod);
    EXPECT_EQ(apply_ints(Operator::TruncDiv, DType::Int32, row.a, row.b), row.truncdiv);
    EXPECT_EQ(apply_ints(Operator::TruncMod, DType::Int32, row.a, row.b), row.truncmod);
  }
  EXPECT_EQ(apply_ints(Operator::TruncDiv, DType::Int64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(apply_ints(Operator::FloorDiv, DType::Int8, -128, -1), -128);
  EXPECT_EQ(static_cast<uint64_t>(apply_ints(Operator::FloorDiv, DType::UInt64, -1, 2)),
            UINT64_MAX / 2);
}

TEST(Scalar, ShiftsPastTheWidth) {
  EXPECT_EQ(apply_ints(Operator::ShiftLeft, DType::Int32, 1, 31), INT32_MIN);
  EXPECT_EQ(apply_ints(Operator::ShiftLeft, DType::Int32, 1, 32), 0);
  EXPECT_EQ(apply_ints(Operator::ShiftLeft, DType::Int32, 1, -1), 0);
  EXPECT_EQ(apply_ints(Operator::ShiftRight, DType::Int32, -8, 1), -4);
  EXPECT_EQ(apply_ints(Operator::ShiftRight, DType::Int32, -8, 99), -1);
  EXPECT_EQ(apply_ints(Operator::ShiftRight, DType::UInt8, 255, 8), 0);
}

TEST(Scalar, TakesTheBitsOfAFloatThatTensorCoresRead) {
  const auto one = [](DType type, double value) {
    const Scalar operand[] = {Scalar::of_float(type, value)};
    return apply_operator(Operator::Tf32, operand).floating;
  };
  EXPECT_EQ(one(DType::Float32, 1 + 0x1p-10 + 0x1p-11), 1 + 0x1p-10);
  EXPECT_EQ(one(DType::Float32, -(1 + 0x1.fp-11)), -1);
  EXPECT_EQ(one(DType::Float32, 0x1.fffffep127), 0x1.ffcp127);
  EXPECT_EQ(one(DType::Float32, 0x1p-149), 0);
  EXPECT_TRUE(std::isnan(one(DType::Float32, std::nan(""))));
  EXPECT_TRUE(std::isinf(one(DType::Float32, -INFINITY)));
  EXPECT_EQ(one(DType::Float64, 1 + 0x1p-40), 1 + 0x1p-40);
  EXPECT_EQ(one(DType::Float16, 1 + 0x1p-10), 1 + 0x1p-10);
}

TEST(Scalar, CountsBits) {
  const auto one = [](Operator op, DType type, int64_t value) {
    const Scalar operand[] = {integer(type, value)};
    return apply_operator(op, operand).integer;
  };
  EXPECT_EQ(one(Operator::PopCount, DType::Int8, -1), 8);
  EXPECT_EQ(one(Operator::Clz, DType::Int32, 0), 32);
  EXPECT_EQ(one(Operator::Clz, DType::UInt8, 1), 7);
  EXPECT_EQ(one(Operator::Clz, DType::Int64, -1), 0);
  EXPECT_EQ(one(Operator::BitNot, DType::UInt8, 1), 254);
  EXPECT_EQ(one(Operator::Abs, DType::Int8, -128), -128);
}

TEST(Scalar, LetsNanThroughMinAndMax) {
  for (const Operator op : {Operator::Min, Operator::Max}) {
    EXPECT_TRUE(std::isnan(apply_floats(op, kNan, 1)));
    EXPECT_TRUE(std::isnan(apply_floats(op, 1, kNan)));
  }
  EXPECT_EQ(apply_floats(Operator::Min, -kInf, 3), -kInf);
  EXPECT_EQ(apply_floats(Operator::Max, 2, 3), 3);
}

TEST(Scalar, TakesFloorsOfFloatsAsPythonDoes) {
  EXPECT_EQ(apply_floats(Operator::FloorDiv, -7.5, 2), -4);
  EXPECT_EQ(apply_floats(Operator::FloorMod, -7.5, 2), 0.5);
  EXPECT_EQ(apply_floats(Operator::FloorDiv, 1.0, 0.1), 9);
  EXPECT_EQ(apply_floats(Operator::FloorMod, 7.5, -2), -0.5);
  EXPECT_EQ(apply_floats(Operator::Fmod, -7.5, 2), -1.5);
}

TEST(Scalar, RoundsHalvesToEven) {
  EXPECT_EQ(apply_float(Operator::Round, 0.5), 0);
  EXPECT_EQ(apply_float(Operator::Round, 1.5), 2);
  EXPECT_EQ(apply_float(Operator::Round, -2.5), -2);
}

TEST(Scalar, RoundsToNarrowTypes) {
  EXPECT_EQ(apply_floats(Operator::Add, 256, 1, DType::BFloat16), 256);
  EXPECT_EQ(apply_floats(Operator::Mul, 65'504, 2, DType::Float16), kInf);
  EXPECT_EQ(apply_floats(Operator::Div, 1, 3, DType::Float16), 0.333251953125);
  EXPECT_EQ(apply_floats(Operator::Div, 1, 3, DType::Float32), static_cast<double>(1.0F / 3.0F));
}

TEST(Scalar, TestsSpecialValues) {
  const auto holds = [](Operator op, double value) {
    const Scalar operand[] = {number(DType::Float32, value)};
    return apply_operator(op, operand).integer != 0;
  };
  EXPECT_TRUE(holds(Operator::IsNan, kNan));
  EXPECT_FALSE(holds(Operator::IsNan, kInf));
  EXPECT_TRUE(holds(Operator::IsInf, -kInf));
  EXPECT_FALSE(holds(Operator::IsFinite, kNan));
  const Scalar nans[] = {number(DType::Float32, kNan), number(DType::Float32, kNan)};
  EXPECT_EQ(apply_operator(Operator::Equal, nans).integer, 0);
  EXPECT_EQ(apply_operator(Operator::NotEqual, nans).integer, 1);
  EXPECT_EQ(apply_operator(Operator::LessEqual, nans).integer, 0);
}

TEST(Scalar, Casts) {
  EXPECT_EQ(convert(DType::Int8, number(DType::Float32, 300)).integer, 127);
  EXPECT_EQ(convert(DType::UInt8, number(DType::Float32, -3)).integer, 0);
  EXPECT_EQ(convert(DType::Int32, number(DType::Float32, kNan)).integer, 0);
  EXPECT_EQ(convert(DType::Int32, number(DType::Float64, -2.9)).integer, -2);
  EXPECT_EQ(convert(DType::Int8, integer(DType::Int32, 300)).integer, 44);
  EXPECT_EQ(convert(DType::Bool, number(DType::Float32, 0.25)).integer, 1);
  EXPECT_EQ(convert(DType::Float32, integer(DType::Int32, 16'777'217)).floating, 16'777'216);
  EXPECT_EQ(convert(DType::Float64, integer(DType::UInt64, -1)).floating, 0x1p64);
}

TEST(Scalar, MatchesTheMathLibrary) {
  const std::pair<Operator, double (*)(double)> table[] = {
      {Operator::Exp, std::exp},     {Operator::Log, std::log},   {Operator::Tanh, std::tanh},
      {Operator::Erf, std::erf},     {Operator::Sin, std::sin},   {Operator::Log1p, std::log1p},
      {Operator::Floor, std::floor}, {Operator::Ceil, std::ceil}, {Operator::Sqrt, std::sqrt},
      {Operator::Atan, std::atan},   {Operator::Cosh, std::cosh}, {Operator::Exp2, std::exp2},
  };
  for (const auto& [op, function] : table) {
    EXPECT_EQ(apply_float(op, 0.7), function(0.7)) << row_of(op).spelling;
  }
  EXPECT_EQ(apply_float(Operator::Sigmoid, 0), 0.5);
  EXPECT_EQ(apply_float(Operator::Rsqrt, 4), 0.5);
}

}  // namespace
}  // namespace kiln::language::evaluation
