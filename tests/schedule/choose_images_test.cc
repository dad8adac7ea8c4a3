/// Automatic schedules of convolutions.

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/packed_filters.h"
#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/language/wire/decode.h"
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

/// No window over 56 by 56 pixels, of lines that are `width` apart.
language::TextKernel pointwise(int filters, int width) {
  return kernel_of(fmt::format(
      "kernel k(X: float32[256, 56, {1}], F: float32[{0}, 256]) -> (Y: float32[{0}, 56, 56]) {{\n"
      "  Y[f, y, x] = sum[q < 256](X[q, y, x] * F[f, q])\n"
      "}}\n",
      filters, width));
}

std::string chosen(const language::TextKernel& kernel, const Target& target = kCpu) {
  const SketchSpace space(kernel.kernel, {}, target, {});
  return language::print_schedule(kernel.kernel, "cpu", space.schedule(space.preferred()));
}

std::vector<std::string> names_of(const language::TextKernel& kernel,
                                  const std::string& arch = "") {
  const SketchSpace space(kernel.kernel, {}, {.kind = TargetKind::Llvm, .arch = arch}, {});
  std::vector<std::string> names;
  for (const autoschedule::Sketch& sketch : space.stages().back().sketches)
    names.push_back(sketch.name);
  return names;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A core that gathers in one instruction lays patches out; on Zen 5, which does not, filters next
/// to each other cost less. With one multiply-add a cycle vectors of channels are no better.
TEST(ChooseImages, AreCostedByTheMachine) {
  const language::TextKernel few_pixels = padded(1, 256, 256, 14, 14);
  EXPECT_EQ(names_of(few_pixels, "sapphirerapids")[0], "patches in order");
  EXPECT_EQ(names_of(few_pixels, "znver5")[0], "vectors of channels");
  const language::TextKernel pixels = pointwise(64, 56);
  for (const char* arch : {"sapphirerapids", "icelake-server", "znver4", "znver5"})
    EXPECT_EQ(names_of(pixels, arch)[0], "tiles of pixels") << arch;
}

/// A tile of 16 pixels of 256 or 512 channels stays in the L1 of a Zen 3 while all rows pass.
TEST(ChooseImages, ReadTilesOfPixelsFromL1) {
  const auto of = [](int channels) {
    return kernel_of(
        fmt::format("kernel k(X: float32[{0}, 28, 28], F: float32[256, {0}])"
                    " -> (Y: float32[256, 28, 28]) {{\n"
                    "  Y[f, y, x] = sum[q < {0}](X[q, y, x] * F[f, q])\n"
                    "}}\n",
                    channels));
  };
  EXPECT_EQ(names_of(pointwise(256, 56), "znver3")[0], "tiles of pixels");
  EXPECT_EQ(names_of(of(512), "znver3")[0], "tiles of pixels");
}

/// Fewer filters than a vector has lanes: the vectors are along the lines.
TEST(ChooseImages, PadsTheLinesOfABlockWhereTheyAreRead) {
  EXPECT_EQ(chosen(padded(1, 64, 12, 56, 56)), R"(schedule cpu {
  split(Y.f, factor=6)
  split(Y.x, factor=56)
  split(Y.y, factor=4)
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

TEST(ChooseImages, HasVectorsOfChannelsAndTurnsTheResultLineByLine) {
  EXPECT_EQ(chosen(padded(1, 64, 64, 56, 56)), R"(schedule cpu {
  split(Y.f, factor=32)
  reorder(Y.n, Y.f.outer, Y.y, Y.x, Y.f.inner)
  cache_write(Y, global)
  split(Y.global.x.c, factor=8)
  reorder(Y.global.n.c, Y.global.f.outer.c, Y.global.y.c, Y.global.x.c.outer, Y.global.q, Y.global.r, Y.global.s, Y.global.x.c.inner, Y.global.f.inner.c)
  cache_read(F, global, Y.global, Y.global.f.outer.c, Y.global.q, Y.global.r, Y.global.s, Y.global.f.inner.c)
  fuse(F.global.q, F.global.r, F.global.s)
  split(F.global.q.r.s.fused, factor=16)
  split(F.global.f.inner.c, factor=16)
  reorder(F.global.f.outer.c, F.global.q.r.s.fused.outer, F.global.f.inner.c.outer, F.global.f.inner.c.inner, F.global.q.r.s.fused.inner)
  unroll(F.global.f.inner.c.inner)
  vectorize(F.global.q.r.s.fused.inner)
  parallel(F.global.f.outer.c)
  parallel(F.global.q.r.s.fused.outer)
  vectorize(Y.global.f.inner.c)
  unroll(Y.global.s)
  unroll(Y.global.r)
  unroll(Y.global.x.c.inner)
  split(Y.f, factor=32)
  split(Y.y, factor=4)
  reorder(Y.n, Y.y.outer, Y.f.outer, Y.y.inner, Y.f.inner, Y.x)
  vectorize(Y.x)
  parallel(Y.n)
  parallel(Y.y.outer)
  compute_at(P, Y.y.outer)
  split(P.x, factor=16)
  vectorize(P.x.inner)
  compute_at(Y.global, Y.y.inner)
}
)");
}

/// Who keeps the copy of the filters has it apart, and the rest is scheduled without one.
TEST(ChooseImages, TakesTheCopyOfFiltersOut) {
  const language::TextKernel whole = padded(1, 64, 64, 56, 56);
  const auto packed =
      autoschedule::pack_filters(whole.kernel, {false, true, false}, kCpu, CompileOptions{});
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->parameter, 1U);
  for (const language::Kernel* kernel : {&packed->copy, &packed->product})
    language::decode(language::encode(kernel->definition), language::encode(kernel->names));
  const SketchSpace space(packed->product, {}, kCpu, {});
  const std::string steps =
      language::print_schedule(packed->product, "cpu", space.schedule(space.preferred()));
  EXPECT_FALSE(has(steps, "cache_read(F")) << steps;
  EXPECT_TRUE(has(steps, "vectorize(Y.global.f.inner.c)")) << steps;
  EXPECT_EQ(space.stages().back().sketches[0].name, "vectors of channels");
}

TEST(ChooseImages, LeavesFiltersWhereTheyAre) {
  const auto packs = [](const language::TextKernel& kernel, const std::vector<bool>& lasting) {
    return autoschedule::pack_filters(kernel.kernel, lasting, kCpu, CompileOptions{}).has_value();
  };
  EXPECT_FALSE(packs(padded(1, 64, 64, 56, 56), {true, false, false}));  // they may change
  EXPECT_FALSE(packs(padded(1, 64, 12, 56, 56), {false, true, false}));  // fewer than lanes
  EXPECT_FALSE(packs(padded(1, 64, 72, 56, 56), {false, true, false}));  // the last is not full
  EXPECT_FALSE(autoschedule::pack_filters(padded(1, 64, 64, 56, 56).kernel, {false, true, false},
                                          {.kind = TargetKind::Cuda, .arch = "sm_90"}, {}));
}

/// Steps that fill no whole vectors are gathered: nothing turns a part of a square.
TEST(ChooseImages, GathersFiltersOfWhichNoSquaresAreMade) {
  const std::string steps = chosen(padded(1, 65, 64, 56, 56));
  EXPECT_TRUE(has(steps, "vectorize(F.global.f.inner.c)")) << steps;
}

/// Neighbours read every second element, of which vectors are shuffled together.
TEST(ChooseImages, HasVectorsOfAPoolingThatMovesByTwo) {
  const std::string steps =
      chosen(kernel_of("kernel k(X: float32[64, 113, 113]) -> (Y: float32[64, 56, 56])"
                       " { Y[c, y, x] = max[r < 3, s < 3](X[c, y*2 + r, x*2 + s]) }\n"));
  EXPECT_TRUE(has(steps, "vectorize(Y.x.inner)")) << steps;
  EXPECT_TRUE(has(steps, "unroll(Y.s)")) << steps;
}

/// Columns that share what they read are as many as fit into registers beside their sums; those
/// that end with the line are preferred.
TEST(ChooseImages, FillsLinesWithTilesOfColumns) {
  const auto columns = [](int width, int stride, const std::string& arch = "") {
    return chosen(
        kernel_of(fmt::format(
            "kernel k(X: float32[32, {0}, {0}], F: float32[64, 32, 3, 3]) -> (Y: float32[64, {1}, "
            "{1}]) {{ Y[f, y, x] = sum[q < 32, r < 3, s < 3](X[q, y*{2} + r, x*{2} + s] * F[f, q, "
            "r, s]) }}\n",
            width * stride + 2, width, stride)),
        {.kind = TargetKind::Llvm, .arch = arch});
  };
  EXPECT_TRUE(has(columns(56, 1), "split(Y.global.x.c, factor=8)")) << columns(56, 1);
  EXPECT_TRUE(has(columns(26, 1), "split(Y.global.x.c, factor=9)")) << columns(26, 1);
  EXPECT_TRUE(has(columns(56, 2), "split(Y.global.x.c, factor=7)")) << columns(56, 2);
  // Eight sums are under way at once on a Zen 3.
  const std::string few_registers = columns(56, 2, "znver3");
  EXPECT_TRUE(has(few_registers, "split(Y.global.x.c, factor=4)")) << few_registers;
}

/// Filters whose elements stand elsewhere than in their axes' places have no copy in that order.
TEST(ChooseImages, HasNoVectorsOfChannelsOfFiltersThatOverlap) {
  const std::vector<std::string> names = names_of(kernel_of(
      "kernel k(X: float32[32, 30, 30], F: float32[64, 34, 3]) -> (Y: float32[64, 28, 28]) {\n"
      "  Y[f, y, x] = sum[q < 32, r < 3, s < 3](X[q, y + r, x + s] * F[f, q + r, s])\n"
      "}\n"));
  EXPECT_EQ(std::ranges::count(names, "vectors of channels"), 0);
  EXPECT_EQ(std::ranges::count(names, "blocks of lines"), 1);
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
  // A register of each line.
  const std::string narrow = chosen(kernel, {.kind = TargetKind::Llvm, .arch = "znver3"});
  EXPECT_TRUE(has(narrow, "split(Y.x, factor=8)")) << narrow;
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
  fuse(Y.y, Y.x)
  cache_write(Y, global)
  split(Y.global.f.c, factor=6)
  split(Y.global.y.x.fused.c, factor=49)
  reorder(Y.global.n.c, Y.global.f.c.outer, Y.global.y.x.fused.c.outer, Y.global.q, Y.global.r, Y.global.s, Y.global.f.c.inner, Y.global.y.x.fused.c.inner)
  cache_read(P, global, Y.global, Y.global.n.c, Y.global.y.x.fused.c.outer, Y.global.q, Y.global.r, Y.global.s, Y.global.y.x.fused.c.inner)
  storage_align(P.global.s, factor=16)
  reorder(P.global.q, P.global.y.x.fused.c.outer)
  vectorize(P.global.y.x.fused.c.inner)
  compute_at(P, P.global.q)
  split(P.x, factor=8)
  vectorize(P.x.inner)
  parallel(P.global.n.c)
  parallel(P.global.q)
  vectorize(Y.global.y.x.fused.c.inner)
  unroll(Y.global.s)
  unroll(Y.global.r)
  unroll(Y.global.f.c.inner)
  split(Y.f, factor=6)
  fuse(Y.y, Y.x)
  reorder(Y.n, Y.f.outer, Y.f.inner, Y.y.x.fused)
  vectorize(Y.y.x.fused)
  compute_at(Y.global, Y.f.outer)
  parallel(Y.n)
  parallel(Y.f.outer)
}
)");
}

