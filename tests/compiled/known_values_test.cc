/// What a function has loaded is not loaded again, unless something was stored there meanwhile.

#include <cstring>

#include <gtest/gtest.h>

#include "compiler/ir/parse.h"
#include "tests/support/run_on_cpu.h"

namespace kiln {
namespace {

using testing::HostTensor;

/// D of a kernel of A = 0, 1 .. 7, C of 8 elements and D of 4.
std::vector<float> results(const std::string& body) {
  const ir::Kernel kernel =
      ir::parse("fn f(A: float32[8], C: float32[8], D: float32[4]) {" + body + "}");
  std::vector<HostTensor> tensors = {testing::zeros(DType::Float32, {8}), {}, {}};
  auto* const in = reinterpret_cast<float*>(tensors[0].bytes.data());
  for (int i = 0; i < 8; ++i)
    in[i] = static_cast<float>(i);
  testing::run_artifact(testing::compile_lowered(kernel), tensors, {});
  std::vector<float> out(4);
  std::memcpy(out.data(), tensors[2].bytes.data(), out.size() * sizeof(float));
  return out;
}

using Floats = std::vector<float>;

TEST(KnownValues, AreLoadedAgainAfterAParallelLoop) {
  EXPECT_EQ(results(R"(
    C[1] = 5.0
    D[0] = C[1] + 1.0
    D[1] = C[1] + 2.0
    for i in 0..8 parallel { C[i] = A[i] + 10.0 }
    D[2] = C[1]
    D[3] = 0.0)"),
            (Floats{6, 7, 11, 0}));
}

TEST(KnownValues, AreLoadedAgainInTheNextIterationAndAfterTheLoop) {
  EXPECT_EQ(results(R"(
    C[0] = 1.0
    D[0] = C[0]
    for i in 0..3 { D[1] = C[0]*2.0  C[0] = C[0] + A[i + 1] }
    D[2] = C[0]
    D[3] = C[0] + 1.0)"),
            (Floats{1, 8, 7, 8}));
}

TEST(KnownValues, AreLoadedAgainAfterAStoreToAnotherElementOrAVector) {
  EXPECT_EQ(results(R"(
    C[ramp(0, 1, 8)] = A[ramp(0, 1, 8)]
    D[0] = C[3]
    C[ramp(2, 1, 4)] = A[ramp(0, 1, 4)]
    D[1] = C[3]
    C[2] = 40.0
    D[2] = C[2]
    D[3] = C[3])"),
            (Floats{3, 1, 40, 1}));
}

TEST(KnownValues, OfABranchAreNotKnownAfterIt) {
  EXPECT_EQ(results(R"(
    C[0] = 1.0
    if A[1] > 5.0 { D[0] = C[0]  D[1] = A[4] + A[5] } else { C[0] = 2.0 }
    D[0] = C[0]
    D[1] = A[4]
    if A[1] > 5.0 { C[0] = 3.0 }
    D[2] = C[0]
    D[3] = A[5])"),
            (Floats{2, 4, 2, 5}));
}

}  // namespace
}  // namespace kiln
