#include "compiler/predict/predict.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/parse_ir.h"

namespace kiln::predict {
namespace {

using testing::parse_kernel;

const autoschedule::Machine& zen4() {
  static const autoschedule::Machine machine = autoschedule::machine_of("znver4");
  return machine;
}

double term_of(const Prediction& prediction, std::string_view name) {
  for (const Term& term : prediction.terms) {
    if (term.name == name) return term.cycles;
  }
  ADD_FAILURE() << "no term " << name;
  return 0;
}

Prediction predicted(const char* parameters, const char* body, int threads = 1) {
  return predict(parse_kernel(parameters, body), {}, zen4(), {}, threads);
}

TEST(Predict, AChainOfSumsWaitsForItself) {
  const auto sums = [](int chains) {
    std::string body = "allocate s: float32[64] scope(local) { for k in 0..10000 {\n";
    for (int i = 0; i < 4; ++i) {
      const int at = i % chains * 16;
      body += fmt::format("s[ramp({0}, 1, 16)] = s[ramp({0}, 1, 16)] + A[ramp({1}, 1, 16)]\n", at,
                          i * 16);
    }
    body += "} C[ramp(0, 1, 16)] = s[ramp(0, 1, 16)] }";
    return predicted("A: float32[64], C: float32[16]", body.c_str());
  };
  EXPECT_EQ(term_of(sums(1), "latency"), 10000 * 4 * zen4().latency);
  EXPECT_EQ(term_of(sums(4), "latency"), 10000 * zen4().latency);
  EXPECT_EQ(sums(1).largest().name, "core");
  EXPECT_GT(sums(1).cycles, 2 * sums(4).cycles);
}

/// As many stores as they have lanes are rows of a square, and fewer move each lane by itself.
TEST(Predict, SquaresAreTurnedInRegisters) {
  const auto stores = [](int count) {
    std::string body = "for i in 0..64 {\n";
    for (int row = 0; row < count; ++row)
      body += fmt::format("C[ramp(i*256 + {0}, 16, 16)] = A[ramp(i*256 + {1}, 1, 16)]\n", row,
                          row * 16);
    body += "}";
    return predicted("A: float32[16384], C: float32[16384]", body.c_str());
  };
  EXPECT_EQ(term_of(stores(16), "loads and stores"), 64 * 16);
  EXPECT_EQ(term_of(stores(16), "arithmetic"), 64 * 16 * 4 / zen4().operations);
  EXPECT_EQ(term_of(stores(15), "loads and stores"), 64 * 15 * 16);
  EXPECT_EQ(term_of(stores(15), "arithmetic"), 0);
}

TEST(Predict, WhatDoesNotFitIntoCachesComesFromMemory) {
  const Prediction large =
      predicted("A: float32[67108864], C: float32[67108864]",
                "for i in 0..4194304 { C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] }");
  EXPECT_EQ(large.largest().name, "memory");
  EXPECT_EQ(term_of(large, "memory"), 2 * 67108864.0 * 4 / Surroundings{}.from_memory);
  const Prediction small =
      predicted("A: float32[1024], C: float32[1024]",
                "for i in 0..64 { C[ramp(i*16, 1, 16)] = A[ramp(i*16, 1, 16)] }");
  EXPECT_EQ(term_of(small, "L2"), 0);
  EXPECT_EQ(term_of(small, "memory"), 0);
}

TEST(Predict, CoresShareAParallelLoopAndTakeTimeToStart) {
  const char* const body = R"(for i in 0..64 parallel { for j in 0..100000 {
      C[ramp(i*16, 1, 16)] = exp(C[ramp(i*16, 1, 16)]) } })";
  const Prediction one = predicted("C: float32[1024]", body, 1);
  const Prediction four = predicted("C: float32[1024]", body, 4);
  EXPECT_EQ(term_of(one, "threads"), 0);
  EXPECT_EQ(term_of(four, "threads"), Surroundings{}.start_cycles);
  EXPECT_NEAR(term_of(four, "core"), term_of(one, "core") / 4, term_of(one, "core") / 100);
  // 64 iterations on 48 cores: some have two, and the others wait.
  const Prediction many = predicted("C: float32[1024]", body, 48);
  EXPECT_NEAR(term_of(many, "core"), term_of(one, "core") / 32, term_of(one, "core") / 100);
}

TEST(Predict, SecondsAreCyclesOfTheClock) {
  const Prediction prediction =
      predicted("C: float32[1024]", "for i in 0..1024 { C[i] = sqrt(C[i]) }");
  EXPECT_GT(prediction.cycles, 0);
  EXPECT_EQ(prediction.seconds(), prediction.cycles / (Surroundings{}.gigahertz * 1e9));
}

TEST(Predict, FunctionsThatAreCalledLaneByLaneTakeLonger) {
  const auto kernel = [](const char* type) {
    const std::string parameters = std::string("C: ") + type + "[1024]";
    return predicted(parameters.c_str(),
                     "for i in 0..64 { C[ramp(i*16, 1, 16)] = cbrt(C[ramp(i*16, 1, 16)]) }");
  };
  EXPECT_GT(term_of(kernel("float64"), "arithmetic"),
            10 * term_of(kernel("float32"), "arithmetic"));
}

}  // namespace
}  // namespace kiln::predict