/// Whole groups of the steps of a patch, which are as filters lie; nothing is copied of those but
/// to another type.
TEST(ChooseImages, LaysThePatchesOfShortTypesInGroups) {
  const auto of = [](const char* type, int channels, const char* arch) {
    const bool is_float = std::string_view(type) == "bfloat16";
    return chosen(
        kernel_of(fmt::format(
            "kernel k(X: {0}[1, {1}, 9, 9], F: {0}[64, {1}, 3, 3]) -> (Y: {2}[1, 64, 7, 7]) {{\n"
            "  Y[n, f, y, x] = sum[q < {1}, r < 3, s < 3]({2}(X[n, q, y + r, x + s]) * "
            "{2}(F[f, q, r, s]))\n"
            "}}\n",
            type, channels, is_float ? "float32" : "int32")),
        {.kind = TargetKind::Llvm, .arch = arch});
  };
  const auto groups = [](int products) {
    return fmt::format("split(Y.global.q.r.s.fused, factor={})", products);
  };
  const std::string bytes = of("int8", 64, "znver4");
  EXPECT_TRUE(has(bytes, groups(4))) << bytes;
  EXPECT_TRUE(has(bytes,
                  "cache_read(X, global, Y.global, Y.global.n.c, Y.global.y.x.fused.c.outer,"
                  " Y.global.q.r.s.fused.outer, Y.global.y.x.fused.c.inner, "
                  "Y.global.q.r.s.fused.inner)"))
      << bytes;
  EXPECT_FALSE(has(bytes, "cache_read(F")) << bytes;
  const std::string halves = of("bfloat16", 64, "znver4");
  EXPECT_TRUE(has(halves, groups(2))) << halves;
  const std::string words = of("int8", 64, "znver3");
  EXPECT_TRUE(has(words, groups(2))) << words;
  EXPECT_TRUE(has(words,
                  "cache_read(F, global, Y.global, Y.global.f.c.outer, Y.global.f.c.inner, "
                  "Y.global.q.r.s.fused.outer, Y.global.q.r.s.fused.inner)"))
      << words;
  // A group that goes on in the next patch, and a CPU without.
  EXPECT_FALSE(has(of("int8", 63, "znver4"), "Y.global.q.r.s.fused"));
  EXPECT_FALSE(has(of("bfloat16", 64, "znver3"), "Y.global.q.r.s.fused"));
}

