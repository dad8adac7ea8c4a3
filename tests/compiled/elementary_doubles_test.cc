/// The functions of float64 that are written out against long double's of the C library, which has
/// at least 11 bits more.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "compiler/codegen/operator_code.h"
#include "tests/compiled/elementary_kernel.h"

namespace kiln::testing {
namespace {

using language::Operator;

long double exact(Operator op, long double x) {
  switch (op) {
    case Operator::Exp: return std::exp(x);
    case Operator::Exp2: return std::exp2(x);
    case Operator::Expm1: return std::expm1(x);
    case Operator::Log: return std::log(x);
    case Operator::Log2: return std::log2(x);
    case Operator::Log10: return std::log10(x);
    case Operator::Log1p: return std::log1p(x);
    case Operator::Sin: return std::sin(x);
    case Operator::Cos: return std::cos(x);
    case Operator::Tan: return std::tan(x);
    case Operator::Asin: return std::asin(x);
    case Operator::Acos: return std::acos(x);
    case Operator::Atan: return std::atan(x);
    case Operator::Sinh: return std::sinh(x);
    case Operator::Cosh: return std::cosh(x);
    case Operator::Tanh: return std::tanh(x);
    case Operator::Asinh: return std::asinh(x);
    case Operator::Acosh: return std::acosh(x);
    case Operator::Atanh: return std::atanh(x);
    case Operator::Erf: return std::erf(x);
    case Operator::Sigmoid: return 1 / (1 + std::exp(-x));
    default: ADD_FAILURE() << language::row_of(op).spelling << " has no reference here"; return 0;
  }
}

std::vector<Operator> written_out() {
  std::vector<Operator> result = functions();
  std::erase_if(result, [](Operator op) { return !codegen::is_written_out(op, DType::Float64); });
  return result;
}

/// A batch of arguments: any bits, or numbers of one magnitude, of both signs, where the functions
/// change from one polynomial to the next.
std::vector<double> arguments(std::mt19937_64& random, double magnitude) {
  std::vector<double> x(kBatch);
  for (double& each : x) {
    const uint64_t bits = random();
    each = magnitude == 0 ? std::bit_cast<double>(bits)
                          : static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63 * magnitude;
  }
  return x;
}

constexpr double kMagnitudes[] = {0, 0x1p-30, 0x1p-8, 0.1, 0.36, 1,   1.5,
                                  2, 4,       20,     50,  750,  1e5, 0x1p31};

class Doubles : public ::testing::TestWithParam<Operator> {};
INSTANTIATE_TEST_SUITE_P(Functions, Doubles, ::testing::ValuesIn(written_out()),
                         [](const auto& info) {
                           return std::string(language::row_of(info.param).spelling);
                         });

/// 2^17 arguments of each magnitude, with KILN_LONG 2^24.
TEST_P(Doubles, AreAsAccurateAsTheTableSays) {
  const Operator op = GetParam();
  const auto artifact = compile_lowered(over_all(op, 1, DType::Float64));
  const int rounds = std::getenv("KILN_LONG") != nullptr ? 16 : 1;
  const size_t looked_at = rounds == 1 ? kBatch / 8 : kBatch;
  std::mt19937_64 random(1);
  Worst<double> worst;
  for (const double magnitude : kMagnitudes) {
    for (int round = 0; round < rounds; ++round) {
      const std::vector<double> x = arguments(random, magnitude);
      look_at(
          artifact, x, looked_at, [op](double each) { return exact(op, each); }, worst);
    }
  }
  RecordProperty("steps", std::to_string(worst.steps));
  EXPECT_LE(worst.steps, allowed(op)) << "at " << worst.at;
}

TEST(Doubles, OfSpecialValuesAreAsInC) {
  const double inf = INFINITY;
  const std::vector<double> values = {
      0.0,     -0.0,     1.0,  -1.0,    inf,     -inf,   NAN,    5e-324, -5e-324, 1e-310, -1e-310,
      1.7e308, -1.7e308, 1e22, 709.782, 710.475, -745.1, -745.2, 1024.0, -1074.0, -1076.0};
  for (const Operator op : written_out()) {
    std::vector<double> x(kBatch, 1.0);
    std::ranges::copy(values, x.begin());
    std::vector<HostTensor> tensors = {tensor_of(x), {}, {}};
    run_artifact(compile_lowered(over_all(op, 1, DType::Float64)), tensors);
    const std::vector<double> y = values_of<double>(tensors[1]);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(steps_off(y[i], exact(op, values[i])), allowed(op))
          << language::row_of(op).spelling << " of " << values[i] << " is " << y[i];
    }
  }
}

TEST(Doubles, AngleOfAPointIsAsAccurateAsTheTableSays) {
  std::mt19937_64 random(2);
  std::vector<double> y = arguments(random, 0);
  std::vector<double> x = arguments(random, 0);
  for (size_t i = x.size() / 4; i < x.size(); ++i) {
    // Points at every angle too: of their two coordinates neither is much the larger.
    x[i] = std::sin(static_cast<double>(i));
    y[i] = std::cos(static_cast<double>(i) * 0.7);
  }
  std::vector<HostTensor> tensors = {tensor_of(y), tensor_of(x), {}, {}};
  run_artifact(compile_lowered(over_all(Operator::Atan2, 2, DType::Float64)), tensors);
  EXPECT_EQ(tensors[2].bytes, tensors[3].bytes);
  const std::vector<double> result = values_of<double>(tensors[2]);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double angle =
        std::atan2(static_cast<long double>(y[i]), static_cast<long double>(x[i]));
    worst = std::max(worst, steps_off(result[i], angle));
  }
  RecordProperty("steps", std::to_string(worst));
  EXPECT_LE(worst, allowed(Operator::Atan2));
}

}  // namespace
}  // namespace kiln::testing
