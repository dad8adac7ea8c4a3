// Element-wise functions: a thread has several vectors, where there are enough elements.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

constexpr std::string_view kOneMultiprocessor = "sm_90+sms1+gbs100+l2mib50+mhz1830";

std::string loops_of(std::string_view value, int64_t extent) {
  const language::TextKernel text = kernel_of(fmt::format(
      "kernel k(X: float32[{0}]) -> (Y: float32[{0}]) {{ Y[i] = {1} }}", extent, value));
  const ir::Kernel loops = gpu_loops(text, {}, kOneMultiprocessor);
  EXPECT_EQ(gpu_difference(text, loops, {}), "") << ir::print(loops);
  return ir::print(loops);
}

int64_t count_of(const std::string& text, std::string_view word) {
  int64_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

TEST(ThreadElements, OfFunctionsAreSeveralVectors) {
  EXPECT_EQ(count_of(loops_of("exp(X[i]) + 1.0", 16384), "in 0..4 unroll"), 2);
  // A block has a rest: of its vectors, and of its threads.
  for (const int64_t extent : {18432, 16388})
    EXPECT_EQ(count_of(loops_of("exp(X[i]) + 1.0", extent), "blockIdx.x in 0..5"), 1);
}

TEST(ThreadElements, AreOneVectorWithoutFunctionsOrWithFewElements) {
  for (const auto& [value, extent] : {std::pair("X[i]*2.0", 16384), std::pair("exp(X[i])", 16380)})
    EXPECT_EQ(count_of(loops_of(value, extent), "in 0..4 unroll"), 1);  // its lanes
}

}  // namespace
}  // namespace kiln::testing