/// In a loop over the window, lines would be padded again for each of its steps.
TEST(ChooseImages, PadsWholeImagesFirstWhereTheSumBeginsWithTheWindow) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[512, 7, 7], F: float32[512, 512, 3, 3]) -> (Y: float32[512, 7, 7]) {\n"
      "  P: float32[512, 9, 9]\n"
      "  P[c, y, x] = if_then_else(y >= 1 && y <= 7 && x >= 1 && x <= 7, X[c, y - 1, x - 1], 0)\n"
      "  Y[f, y, x] = sum[r < 3, s < 3, q < 512](P[q, y + r, x + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "cache_read(P, global, Y.global, ")) << steps;
  EXPECT_TRUE(has(steps, "parallel(P.c)")) << steps;
  EXPECT_FALSE(has(steps, "compute_at(P,")) << steps;
}

TEST(ChooseImages, CopiesTheLinesOfAnArgument) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[8, 32, 28, 28], F: float32[64, 32, 3, 3])"
      " -> (Y: float32[8, 64, 26, 26]) {\n"
      "  Y[n, f, y, x] = sum[q < 32, r < 3, s < 3](X[n, q, y + r, x + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "cache_read(X, global, Y.global)")) << steps;
  EXPECT_TRUE(has(steps, "compute_at(X.global, Y.y.outer)")) << steps;
}

