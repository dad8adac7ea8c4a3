/// Automatic schedules that lay out a factor of a product as its tiles read it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

/// The steps that are chosen for the only kernel of a text, on this host or another CPU.
std::string steps_of(std::string_view text, const std::string& arch = "") {
  const language::TextKernel kernel = kernel_of(text);
  const Target target{.kind = TargetKind::Llvm, .arch = arch};
  return language::print_schedule(kernel.kernel, "cpu",
                                  choose_schedule(kernel.kernel, {}, target, {}));
}

/// The steps that are chosen for C[i, j] = sum(a * b) of these sizes.
std::string chosen_for(int m, int n, int l, std::string_view a, std::string_view b,
                       std::string_view a_shape, std::string_view b_shape) {
  const std::string text = fmt::format(
      "kernel k(A: float32[{}], B: float32[{}]) -> (C: float32[{m}, {n}]) {{\n"
      "  C[i, j] = sum[k < {l}]({} * {})\n"
      "}}\n",
      fmt::format(fmt::runtime(a_shape), fmt::arg("m", m), fmt::arg("l", l)),
      fmt::format(fmt::runtime(b_shape), fmt::arg("n", n), fmt::arg("l", l)), a, b,
      fmt::arg("m", m), fmt::arg("n", n), fmt::arg("l", l));
  return steps_of(text);
}

std::string rows_by_columns(int m, int n, int l) {
  return chosen_for(m, n, l, "A[i, k]", "B[k, j]", "{m}, {l}", "{l}, {n}");
}

