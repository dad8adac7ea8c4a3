/// Automatic schedules of convolutions.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/sketch_space.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

const Target kCpu = {.kind = TargetKind::Llvm};

/// A window of 3 by 3 over images that are padded by one on each side.
language::TextKernel padded(int images, int channels, int filters, int lines, int columns) {
  return kernel_of(fmt::format(
      "kernel k(X: float32[{n}, {c}, {h}, {w}], F: float32[{f}, {c}, 3, 3])"
      " -> (Y: float32[{n}, {f}, {h}, {w}]) {{\n"
      "  P: float32[{n}, {c}, {h} + 2, {w} + 2]\n"
      "  P[n, c, y, x] = if_then_else(y >= 1 && y <= {h} && x >= 1 && x <= {w},"
      " X[n, c, y - 1, x - 1], 0)\n"
      "  Y[n, f, y, x] = sum[q < {c}, r < 3, s < 3](P[n, q, y + r, x + s] * F[f, q, r, s])\n"
      "}}\n",
      fmt::arg("n", images), fmt::arg("c", channels), fmt::arg("f", filters), fmt::arg("h", lines),
      fmt::arg("w", columns)));
}

std::string chosen(const language::TextKernel& kernel) {
  const SketchSpace space(kernel.kernel, {}, kCpu, {});
  return language::print_schedule(kernel.kernel, "cpu", space.schedule(space.preferred()));
}

std::vector<std::string> names_of(const language::TextKernel& kernel) {
  const SketchSpace space(kernel.kernel, {}, kCpu, {});
  std::vector<std::string> names;
  for (const autoschedule::Sketch& sketch : space.stages().back().sketches)
    names.push_back(sketch.name);
  return names;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(ChooseImages, PadsTheLinesOfABlockWhereTheyAreRead) {
  EXPECT_EQ(chosen(padded(1, 64, 64, 56, 56)), R"(schedule cpu {
  split(Y.f, factor=6)
  split(Y.x, factor=56)
  split(Y.y, factor=7)
  reorder(Y.n, Y.y.outer, Y.y.inner, Y.x.outer, Y.f.outer, Y.q, Y.r, Y.s, Y.f.inner, Y.x.inner)
  compute_at(P, Y.y.outer)
  split(P.x, factor=16)
  vectorize(P.x.inner)
  vectorize(Y.x.inner)
  unroll(Y.s)
  unroll(Y.r)
  unroll(Y.f.inner)
  parallel(Y.n)
  parallel(Y.y.outer)
}
)");
}

/// Lines that are neighbours share most of what they read.
TEST(ChooseImages, WritesOutASmallWindowForSomeLinesAtOnce) {
  const language::TextKernel kernel = kernel_of(
      "kernel k(X: float32[64, 58, 58], F: float32[64, 3, 3]) -> (Y: float32[64, 56, 56]) {\n"
      "  Y[c, y, x] = sum[r < 3, s < 3](X[c, y + r, x + s] * F[c, r, s])\n"
      "}\n");
  EXPECT_EQ(chosen(kernel), R"(schedule cpu {
  split(Y.x, factor=16)
  split(Y.y, factor=4)
  reorder(Y.c, Y.y.outer, Y.x.outer, Y.r, Y.s, Y.y.inner, Y.x.inner)
  unroll(Y.r)
  unroll(Y.s)
  unroll(Y.y.inner)
  vectorize(Y.x.inner)
  parallel(Y.c)
}
)");
  // Those of a large one would be much code; columns alone share nothing.
  const std::string large = chosen(kernel_of(
      "kernel k(X: float32[64, 64, 64], F: float32[64, 9, 9]) -> (Y: float32[64, 56, 56]) {\n"
      "  Y[c, y, x] = sum[r < 9, s < 9](X[c, y + r, x + s] * F[c, r, s])\n"
      "}\n"));
  EXPECT_FALSE(has(large, "unroll(Y.r)")) << large;
  const std::string along = chosen(kernel_of(
      "kernel k(X: float32[64, 56, 58], F: float32[64, 3]) -> (Y: float32[64, 56, 56]) {\n"
      "  Y[c, y, x] = sum[s < 3](X[c, y, x + s] * F[c, s])\n"
      "}\n"));
  EXPECT_FALSE(has(along, "unroll")) << along;
}