TEST(ChooseImages, ReadsColumnsThatAreApartFromTheirLines) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[3, 229, 229], F: float32[64, 3, 7, 7]) -> (Y: float32[64, 112, 112]) {\n"
      "  Y[f, y, x] = sum[q < 3, r < 7, s < 7](X[q, y * 2 + r, x * 2 + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "compute_at(X.global, Y.y.outer)")) << steps;
}

/// A window of one element is no sum that vectors could go along.
TEST(ChooseImages, TilesColumnsThatAreApartWithoutAWindow) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[66, 32, 31], F: float32[20, 66, 1, 1]) -> (Y: float32[20, 16, 16]) {\n"
      "  Y[f, y, x] = sum[q < 66, r < 1, s < 1](X[q, y * 2 + r, x * 2 + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "reorder(Y.y, Y.f.outer, Y.x.outer, Y.q, Y.r, Y.s, Y.f.inner, Y.x.inner)"))
      << steps;
  EXPECT_TRUE(has(steps, "vectorize(Y.x.inner)")) << steps;
}

/// All pixels of an image that is read whole are one line.
TEST(ChooseImages, CopiesTilesOfPixelsWithoutAWindow) {
  EXPECT_EQ(chosen(pointwise(64, 56)), R"(schedule cpu {
  fuse(Y.y, Y.x)
  split(Y.y.x.fused, factor=48)
  reorder(Y.y.x.fused.outer, Y.f, Y.y.x.fused.inner)
  cache_write(Y, global)
  split(Y.global.f.c, factor=8)
  reorder(Y.global.y.x.fused.outer.c, Y.global.f.c.outer, Y.global.q, Y.global.f.c.inner, Y.global.y.x.fused.inner.c)
  cache_read(X, global, Y.global, Y.global.y.x.fused.outer.c, Y.global.q, Y.global.y.x.fused.inner.c)
  vectorize(Y.global.y.x.fused.inner.c)
  unroll(Y.global.f.c.inner)
  vectorize(X.global.y.x.fused.inner.c)
  fuse(Y.y, Y.x)
  split(Y.y.x.fused, factor=48)
  reorder(Y.y.x.fused.outer, Y.f, Y.y.x.fused.inner)
  split(Y.f, factor=8)
  unroll(Y.f.inner)
  vectorize(Y.y.x.fused.inner)
  compute_at(Y.global, Y.f.outer)
  compute_at(X.global, Y.y.x.fused.outer)
  parallel(Y.y.x.fused.outer)
}
)");
}

