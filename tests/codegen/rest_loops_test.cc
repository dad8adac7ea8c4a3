#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/codegen/cuda_rests.h"
#include "compiler/ir/parse.h"

namespace kiln::testing {
namespace {

/// The names of these loops of a thread's that has 32 scores of two parts, and adds each up.
std::vector<std::string> rests_of(std::string_view first, std::string_view second,
                                  std::string_view beside = "", std::string_view sums = "o") {
  const ir::Kernel kernel = ir::parse(fmt::format(
      R"(fn f(A: float32[64]) {{
        for b in 0..8 bind(blockIdx.x) {{
          allocate s: float32[8] scope(shared)
          for t in 0..32 bind(threadIdx.x) {{
            allocate c: float32[32] scope(local)
            allocate o: float32[32] scope(local)
            for k in 0..{0} {{
              barrier
              for step in 0..8 {{ for i in 0..32 unroll {{ {3}[i] = {3}[i] + s[step] }} }} }}
            for k_1 in 0..{1} {{
              barrier
              for rest in 0..8 {{ {2} for i_1 in 0..32 unroll {{ c[i_1] = c[i_1] + s[rest] }} }} }}
          }} }} }})",
      first, second, beside, sums));
  std::vector<std::string> names;
  for (const ir::For* loop : codegen::rest_loops(kernel.body))
    names.push_back(loop->var->name);
  return names;
}

TEST(RestLoops, HaveLittleToDoBesideOthers) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(rests_of("64", "2"), Names{"rest"});
  EXPECT_EQ(rests_of("b", "1"), Names{"rest"});
  EXPECT_EQ(rests_of("1", "16"), Names{"step"});
}

TEST(RestLoops, AreOfSeveralSums) { EXPECT_TRUE(rests_of("64", "2", "", "c").empty()); }

TEST(RestLoops, AreNoPartsOfAsMuch) {
  EXPECT_TRUE(rests_of("4", "2").empty());
  EXPECT_TRUE(rests_of("b", "b + 1").empty());
}

/// Loads wait for each other in a loop that is not written out.
TEST(RestLoops, LoadNothingFromMemory) {
  EXPECT_TRUE(rests_of("64", "2", "s[rest] = A[rest]").empty());
}

}  // namespace
}  // namespace kiln::testing