std::string rows_by_rows(int m, int n, int l) {
  return chosen_for(m, n, l, "A[i, k]", "B[j, k]", "{m}, {l}", "{n}, {l}");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Each core copies the panels of its own columns, which stay in its L2.
TEST(ChoosePanels, CopiesALargeFactorInBlocksOfColumns) {
  EXPECT_EQ(rows_by_columns(1024, 1024, 1024),
            "schedule cpu {\n"
            "  split(C.i, factor=9)\n"
            "  split(C.j, factor=48)\n"
            "  split(C.j.outer, factor=2)\n"
            "  reorder(C.j.outer.outer, C.i.outer, C.j.outer.inner, C.k, C.i.inner, C.j.inner)\n"
            "  cache_read(B, global, C, C.j.outer.outer, C.j.outer.inner, C.k, C.j.inner)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.j.outer.outer)\n"
            "  reorder(B.global.k, B.global.j.outer.inner)\n"
            "  vectorize(B.global.j.inner)\n"
            "  compute_at(B.global, C.j.outer.outer)\n"
            "}\n");
  EXPECT_TRUE(has(rows_by_columns(2048, 2048, 2048), "split(C.j.outer, factor=3)"));
  EXPECT_TRUE(has(rows_by_columns(512, 512, 512), "compute_at(B.global, C.j.outer)"));
  EXPECT_TRUE(has(rows_by_columns(1023, 1027, 1025), "split(C.j.outer, factor=4)"));
}

TEST(ChoosePanels, CopiesBothFactorsWhereBothLieAcross) {
  const std::string chosen =
      chosen_for(1024, 1024, 1024, "A[k, i]", "B[j, k]", "{l}, {m}", "{n}, {l}");
  EXPECT_TRUE(has(chosen, "cache_read(A, global, C, C.i.outer, C.k, C.i.inner)")) << chosen;
  EXPECT_TRUE(has(chosen,
                  "reorder(A.global.i.outer.outer, A.global.k, A.global.i.outer.inner, "
                  "A.global.i.inner)"))
      << chosen;
  const std::string small = chosen_for(64, 64, 64, "A[k, i]", "B[k, j]", "{l}, {m}", "{l}, {n}");
  EXPECT_FALSE(has(small, "cache_read")) << small;
}

/// Blocks of columns would read all rows again and again.
TEST(ChoosePanels, CopiesAllPanelsFirstForManyRows) {
  EXPECT_EQ(rows_by_columns(16384, 256, 1024),
            "schedule cpu {\n"
            "  split(C.i, factor=12)\n"
            "  split(C.j, factor=32)\n"
            "  reorder(C.i.outer, C.j.outer, C.k, C.i.inner, C.j.inner)\n"
            "  cache_read(B, global, C, C.j.outer, C.k, C.j.inner)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.i.outer)\n"
            "  vectorize(B.global.j.inner)\n"
            "  parallel(B.global.j.outer)\n"
            "}\n");
}

TEST(ChoosePanels, TurnsAFactorWhoseColumnsAreApart) {
  const std::string chosen = rows_by_rows(64, 64, 64);
  EXPECT_TRUE(has(chosen, "cache_read(B, global, C, C.j.outer, C.k, C.j.inner)")) << chosen;
  EXPECT_TRUE(has(chosen, "split(B.global.k, factor=16)")) << chosen;
}

/// Squares of registers are turned, of lines that are loaded as they lie; of few steps, or where
/// vectors of columns are not whole, these are gathered.
TEST(ChoosePanels, CopiesColumnsThatAreApartInSquares) {
  EXPECT_TRUE(has(rows_by_rows(64, 64, 64), "vectorize(B.global.k.inner)"));
  EXPECT_TRUE(has(rows_by_rows(64, 64, 200), "vectorize(B.global.k.inner)"));
  EXPECT_TRUE(has(rows_by_rows(64, 64, 24), "vectorize(B.global.j.inner)"));
  EXPECT_TRUE(has(rows_by_rows(64, 21, 64), "vectorize(B.global.j.inner)"));
}

TEST(ChoosePanels, LeavesASmallFactorWhereItIs) {
  EXPECT_FALSE(has(rows_by_columns(256, 256, 256), "cache_read"));
}

/// Vectors of 500 columns begin anywhere in a line of the cache.
TEST(ChoosePanels, CopiesAFactorWhoseVectorsLieAcrossLines) {
  EXPECT_TRUE(has(rows_by_columns(500, 500, 500), "compute_at(B.global, C.j.outer"));
  EXPECT_FALSE(has(rows_by_columns(200, 200, 200), "cache_read"));
}

/// Each step of B is in another page.
TEST(ChoosePanels, CopiesFactorsWhoseStepsAreFarApart) {
  const std::string chosen = steps_of(
      "kernel k(A: float32[32, 144, 144], B: float32[144, 32, 160]) -> (C: float32[32, 144, 160]) "
      "{\n"
      "  C[b, i, j] = sum[k < 144](A[b, k, i] * B[k, b, j])\n"
      "}\n");
  EXPECT_TRUE(has(chosen, "cache_read(B, global")) << chosen;
}

/// A tile takes a piece of each line of A, and does so again for each panel. A copy has the tile's
/// elements side by side: more rows at a time are no more streams.
TEST(ChoosePanels, CopiesRowsThatLieAcrossTheSum) {
  const std::string chosen =
      chosen_for(448, 448, 448, "A[k, i]", "B[k, j]", "{l}, {m}", "{l}, {n}");
  EXPECT_TRUE(has(chosen, "cache_read(A, global, C, C.i.outer, C.k, C.i.inner)")) << chosen;
  const std::string ragged =
      chosen_for(544, 391, 525, "A[k, i]", "B[k, j]", "{l}, {m}", "{l}, {n}");
  EXPECT_TRUE(has(ragged, "split(C.i, factor=14)")) << ragged;
  EXPECT_TRUE(has(ragged, "cache_read(B, global")) << ragged;
}

/// The gradient of the weights of a layer: a copy is read by each tile of columns, of which there
/// are to be enough, and more where a core is busy while the elements come.
TEST(ChoosePanels, LeavesRowsAcrossTheSumWhereFewTilesReadThem) {
  const auto chosen = [](int rows, int columns, const char* arch) {
    return steps_of(
        fmt::format("kernel k(A: float32[1000, {0}], B: float32[1000, {1}]) -> (C: float32[{0}, "
                    "{1}]) {{\n  C[i, j] = sum[k < 1000](A[k, i] * B[k, j])\n}}\n",
                    rows, columns),
        arch);
  };
  for (const char* arch : {"sapphirerapids", "znver4"})
    EXPECT_FALSE(has(chosen(256, 100, arch), "cache_read(A, global")) << arch;
  EXPECT_TRUE(has(chosen(784, 256, "sapphirerapids"), "cache_read(A, global"));
  EXPECT_FALSE(has(chosen(784, 256, "znver4"), "cache_read(A, global"));
  EXPECT_TRUE(has(chosen(784, 1000, "znver4"), "cache_read(A, global"));
}

TEST(ChoosePanels, CopiesEachPanelBeforeFewRowsReadIt) {
  EXPECT_EQ(rows_by_columns(33, 777, 1000),
            "schedule cpu {\n"
            "  split(C.i, factor=11)\n"
            "  split(C.j, factor=32)\n"
            "  split(C.k, factor=125)\n"
            "  reorder(C.j.outer, C.k.outer, C.i.outer, C.k.inner, C.i.inner, C.j.inner)\n"
            "  cache_read(B, global, C, C.j.outer, C.k.outer, C.k.inner, C.j.inner)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.j.outer)\n"
            "  vectorize(B.global.j.inner)\n"
            "  compute_at(B.global, C.k.outer)\n"
            "}\n");
  EXPECT_FALSE(has(rows_by_columns(33, 777, 1009), "split(C.k"));
}

/// Sums of four vectors wait half of the time for the one before: two rows side by side do not; an
/// extreme takes two instructions. Cores have rows of their own.
TEST(ChoosePanels, ReducesSoManyRowsAtOnceThatNothingWaits) {
  const auto steps = [](std::string_view reducer, int rows, int columns) {
    return steps_of(
        fmt::format("kernel k(X: float32[{0}, {1}]) -> (S: float32[{0}]) {{\n"
                    "  S[i] = {2}[k < {1}](X[i, k])\n"
                    "}}\n",
                    rows, columns, reducer));
  };
  EXPECT_TRUE(has(steps("sum", 256, 1024), "split(S.i, factor=2)")) << steps("sum", 256, 1024);
  EXPECT_TRUE(has(steps("sum", 1024, 256), "split(S.i, factor=4)")) << steps("sum", 1024, 256);
  EXPECT_TRUE(has(steps("max", 256, 1024), "split(S.i, factor=4)")) << steps("max", 256, 1024);
  EXPECT_FALSE(has(steps("max", 250, 1024), "split(S.i")) << "a rest of rows has code of its own";
  EXPECT_TRUE(has(steps("max", 8, 131072), "split(S.i, factor=2)")) << steps("max", 8, 131072);
}

/// Sixteen short registers hold the sums of one long row, with what is loaded for them.
TEST(ChoosePanels, ReducesNoMoreRowsAtOnceThanRegistersHold) {
  const std::string text =
      "kernel k(X: float32[64, 1024]) -> (S: float32[64]) { S[i] = max[k < 1024](X[i, k]) }\n";
  EXPECT_TRUE(has(steps_of(text, "znver4"), "split(S.i, factor=4)")) << steps_of(text, "znver4");
  EXPECT_FALSE(has(steps_of(text, "znver3"), "split(S.i")) << steps_of(text, "znver3");
}

/// A copy would be read once. A core that adds one vector a cycle is busy until the next comes.
TEST(ChoosePanels, ReadsALargeFactorOnceWhereItIs) {
  EXPECT_EQ(rows_by_columns(10, 784, 1000),
            "schedule cpu {\n"
            "  split(C.i, factor=10)\n"
            "  split(C.j, factor=32)\n"
            "  reorder(C.i.outer, C.j.outer, C.k, C.i.inner, C.j.inner)\n"
            "  prefetch(B, C.k, offset=8)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.j.outer)\n"
            "}\n");
  const std::string text =
      "kernel k(A: float32[33, 1000], B: float32[1000, 777]) -> (C: float32[33, 777]) {\n"
      "  C[i, j] = sum[k < 1000](A[i, k] * B[k, j])\n"
      "}\n";
  EXPECT_TRUE(has(steps_of(text, "sapphirerapids"), "cache_read(B, global"));
  EXPECT_FALSE(has(steps_of(text, "znver4"), "cache_read"));
}

/// Where L2 does not hold the columns, a few rows take some steps of a block of them before the
/// next ones, and each line is fetched before its tile waits for it.
TEST(ChoosePanels, FetchesAheadWhatFewRowsReadFromFarAway) {
  EXPECT_EQ(rows_by_columns(24, 1024, 1024),
            "schedule cpu {\n"
            "  split(C.i, factor=12)\n"
            "  split(C.j, factor=32)\n"
            "  split(C.k, factor=128)\n"
            "  split(C.j.outer, factor=8)\n"
            "  reorder(C.j.outer.outer, C.k.outer, C.j.outer.inner, C.i.outer, C.k.inner, "
            "C.i.inner, C.j.inner)\n"
            "  prefetch(B, C.k.inner, offset=8)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.j.outer.outer)\n"
            "}\n");
  // From memory in fewer steps; of many rows, and from L2, nothing.
  EXPECT_TRUE(has(rows_by_columns(24, 4096, 4096), "split(C.k, factor=32)"));
  EXPECT_FALSE(has(rows_by_columns(128, 1024, 1024), "prefetch"));
  EXPECT_FALSE(has(rows_by_columns(24, 512, 512), "prefetch"));
}

/// Of rows that are read once, the next tile; not of longer ones, nor of what L2 holds.
TEST(ChoosePanels, FetchesTheNextTileOfRowsThatAreReadOnce) {
  EXPECT_EQ(rows_by_columns(65536, 16, 64),
            "schedule cpu {\n"
            "  split(C.i, factor=16)\n"
            "  split(C.j, factor=16)\n"
            "  reorder(C.i.outer, C.j.outer, C.k, C.i.inner, C.j.inner)\n"
            "  prefetch(A, C.i.outer, offset=1)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.i.outer)\n"
            "}\n");
  EXPECT_FALSE(has(rows_by_columns(65536, 16, 128), "prefetch(A"));
  EXPECT_FALSE(has(rows_by_columns(4096, 16, 64), "prefetch(A"));
}

/// Ten columns are ten lanes of sixteen; along the sum all are full.
TEST(ChoosePanels, TurnsFewColumnsAndAddsAlongTheSum) {
  EXPECT_EQ(rows_by_columns(1000, 10, 784),
            "schedule cpu {\n"
            "  split(C.i, factor=8)\n"
            "  split(C.j, factor=2)\n"
            "  split(C.k, factor=16)\n"
            "  reorder(C.i.outer, C.j.outer, C.k.outer, C.i.inner, C.j.inner, C.k.inner)\n"
            "  cache_read(B, global, C, C.j.outer, C.k.outer, C.j.inner, C.k.inner)\n"
            "  vectorize(C.k.inner)\n"
            "  unroll(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.i.outer)\n"
            "}\n");
  EXPECT_TRUE(has(rows_by_columns(1000, 1, 784), "vectorize(C.k.inner)"));
  for (const int columns : {15, 16, 20})
    EXPECT_FALSE(has(rows_by_columns(1000, columns, 784), "vectorize(C.k.inner)")) << columns;
  // A copy of as many elements as there are products.
  EXPECT_FALSE(has(rows_by_columns(1, 10, 784), "cache_read"));
}

TEST(ChoosePanels, TurnsNothingForFewRows) {
  EXPECT_FALSE(has(rows_by_rows(8, 512, 512), "cache_read"));
}

/// Four rows by four columns, or by three where these are all the registers for sums.
TEST(ChoosePanels, TakesAsManyDotProductsAsTheRegistersHold) {
  const std::string text =
      "kernel k(A: float32[8, 1024], B: float32[1024, 1024]) -> (C: float32[8, 1024]) {\n"
      "  C[i, j] = sum[k < 1024](A[i, k] * B[j, k])\n"
      "}\n";
  EXPECT_TRUE(has(steps_of(text, "znver4"), "split(C.j, factor=4)")) << steps_of(text, "znver4");
  EXPECT_TRUE(has(steps_of(text, "znver3"), "split(C.j, factor=3)")) << steps_of(text, "znver3");
}

/// Factors that both lie along the sum, B larger than any cache: it comes once, for all rows, and
/// cores share it, though there be a single tile of rows.
TEST(ChoosePanels, ReadsTheLargerFactorOfDotProductsOnce) {
  const auto steps = [](int rows, const char* cpu) {
    return steps_of(fmt::format("kernel k(A: float32[{0}, 4096], B: float32[4096, 4096]) -> (C: "
                                "float32[{0}, 4096]) {{ C[i, j] = sum[k < 4096](A[i, k] * B[j, k]) "
                                "}}",
                                rows),
                    cpu);
  };
  for (const char* const cpu : {"znver3", "znver4"}) {
    for (const int rows : {2, 4, 8, 16})
      EXPECT_TRUE(has(steps(rows, cpu), "parallel(C.j.outer)")) << steps(rows, cpu);
    EXPECT_TRUE(has(steps(16, cpu), "reorder(C.j.outer, C.i.outer, C.k.outer")) << steps(16, cpu);
  }
}

/// A tensor times itself cannot be copied for its columns alone: blocks of rows take some steps of
/// all columns before the next ones.
TEST(ChoosePanels, TakesSomeStepsAtOnceOfATensorTimesItself) {
  const auto steps = [](int length) {
    return steps_of(fmt::format("kernel k(X: float32[{0}, 200]) -> (Y: float32[200, 200]) {{\n"
                                "  Y[i, j] = sum[k < {0}](X[k, i] * X[k, j])\n"
                                "}}\n",
                                length),
                    "znver3");
  };
  EXPECT_TRUE(has(steps(2000), "split(Y.k, factor=125)")) << steps(2000);
  EXPECT_TRUE(has(steps(2000), "reorder(Y.i.outer.outer, Y.k.outer, Y.j.outer, Y.i.outer.inner"))
      << steps(2000);
  EXPECT_TRUE(has(steps(2000), "parallel(Y.i.outer.outer)")) << steps(2000);
  EXPECT_FALSE(has(steps(200), "split(Y.k")) << steps(200);
}

/// Of two axes of a sum the one along which the rows lie is the innermost; columns that lie along
/// the other one are turned as they are copied.
TEST(ChoosePanels, AddsAlongTheRowsFirst) {
  const std::string steps = steps_of(
      "kernel k(A: float32[360, 32, 48], B: float32[432, 48, 32]) -> (C: float32[360, 432]) {\n"
      "  C[i, j] = sum[k < 48, l < 32](A[i, l, k] * B[j, k, l])\n"
      "}\n",
      "znver3");
  EXPECT_TRUE(has(steps, "C.l, C.k, C.i.inner")) << steps;
  EXPECT_FALSE(has(steps, "cache_read(A")) << steps;
  EXPECT_TRUE(has(steps, "vectorize(B.global.l.inner)")) << steps;
}

/// Bytes and halves are added in groups only where enough rows read the copies that this takes.
TEST(ChoosePanels, TakesDotProductsOfAFewRowsInThePlaceOfGroups) {
  const auto has_copies = [](int rows, std::string_view type, std::string_view sum,
                             const char* cpu) {
    const std::string text = fmt::format(
        "kernel k(A: {1}[{0}, 4096], B: {1}[4096, 4096]) -> (C: {2}[{0}, 4096]) {{\n"
        "  C[i, j] = sum[k < 4096]({2}(A[i, k]) * {2}(B[j, k]))\n"
        "}}\n",
        rows, type, sum);
    return has(steps_of(text, cpu), "cache_read");
  };
  EXPECT_FALSE(has_copies(8, "int8", "int32", "znver3"));
  EXPECT_TRUE(has_copies(32, "int8", "int32", "znver3"));
  EXPECT_FALSE(has_copies(2, "int8", "int32", "znver4"));
  EXPECT_TRUE(has_copies(8, "int8", "int32", "znver4"));
  EXPECT_FALSE(has_copies(4, "bfloat16", "float32", "znver4"));
  EXPECT_TRUE(has_copies(32, "bfloat16", "float32", "znver4"));
}

/// Few rows read columns once, each step in another page, which takes a Zen 5 no longer.
TEST(ChoosePanels, ReadsColumnsOfManyPagesWhereTheyAre) {
  const std::string text =
      "kernel k(A: float32[16, 2910], B: float32[2910, 928]) -> (C: float32[16, 928]) {\n"
      "  C[i, j] = sum[k < 2910](A[i, k] * B[k, j])\n"
      "}\n";
  EXPECT_FALSE(has(steps_of(text, "znver5"), "cache_read"));
}

/// A convolution of one element with the channels last: each line is a product with the same
/// filters.
TEST(ChoosePanels, TurnsAFactorOnceForAllProductsOfABatch) {
  const auto chosen = [](int columns) {
    return steps_of(
        fmt::format("kernel k(X: float32[5, 24, {0}, 72], W: float32[85, 72])"
                    " -> (Y: float32[5, 24, {0}, 85]) {{\n"
                    "  Y[n, y, x, f] = sum[c < 72](X[n, y, x, c] * W[f, c])\n"
                    "}}\n",
                    columns));
  };
  for (const int columns : {20, 40}) {
    const std::string steps = chosen(columns);
    EXPECT_TRUE(has(steps, "cache_read(W, global, Y, Y.f.outer, Y.c, Y.f.inner)")) << steps;
    EXPECT_FALSE(has(steps, "compute_at(W.global")) << steps;
  }
}

/// Of 12 rows the last tile would have 4, and one core more to do than the other.
TEST(ChoosePanels, TakesTilesThatFillTheProduct) {
  EXPECT_TRUE(has(rows_by_columns(100, 100, 100), "split(C.i, factor=6)"));
  EXPECT_TRUE(has(rows_by_columns(100, 100, 100), "split(C.j, factor=64)"));
  EXPECT_TRUE(has(rows_by_columns(256, 256, 256), "split(C.i, factor=8)"));
  EXPECT_TRUE(has(rows_by_columns(256, 256, 256), "split(C.j, factor=48)"));
  EXPECT_TRUE(has(rows_by_columns(64, 24, 512), "split(C.j, factor=24)"));
}

/// What a layer makes of all steps of one sequence: the steps are the rows of its tiles.
TEST(ChoosePanels, HasTheStepsOfOneSequenceAsRows) {
  const std::string text =
      "kernel k(X: float32[100, {0}, 512], W: float32[512, 2048]) -> (Y: float32[100, {0}, 2048]) "
      "{{\n"
      "  Y[t, b, j] = sum[k < 512](X[t, b, k] * W[k, j])\n"
      "}}\n";
  const std::string chosen = steps_of(fmt::format(fmt::runtime(text), 1));
  EXPECT_TRUE(has(chosen, "unroll(Y.t.inner)")) << chosen;
  const std::string several = steps_of(fmt::format(fmt::runtime(text), 8));
  EXPECT_TRUE(has(several, "unroll(Y.b.inner)")) << several;
}

/// Sums of so many vectors that one addition need not wait for the one before, and a tile of them
/// for each core; of few rows what is around the loop is most.
TEST(ChoosePanels, AddsDownAsManyColumnsAsKeepACoreBusy) {
  const auto lanes = [](int rows, int columns, int lanes) {
    const std::string steps =
        steps_of(fmt::format("kernel k(X: float32[{0}, {1}]) -> (S: float32[{1}]) {{\n"
                             "  S[j] = sum[i < {0}](X[i, j])\n"
                             "}}\n",
                             rows, columns));
    return has(steps, fmt::format("split(S.j, factor={})", lanes)) ? "" : steps;
  };
  EXPECT_EQ(lanes(512, 512, 128), "");
  EXPECT_EQ(lanes(1000, 256, 64), "") << "four cores";
  EXPECT_EQ(lanes(200, 64, 64), "") << "one core, all columns";
  EXPECT_EQ(lanes(3, 1024, 32), "");
}

/// Weights of 4 MB are in L3 at the next step; those of 64 MB are not.
TEST(ChoosePanels, TakesManyRowsAtOnceFromL3) {
  EXPECT_TRUE(has(rows_by_columns(1, 2048, 512), "split(C.k, factor=16)"));
  EXPECT_TRUE(has(rows_by_columns(1, 4096, 4096), "split(C.k, factor=4)"));
}

/// Several sums down columns, whose rows come from memory, and from L3 as lines that follow.
TEST(ChoosePanels, ReadsRowsOfSeveralSumsFromMemoryAsAWhole) {
  const auto steps = [](int sums, int rows, int columns) {
    return steps_of(fmt::format("kernel k(X: float32[{0}, {1}, {2}]) -> (Y: float32[{0}, {2}]) {{\n"
                                "  Y[i, j] = sum[r < {1}](X[i, r, j])\n"
                                "}}\n",
                                sums, rows, columns),
                    "znver3");
  };
  EXPECT_TRUE(has(steps(64, 96, 576), "split(Y.j, factor=1024)")) << steps(64, 96, 576);
  EXPECT_FALSE(has(steps(8, 96, 576), "split(Y.j, factor=1024)")) << steps(8, 96, 576);
}

/// A short row is one block, not a block and a rest.
TEST(ChoosePanels, LeavesNoRestOfAShortRow) {
  const std::string steps = steps_of(
      "kernel k(X: float32[384, 32, 379]) -> (Y: float32[32, 379]) {\n"
      "  Y[i, j] = sum[r < 384](X[r, i, j])\n"
      "}\n",
      "znver3");
  EXPECT_TRUE(has(steps, "split(Y.j, factor=512)")) << steps;
}

TEST(ChoosePanels, SumsDownColumnsForOneRow) {
  const std::string chosen = rows_by_columns(1, 4096, 4096);
  EXPECT_TRUE(has(chosen, "split(C.j, factor=1024)")) << chosen;
  EXPECT_TRUE(has(chosen, "parallel(C.j.outer)")) << chosen;
  EXPECT_TRUE(has(chosen, "reorder(C.k.outer, C.j.inner.outer, C.k.inner, C.j.inner.inner)"))
      << chosen;
  EXPECT_FALSE(has(chosen, "cache_read")) << chosen;
}

/// A tile's columns stay in L1 while all rows pass by, and two cores have as much to do.
TEST(ChoosePanels, PassesRowsByColumnsThatAreNear) {
  EXPECT_EQ(rows_by_columns(127, 127, 127),
            "schedule cpu {\n"
            "  split(C.i, factor=12)\n"
            "  split(C.j, factor=32)\n"
            "  reorder(C.j.outer, C.i.outer, C.k, C.i.inner, C.j.inner)\n"
            "  vectorize(C.j.inner)\n"
            "  unroll(C.i.inner)\n"
            "  parallel(C.j.outer)\n"
            "}\n");
  EXPECT_TRUE(has(rows_by_columns(127, 127, 2000), "cache_read(B, global"))
      << "not near as they are";
}

/// With AVX2 there are half as many, of half the width.
TEST(ChoosePanels, TakesTilesThatTheRegistersOfTheCpuHold) {
  const auto chosen_on = [](const char* arch) {
    return steps_of(
        "kernel k(A: float32[252, 256], B: float32[256, 256]) -> (C: float32[252, 256]) {\n"
        "  C[i, j] = sum[k < 256](A[i, k] * B[k, j])\n"
        "}\n",
        arch);
  };
  EXPECT_TRUE(has(chosen_on("x86-64-v3"), "split(C.i, factor=6)")) << chosen_on("x86-64-v3");
  EXPECT_TRUE(has(chosen_on("znver3+avx512vnni"), "split(C.j, factor=16)"));
  EXPECT_TRUE(has(chosen_on("znver5"), "split(C.i, factor=12)")) << chosen_on("znver5");
}

/// Lines come from L2 whole: two vectors of half a line are no more to fetch than one.
TEST(ChoosePanels, TakesTwoShortVectorsOfARow) {
  const std::string text =
      "kernel k(A: float32[127, 127], B: float32[127, 127]) -> (C: float32[127, 127]) {\n"
      "  C[i, j] = sum[k < 127](A[i, k] * B[k, j])\n"
      "}\n";
  for (const char* arch : {"x86-64-v3", "znver3"}) {
    EXPECT_TRUE(has(steps_of(text, arch), "split(C.i, factor=6)")) << steps_of(text, arch);
    EXPECT_TRUE(has(steps_of(text, arch), "split(C.j, factor=16)")) << steps_of(text, arch);
  }
}

TEST(ChoosePanels, TakesTilesForSizesThatAreOpenByTheRegisters) {
  const std::string text =
      "kernel k(A: float32[m, l], B: float32[l, n]) -> (C: float32[m, n]) {\n"
      "  C[i, j] = sum[k < l](A[i, k] * B[k, j])\n"
      "}\n";
  const auto expect_tile = [&](const char* arch, int rows, int columns) {
    const std::string chosen = steps_of(text, arch);
    EXPECT_TRUE(has(chosen, fmt::format("split(C.i, factor={})", rows))) << arch << chosen;
    EXPECT_TRUE(has(chosen, fmt::format("split(C.j, factor={})", columns))) << arch << chosen;
  };
  expect_tile("sapphirerapids", 8, 32);
  expect_tile("znver4", 8, 32);
  expect_tile("znver3", 6, 16);
  expect_tile("x86-64-v2", 6, 8);
}

/// 800 KB are more than the L2 of a Zen 3 holds.
TEST(ChoosePanels, CopiesAFactorThatL2DoesNotHold) {
  const std::string text =
      "kernel k(A: float32[1000, 784], B: float32[784, 256]) -> (C: float32[1000, 256]) {\n"
      "  C[i, j] = sum[k < 784](A[i, k] * B[k, j])\n"
      "}\n";
  EXPECT_TRUE(has(steps_of(text, "znver3"), "cache_read(B, global"));
  for (const char* arch : {"znver4", "znver5"})
    EXPECT_FALSE(has(steps_of(text, arch), "cache_read(B, global")) << arch;
}

/// A copy has one place for each iteration, but the two factors read it at different ones.
TEST(ChoosePanels, LeavesAMatrixTimesItselfAlone) {
  const std::string chosen = steps_of(
      "kernel k(A: float32[64, 64]) -> (C: float32[64, 64]) {\n"
      "  C[i, j] = sum[k < 64](A[i, k] * A[j, k])\n"
      "}\n");
  EXPECT_FALSE(has(chosen, "cache_read"));
}

/// Adding up lanes at the end is most of a short sum; long columns are read where they lie.
TEST(ChoosePanels, TransposesColumnsOfShortSumsForFewRows) {
  const auto steps = [](int length) {
    return steps_of(fmt::format("kernel k(A: float32[16, {0}], B: float32[{0}, {0}]) -> (C: "
                                "float32[16, {0}]) {{ C[i, j] = sum[k < {0}](A[i, k] * B[j, k]) }}",
                                length),
                    "znver3");
  };
  EXPECT_TRUE(has(steps(64), "cache_read(B")) << steps(64);
  EXPECT_FALSE(has(steps(512), "cache_read(B")) << steps(512);
}

}  // namespace
}  // namespace kiln::testing