/// Lines of many channels lie far apart: tile after tile would wait for each of them.
TEST(ChooseImages, CopiesLinesThatManyTilesReadWithoutAWindow) {
  const std::string part = chosen(pointwise(64, 57));
  EXPECT_TRUE(has(part, "compute_at(X.global, Y.y.outer)")) << part;
  const std::string few = chosen(pointwise(8, 56));
  EXPECT_FALSE(has(few, "cache_read")) << few;
}

/// Channels last: columns are channels, of which a panel of filters has a row for each step. Rows
/// of 25 would begin anywhere in a line.
TEST(ChooseImages, AlignsFiltersOfChannelsLastAndWritesOutTheirWindow) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[8, 34, 46, 53], F: float32[25, 53, 5, 5]) -> (Y: float32[8, 26, 38, 25])"
      " {\n"
      "  Y[n, y, x, f] = sum[q < 53, r < 5, s < 5](X[n, y + r * 2, x + s * 2, q] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "storage_align(F.global.s, factor=16)")) << steps;
  EXPECT_TRUE(has(steps, "unroll(Y.s)")) << steps;
  EXPECT_FALSE(has(steps, "unroll(Y.r)")) << steps;
}

/// Seven steps of 16 multiply-adds are written out, seven times seven are not.
TEST(ChooseImages, WritesOutAsMuchOfAWindowAsALoopTakes) {
  const std::string steps = chosen(kernel_of(
      "kernel k(X: float32[32, 62, 62], F: float32[60, 32, 7, 7]) -> (Y: float32[60, 56, 56]) {\n"
      "  Y[f, y, x] = sum[q < 32, r < 7, s < 7](X[q, y + r, x + s] * F[f, q, r, s])\n"
      "}\n"));
  EXPECT_TRUE(has(steps, "unroll(Y.global.s)")) << steps;
  EXPECT_FALSE(has(steps, "unroll(Y.global.r)")) << steps;
}

TEST(ChooseImages, TriesTheOtherWaysWhenTuned) {
  const std::vector<std::string> channels = {"vectors of channels", "blocks of lines",
                                             "patches in order", "outer products",
                                             "outer products of packed panels"};
  EXPECT_EQ(names_of(padded(1, 64, 64, 56, 56)), channels);
  EXPECT_EQ(names_of(pointwise(64, 56))[0], "tiles of pixels");
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

/// Channels last, of windows that are written out: of 16 registers sums take 8 where columns come
/// from L2, and 12 where L1 has them.
TEST(ChooseImages, WindowsThatAreWrittenOutHaveRegistersBesideSums) {
  const auto tile = [](int channels, int window, int filters, const std::string& arch) {
    const std::string text = fmt::format(
        "kernel k(X: float32[8, 30, 30, {0}], F: float32[{2}, {0}, {1}, {1}]) -> "
        "(Y: float32[8, 24, 24, {2}]) {{\n"
        "  Y[n, y, x, f] = sum[c < {0}, i < {1}, j < {1}](X[n, y + i, x + j, c] * F[f, c, i, j])\n"
        "}}\n",
        channels, window, filters);
    return chosen(kernel_of(text), {.kind = TargetKind::Llvm, .arch = arch});
  };
  EXPECT_TRUE(has(tile(53, 5, 32, "znver3"), "split(Y.x, factor=4)\n  split(Y.f, factor=16)"));
  EXPECT_TRUE(has(tile(10, 3, 32, "znver3"), "split(Y.x, factor=6)\n  split(Y.f, factor=16)"));
  EXPECT_FALSE(has(tile(5, 3, 48, "znver3"), "split(Y.f, factor=24)"));
  EXPECT_TRUE(has(tile(53, 5, 32, "znver4"), "split(Y.x, factor=12)")) << tile(53, 5, 32, "znver4");
}

}  // namespace
}  // namespace kiln::testing
