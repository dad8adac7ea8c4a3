/// The functions of float32 against float64's of the oracle: all of the table that are not exact.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "compiler/codegen/operator_code.h"
#include "compiler/language/evaluate/scalar.h"
#include "tests/compiled/elementary_kernel.h"

namespace kiln::testing {
namespace {

using language::Operator;

double exact(Operator op, double x) {
  const language::Scalar operand = language::Scalar::of_float(DType::Float64, x);
  return language::apply_operator(op, {&operand, 1}).floating;
}

class Elementary : public ::testing::TestWithParam<Operator> {};
INSTANTIATE_TEST_SUITE_P(Functions, Elementary, ::testing::ValuesIn(functions()),
                         [](const auto& info) {
                           return std::string(language::row_of(info.param).spelling);
                         });

/// Every float with KILN_LONG where the code is our own; else every 4096th or so, of all exponents
/// and signs.
TEST_P(Elementary, IsAsAccurateAsTheTableSays) {
  const Operator op = GetParam();
  const auto artifact = compile_lowered(over_all(op, 1));
  const bool all =
      std::getenv("KILN_LONG") != nullptr && codegen::is_written_out(op, DType::Float32);
  const uint64_t stride = all ? 1 : 4093;
  const uint64_t count = (uint64_t{1} << 32) / stride;
  Worst<float> worst;
  for (uint64_t begin = 0; begin < count; begin += kBatch) {
    std::vector<float> x(kBatch);
    for (int64_t i = 0; i < kBatch; ++i) {
      x[static_cast<size_t>(i)] =
          std::bit_cast<float>(static_cast<uint32_t>((begin + static_cast<uint64_t>(i)) * stride));
    }
    look_at(
        artifact, x, x.size(), [op](float each) { return exact(op, each); }, worst);
  }
  RecordProperty("steps", std::to_string(worst.steps));
  EXPECT_LE(worst.steps, allowed(op)) << "at " << worst.at;
}

TEST(Elementary, OfSpecialValuesIsAsInC) {
  const float inf = INFINITY;
  const std::vector<float> values = {0.0F,   -0.0F,   1.0F,   -1.0F,   inf,   -inf,   NAN,
                                     1e-45F, -1e-45F, 1e-39F, -1e-39F, 3e38F, -3e38F, 65536.0F};
  for (const Operator op : functions()) {
    std::vector<float> x(kBatch, 1.0F);
    std::ranges::copy(values, x.begin());
    std::vector<HostTensor> tensors = {tensor_of(x), {}, {}};
    run_artifact(compile_lowered(over_all(op, 1)), tensors);
    const std::vector<float> y = values_of<float>(tensors[1]);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(steps_off(y[i], exact(op, values[i])), allowed(op))
          << language::row_of(op).spelling << " of " << values[i] << " is " << y[i];
    }
  }
}

/// Numbers of -80 .. 80, of which most vectors have none but these; some have one that is too large
/// or too small for e^x to be normal, infinite or nan.
template <typename Float>
std::vector<Float> with_strangers() {
  const Float scale = sizeof(Float) == 8 ? 8 : 1;
  const Float strangers[] = {Float(-87.5) * scale,
                             Float(-100) * scale,
                             Float(88.5) * scale,
                             Float(1e30),
                             Float(-1e30),
                             INFINITY,
                             -INFINITY,
                             NAN};
  std::vector<Float> x;
  while (x.size() < static_cast<size_t>(kBatch)) {
    const size_t i = x.size();
    x.push_back(i % 77 == 0 ? strangers[i / 77 % 8]
                            : std::sin(static_cast<Float>(i)) * Float(85) * scale);
  }
  return x;
}

/// Of vectors whose lanes are all small, e^x is computed otherwise than of others, and by one.
template <typename Float>
void expect_the_same_beside_strangers(DType type, const std::string& arch) {
  for (const Operator op : {Operator::Exp, Operator::Sigmoid, Operator::Erf}) {
    std::vector<HostTensor> tensors = {tensor_of(with_strangers<Float>()), {}, {}};
    run_artifact(compile_lowered(over_all(op, 1, type), arch), tensors);
    const std::vector<Float> vectors = values_of<Float>(tensors[1]);
    const std::vector<Float> elements = values_of<Float>(tensors[2]);
    size_t differ = 0;
    for (size_t i = 0; i < vectors.size(); ++i) {
      const bool are_nan = std::isnan(vectors[i]) && std::isnan(elements[i]);
      if (!are_nan && vectors[i] != elements[i]) ++differ;
    }
    EXPECT_EQ(differ, 0U) << language::row_of(op).spelling << ' ' << arch;
  }
}

TEST(Elementary, DoesNotDependOnTheOtherLanes) {
  for (const char* arch : {"", "x86-64-v3"}) {
    expect_the_same_beside_strangers<float>(DType::Float32, arch);
    expect_the_same_beside_strangers<double>(DType::Float64, arch);
  }
}

/// With AVX2 alone, of every 4093rd float.
TEST(Elementary, ExponentialWithoutScalingIsAsAccurate) {
  const auto artifact = compile_lowered(over_all(Operator::Exp, 1), "x86-64-v3");
  Worst<float> worst;
  std::vector<float> x(kBatch);
  constexpr uint32_t kStride = 4093;
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::bit_cast<float>(static_cast<uint32_t>(i) * kStride);
  look_at(
      artifact, x, x.size(), [](float each) { return exact(Operator::Exp, each); }, worst);
  EXPECT_LE(worst.steps, allowed(Operator::Exp)) << "at " << worst.at;
}

/// Pairs of floats: all of special values, then any numbers of e^-80 .. e^80 beside numbers of
/// -2 .. 2 and of -40 .. 40, and any bits at all.
struct Pairs {
  std::vector<float> x;
  std::vector<float> y;
};

Pairs pairs() {
  const float inf = INFINITY;
  const std::vector<float> values = {
      0.0F,   -0.0F, 1.0F,  -1.0F,  2.0F,        -2.0F,      0.5F,        -0.5F,      3.0F,
      -3.0F,  2.5F,  -2.5F, inf,    -inf,        NAN,        1e-40F,      -1e-40F,    3e38F,
      -3e38F, 1e10F, -7.0F, 1e-45F, 0.99999994F, 1.0000001F, 16777217.0F, 8388609.0F, -8388609.0F};
  Pairs result;
  for (const float a : values) {
    for (const float b : values) {
      result.x.push_back(a);
      result.y.push_back(b);
    }
  }
  uint64_t state = 88172645463325252u;
  const auto next = [&state] {  // xorshift64
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<uint32_t>(state);
  };
  while (result.x.size() < static_cast<size_t>(kBatch)) {
    const bool any = result.x.size() % 4 == 0;
    const auto spread = [&next] {
      return static_cast<float>(static_cast<int32_t>(next())) * 0x1p-31F;
    };
    result.x.push_back(any ? std::bit_cast<float>(next()) : std::exp(spread() * 80));
    const float width = result.x.size() % 3 == 0 ? 40.0F : 2.0F;
    result.y.push_back(any ? std::bit_cast<float>(next()) : spread() * width);
  }
  return result;
}

/// op(x, y) beside float64's of the C library.
void expect_within(Operator op, const Pairs& of, double steps, double (*exact)(double, double)) {
  std::vector<HostTensor> tensors = {tensor_of(of.x), tensor_of(of.y), {}, {}};
  run_artifact(compile_lowered(over_all(op, 2)), tensors);
  EXPECT_EQ(tensors[2].bytes, tensors[3].bytes);
  const std::vector<float> result = values_of<float>(tensors[2]);
  for (size_t i = 0; i < of.x.size() && !::testing::Test::HasFailure(); ++i) {
    EXPECT_LE(steps_off(result[i], exact(of.x[i], of.y[i])), steps)
        << language::row_of(op).spelling << " of " << of.x[i] << " and " << of.y[i] << " is "
        << result[i];
  }
}

TEST(Elementary, PowerIsWithinOneStep) { expect_within(Operator::Pow, pairs(), 1, std::pow); }

TEST(Elementary, AngleOfAPointIsAsAccurateAsTheTableSays) {
  Pairs points = pairs();
  // Points at every angle too: of their two coordinates neither is much the larger.
  for (size_t i = points.x.size() / 2; i < points.x.size(); ++i) {
    points.x[i] = std::sin(static_cast<float>(i));
    points.y[i] = std::cos(static_cast<float>(i) * 0.7F);
  }
  expect_within(Operator::Atan2, points, 2.5, std::atan2);
}

}  // namespace
}  // namespace kiln::testing
