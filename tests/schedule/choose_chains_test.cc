/// Products in one loop over blocks of rows: when they are, and what it saves.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/autoschedule/choose/product_chains.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

const Target kTarget{.kind = TargetKind::Llvm, .arch = {}};

/// Attention of some heads over m places, of n queries.
std::string attention(int heads, int n, int m, int width) {
  return fmt::format(
      "kernel attention(Q: float32[{h}, {n}, {d}], K: float32[{h}, {m}, {d}],\n"
      "                 V: float32[{h}, {m}, {d}]) -> (O: float32[{h}, {n}, {d}]) {{\n"
      "  S: float32[{h}, {n}, {m}]\n"
      "  L: float32[{h}, {n}, {m}]\n"
      "  top: float32[{h}, {n}]\n"
      "  E: float32[{h}, {n}, {m}]\n"
      "  total: float32[{h}, {n}]\n"
      "  P: float32[{h}, {n}, {m}]\n"
      "  S[h, i, j] = sum[k < {d}](Q[h, i, k] * K[h, j, k])\n"
      "  L[h, i, j] = select(j <= i, S[h, i, j] * 0.125, -1e30)\n"
      "  top[h, i] = max[j < {m}](L[h, i, j])\n"
      "  E[h, i, j] = exp(L[h, i, j] - top[h, i])\n"
      "  total[h, i] = sum[j < {m}](E[h, i, j])\n"
      "  P[h, i, j] = E[h, i, j] / total[h, i]\n"
      "  O[h, i, e] = sum[j < {m}](P[h, i, j] * V[h, j, e])\n"
      "}}\n",
      fmt::arg("h", heads), fmt::arg("n", n), fmt::arg("m", m), fmt::arg("d", width));
}

std::string two_layers(int rows, int inputs, int hidden, int outputs) {
  return fmt::format(
      "kernel layers(X: float32[{n}, {i}], A: float32[{i}, {h}], B: float32[{h}, {o}])\n"
      "    -> (Y: float32[{n}, {o}]) {{\n"
      "  H: float32[{n}, {h}]\n"
      "  R: float32[{n}, {h}]\n"
      "  H[r, c] = sum[k < {i}](X[r, k] * A[k, c])\n"
      "  R[r, c] = max(H[r, c], 0)\n"
      "  Y[r, c] = sum[k < {h}](R[r, k] * B[k, c])\n"
      "}}\n",
      fmt::arg("n", rows), fmt::arg("i", inputs), fmt::arg("h", hidden), fmt::arg("o", outputs));
}

double saved(const std::string& text, const Target& target = kTarget) {
  return autoschedule::saved_by_product_chain(kernel_of(text).kernel, target, {});
}

std::string steps_of(const std::string& text, const std::string& arch = "") {
  const language::TextKernel kernel = kernel_of(text);
  const Target target{.kind = TargetKind::Llvm, .arch = arch};
  return language::print_schedule(kernel.kernel, "cpu",
                                  choose_schedule(kernel.kernel, {}, target, {}));
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ProductChains, ComputeScoresForABlockOfRows) {
  const std::string steps = steps_of(attention(12, 512, 512, 64));
  for (const char* stage : {"S", "L", "top", "E", "total", "P"})
    EXPECT_TRUE(has(steps, fmt::format("compute_at({}, O.i.outer)", stage))) << stage << steps;
  EXPECT_TRUE(has(steps, "split(O.i, factor=64)")) << steps;
  EXPECT_TRUE(has(steps, "parallel(O.i.outer)")) << steps;
  // Both column factors are copied once, before all blocks.
  EXPECT_TRUE(has(steps, "parallel(K.global.h)")) << steps;
  EXPECT_TRUE(has(steps, "parallel(V.global.h)")) << steps;
}

/// What a block holds stays in L2, of 512 KiB and 1 and 2 MiB.
TEST(ProductChains, TakeSmallerBlocksOfLongerRowsAndSmallerCaches) {
  const auto expect_block = [](int rows, int length, const char* arch) {
    const std::string steps = steps_of(attention(12, length, length, 64), arch);
    EXPECT_TRUE(has(steps, fmt::format("split(O.i, factor={})", rows))) << arch << steps;
  };
  expect_block(64, 512, "sapphirerapids");
  expect_block(32, 2048, "sapphirerapids");
  expect_block(64, 512, "znver5");
  expect_block(16, 2048, "znver5");
  expect_block(32, 512, "znver3");
}

TEST(ProductChains, AreWorthItWhereScoresAreMany) {
  EXPECT_GT(saved(attention(12, 512, 512, 64)), 1e-3);
  // These pass through a cache as they are.
  EXPECT_EQ(saved(attention(2, 64, 64, 64)), 0);
  // One row has nothing to share.
  EXPECT_EQ(saved(attention(12, 1, 1024, 64)), 0);
}

TEST(ProductChains, LeaveLayersAloneWhoseWeightsWouldBeReadForEachBlock) {
  EXPECT_EQ(saved(two_layers(1000, 784, 256, 100)), 0);
  EXPECT_FALSE(has(steps_of(two_layers(1000, 784, 256, 100)), "compute_at(H"));
}

TEST(ProductChains, AreOfCpus) {
  EXPECT_EQ(saved(attention(12, 512, 512, 64), {.kind = TargetKind::Cuda, .arch = "sm_90"}), 0);
}

TEST(ProductChains, StayApartWhereAScoreIsAResult) {
  std::string text = attention(12, 512, 512, 64);
  text.replace(text.find("  P: float32[12, 512, 512]\n"), 27, "");
  text.replace(text.find("(O:"), 3, "(P: float32[12, 512, 512], O:");
  EXPECT_EQ(saved(text), 0);
}

TEST(ProductChains, NeedAllProductsOfAKernel) {
  std::string text = attention(12, 512, 512, 64);
  text.replace(text.find("-> (O: float32[12, 512, 64])"), 28,
               "-> (O: float32[12, 512, 64], Z: float32[12, 64, 64])");
  text.replace(text.rfind("}\n"), 2, "  Z[h, i, e] = sum[j < 512](Q[h, j, i] * V[h, j, e])\n}\n");
  EXPECT_EQ(saved(text), 0);
}

}  // namespace
}  // namespace kiln::testing