TEST(ChooseImages, LaysThePatchesOfSmallImagesSideBySide) {
  EXPECT_EQ(chosen(padded(1, 512, 512, 7, 7)), R"(schedule cpu {
  split(P.x, factor=8)
  vectorize(P.x.inner)
  parallel(P.c)
  fuse(Y.y, Y.x)
  cache_write(Y, global)
  split(Y.global.f.c, factor=6)
  split(Y.global.y.x.fused.c, factor=49)
  reorder(Y.global.n.c, Y.global.f.c.outer, Y.global.y.x.fused.c.outer, Y.global.q, Y.global.r, Y.global.s, Y.global.f.c.inner, Y.global.y.x.fused.c.inner)
  cache_read(P, global, Y.global, Y.global.n.c, Y.global.y.x.fused.c.outer, Y.global.q, Y.global.r, Y.global.s, Y.global.y.x.fused.c.inner)
  vectorize(Y.global.y.x.fused.c.inner)
  unroll(Y.global.s)
  unroll(Y.global.r)
  unroll(Y.global.f.c.inner)
  reorder(P.global.q, P.global.y.x.fused.c.outer)
  vectorize(P.global.y.x.fused.c.inner)
  parallel(Y.global.n.c)
  parallel(Y.global.f.c.outer)
  parallel(P.global.n.c)
  parallel(P.global.q)
  parallel(Y.f)
}
)");
}

TEST(ChooseImages, CopiesTheLinesOfAnArgument) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[8, 32, 28, 28], F: float32[64, 32, 3, 3])"
      " -> (Y: float32[8, 64, 26, 26]) {\n"
      "  Y[n, f, y, x] = sum[q < 32, r < 3, s < 3](X[n, q, y + r, x + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "cache_read(X, global, Y)")) << steps;
  EXPECT_TRUE(has(steps, "compute_at(X.global, Y.y.outer)")) << steps;
}

TEST(ChooseImages, ReadsColumnsThatAreApartFromTheirLines) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[3, 229, 229], F: float32[64, 3, 7, 7]) -> (Y: float32[64, 112, 112]) {\n"
      "  Y[f, y, x] = sum[q < 3, r < 7, s < 7](X[q, y * 2 + r, x * 2 + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "compute_at(X.global, Y.y.outer)")) << steps;
}

/// Lines of many channels lie far apart: tile after tile would wait for each of them.
TEST(ChooseImages, CopiesLinesThatManyTilesReadWithoutAWindow) {
  const auto pointwise = [](int filters) {
    return chosen(kernel_of(fmt::format(
        "kernel k(X: float32[256, 56, 56], F: float32[{0}, 256]) -> (Y: float32[{0}, 56, 56]) {{\n"
        "  Y[f, y, x] = sum[q < 256](X[q, y, x] * F[f, q])\n"
        "}}\n",
        filters)));
  };
  EXPECT_TRUE(has(pointwise(64), "cache_read(X, global, Y)")) << pointwise(64);
  EXPECT_FALSE(has(pointwise(16), "cache_read")) << pointwise(16);
}

/// Seven steps of 24 multiply-adds are written out, seven times seven are not.
TEST(ChooseImages, WritesOutAsMuchOfAWindowAsALoopTakes) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[32, 62, 62], F: float32[60, 32, 7, 7]) -> (Y: float32[60, 56, 56]) {\n"
      "  Y[f, y, x] = sum[q < 32, r < 7, s < 7](X[q, y + r, x + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "unroll(Y.s)")) << steps;
  EXPECT_FALSE(has(steps, "unroll(Y.r)")) << steps;
}

TEST(ChooseImages, TriesTheOtherWaysWhenTuned) {
  const std::vector<std::string> lines = {"blocks of lines", "outer products",
                                          "outer products of packed panels", "patches in order"};
  EXPECT_EQ(names_of(padded(1, 64, 64, 56, 56)), lines);
  EXPECT_EQ(names_of(padded(1, 512, 512, 7, 7))[0], "patches in order");
}

TEST(ChooseImages, LeavesPaddingThatIsReadTwiceAtTheRoot) {
  const language::TextKernel kernel = kernel_of(
      "kernel k(X: float32[8, 30, 30], F: float32[16, 8, 3, 3])"
      " -> (Y: float32[16, 30, 30], Z: float32[8, 32, 32]) {\n"
      "  P: float32[8, 32, 32]\n"
      "  P[c, y, x] = if_then_else(y >= 1 && y <= 30 && x >= 1 && x <= 30, X[c, y - 1, x - 1], 0)\n"
      "  Y[f, y, x] = sum[q < 8, r < 3, s < 3](P[q, y + r, x + s] * F[f, q, r, s])\n"
      "  Z[c, y, x] = P[c, y, x] + 1\n"
      "}\n");
  EXPECT_FALSE(has(chosen(kernel), "compute_at(P,")) << chosen(kernel);
}

}  // namespace
}  // namespace kiln::testing
