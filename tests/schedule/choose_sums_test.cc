/// Automatic schedules of reductions that have so few results that cores share their steps.

#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/lower.h"
#include "tests/support/kernels.h"

namespace kiln::testing {
namespace {

std::string automatic(std::string_view text, const CompileOptions& options = {},
                      const std::string& arch = "znver3") {
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{TargetKind::Llvm, arch};
  return lowered_text(kernel, choose_schedule(kernel, {}, target, options), target, options, "");
}

/// What the partial results are: "64" of a sum of all, "64, 8" of eight columns; "" where there are
/// none.
std::string parts_of(std::string_view text, const CompileOptions& options = {}) {
  const std::string loops = automatic(text, options);
  std::smatch found;
  const bool is_split =
      std::regex_search(loops, found, std::regex(R"(allocate [A-Za-z.]+\.rf: \w+\[(.*)\] scope)"));
  return is_split ? found[1].str() : "";
}

TEST(ChooseSums, CoresShareASumOfAll) {
  EXPECT_EQ(automatic("kernel k(X: float32[4096, 512]) -> (S: float32[]) { S[] = sum[i < 4096, j < "
                      "512](X[i, j]) }",
                      {}, "znver4"),
            R"(fn k(X: float32[4096, 512], S: float32[]) {
  allocate S.rf: float32[32] scope(global)
  for i.j.fused.outer.outer in 0..16 parallel {
    for i.j.fused.outer.inner in 0..2 unroll {
      S.rf[i.j.fused.outer.outer*2 + i.j.fused.outer.inner] = 0.0
    }
    for i.j.fused.inner.outer in 0..1024 {
      for i.j.fused.outer.inner_1 in 0..2 unroll {
        for i.j.fused.inner.inner in 0..64 vectorize {
          S.rf[i.j.fused.outer.outer*2 + i.j.fused.outer.inner_1] = S.rf[i.j.fused.outer.outer*2 + i.j.fused.outer.inner_1] + X[i.j.fused.outer.outer*256 + i.j.fused.outer.inner_1*128 + floordiv(i.j.fused.inner.outer*64 + i.j.fused.inner.inner, 512), floormod(i.j.fused.inner.outer*64 + i.j.fused.inner.inner, 512)]
        }
      }
    }
  }
  S[] = 0.0
  for i.j.fused.outer.v.inner in 0..32 vectorize {
    S[] = S[] + S.rf[i.j.fused.outer.v.inner]
  }
}
)");
}

TEST(ChooseSums, PartsAreWorthACore) {
  const auto parts = [](int64_t length, std::string_view element = "X[i]") {
    return parts_of(
        fmt::format("kernel k(X: float32[{0}]) -> (S: float32[]) {{ S[] = sum[i < {0}]({1}) }}",
                    length, element));
  };
  EXPECT_EQ(parts(80'000), "");  // awake, another core would find little left
  EXPECT_EQ(parts(100'000), "4");
  EXPECT_EQ(parts(16'384, "exp(X[i])"), "4");  // which take longer than to read them
  EXPECT_EQ(parts(200'000), "5");
  EXPECT_EQ(parts(10'000'000), "64");
  EXPECT_EQ(parts(10'000'019), "64");  // a prime: the last one is shorter
}

TEST(ChooseSums, OfWhatIsComputedAndInsideOfExpressions) {
  EXPECT_EQ(parts_of("kernel k(X: float32[1000000], Y: float32[1000000]) -> (S: float32[]) { S[] = "
                     "sqrt(sum[i < 1000000]((X[i] - Y[i]) * (X[i] - Y[i]))) }"),
            "50");
  EXPECT_EQ(parts_of("kernel k(X: int32[1000000]) -> (S: int32[1]) { S[j] = min[i < "
                     "1000000](X[i]) }"),
            "25, 1");
}

TEST(ChooseSums, OfNumbersThatAreReadNowhere) {
  // However many parts there are, they have to have a place.
  EXPECT_EQ(parts_of("kernel k(X: int32[n]) -> (S: int32[]) { S[] = sum[i < n](int32(i)) }"), "");
  EXPECT_EQ(parts_of("kernel k(X: int32[4]) -> (S: int32[]) { S[] = sum[i < 1000000](int32(i)) }"),
            "10");
  // A step has no factor as large as a 64th of these.
  for (const char* const extent : {"1099511627776", "140737488355328"})
    EXPECT_EQ(
        parts_of(fmt::format(
            "kernel k(X: int32[4]) -> (S: int32[]) {{ S[] = sum[i < {}](int32(i)) }}", extent)),
        "");
  EXPECT_EQ(parts_of("kernel k(X: int32[4]) -> (S: int32[]) { S[] = sum[i < 0](X[i]) }"), "");
}

TEST(ChooseSums, OfFewColumnsAndOfProducts) {
  const auto columns = [](int64_t count, int64_t rows = 100'000) {
    return parts_of(
        fmt::format("kernel k(X: float32[{1}, {0}]) -> (S: float32[{0}]) {{ S[j] = "
                    "sum[i < {1}](X[i, j]) }}",
                    count, rows));
  };
  EXPECT_EQ(columns(8), "20, 8");
  EXPECT_EQ(columns(64, 40'000), "16, 64");
  EXPECT_EQ(columns(256, 10'000), "");  // from L3, where cores share columns
  EXPECT_EQ(columns(256), "50, 256");
  EXPECT_EQ(columns(0), "");
  const auto gram = [](int64_t count) {
    return parts_of(
        fmt::format("kernel k(X: float32[100000, {0}]) -> (S: float32[{0}, {0}]) {{ "
                    "S[i, j] = sum[k < 100000](X[k, i] * X[k, j]) }}",
                    count));
  };
  EXPECT_EQ(gram(8), "50, 8, 8");
  EXPECT_EQ(gram(64), "");
}

TEST(ChooseSums, RowsAreSharedAsTheyAre) {
  const auto rows = [](int64_t count) {
    return parts_of(
        fmt::format("kernel k(X: float32[{0}, 1000000]) -> (S: float32[{0}]) {{ S[i] = "
                    "max[j < 1000000](X[i, j]) }}",
                    count));
  };
  EXPECT_EQ(rows(2), "10, 2");
  EXPECT_EQ(rows(7), "8, 7");
  EXPECT_EQ(rows(8), "");
}

/// How many parts there are, a call decides; how long they are is the definition's.
TEST(ChooseSums, OfOpenSizesHavePartsOfOneLength) {
  EXPECT_EQ(parts_of("kernel k(X: float32[n]) -> (S: float32[]) { S[] = sum[i < n](X[i]) }"),
            "floordiv(n + 47999, 48000)");
  EXPECT_EQ(parts_of("kernel k(X: float32[n, m]) -> (S: float32[]) { S[] = sum[i < n, j < m]("
                     "X[i, j]) }"),
            "floordiv(n + 93, 94)");
  EXPECT_EQ(parts_of("kernel k(X: float32[4, n]) -> (S: float32[]) { S[] = sum[i < 4, j < n]("
                     "X[i, j]) }"),
            "floordiv(n + 47999, 48000)");
  EXPECT_EQ(parts_of("kernel k(X: float32[n, 8]) -> (S: float32[8]) { S[j] = sum[i < n](X[i, j]) "
                     "}"),
            "floordiv(n + 5999, 6000), 8");
  EXPECT_EQ(parts_of("kernel k(X: float32[n, m]) -> (S: float32[m]) { S[j] = sum[i < n](X[i, j]) "
                     "}"),
            "");
}

TEST(ChooseSums, StrictOnesStayInOrder) {
  const CompileOptions strict{.strict = true};
  EXPECT_EQ(parts_of("kernel k(X: float32[1000000]) -> (S: float32[]) { S[] = sum[i < "
                     "1000000](X[i]) }",
                     strict),
            "");
  EXPECT_EQ(parts_of("kernel k(X: int32[1000000]) -> (S: int32[]) { S[] = sum[i < "
                     "1000000](X[i]) }",
                     strict),
            "25");
}

/// The order of a sum is the same for CPUs of any number of cores.
TEST(ChooseSums, PartsAreNotOfTheCores) {
  const language::Kernel kernel =
      kernel_of(
          "kernel k(X: float32[4096, 4096]) -> (S: float32[]) { S[] = sum[i < 4096, j < "
          "4096](X[i, j]) }")
          .kernel;
  for (const char* arch : {"znver3", "znver3+cores128"}) {
    const Target target{TargetKind::Llvm, arch};
    const std::string loops =
        lowered_text(kernel, choose_schedule(kernel, {}, target, {}), target, {}, "");
    EXPECT_NE(loops.find("allocate S.rf: float32[64]"), std::string::npos) << loops;
  }
}

/// Blocks of columns have four registers of sums, beside what is loaded and compared; sums that
/// come from L3 have eight, and more rows.
TEST(ChooseSums, DownColumnsFitTheRegisters) {
  const auto down = [](std::string_view how, int rows, int columns, const std::string& arch) {
    return automatic(fmt::format("kernel k(X: float32[{0}, {1}]) -> (Y: float32[{1}]) {{ Y[j] = "
                                 "{2}[i < {0}](X[i, j]) }}",
                                 rows, columns, how),
                     {}, arch);
  };
  const auto expect = [](const std::string& loops, int rows, int lanes) {
    EXPECT_NE(loops.find(fmt::format("i.inner in 0..{} unroll", rows)), std::string::npos) << loops;
    EXPECT_NE(loops.find(fmt::format("in 0..{} vectorize", lanes)), std::string::npos) << loops;
  };
  expect(down("max", 4096, 4096, "znver3"), 8, 32);
  expect(down("sum", 4096, 4096, "znver3"), 8, 32);
  expect(down("max", 512, 2048, "znver3"), 4, 32);
  expect(down("sum", 512, 2048, "znver3"), 16, 64);
  expect(down("max", 4096, 4096, "sapphirerapids"), 4, 64);
  expect(down("max", 4096, 4096, "znver4"), 16, 16);
}

/// Of rows side by side, which come from memory: what compares has two registers each, and so has
/// no place for more than two vectors of four rows.
TEST(ChooseSums, AlongRowsOfMemoryExtremesFitTheRegisters) {
  const auto lanes = [](std::string_view how, int rows, const std::string& arch, int expected) {
    const std::string loops =
        automatic(fmt::format("kernel k(X: float32[{0}, 4096]) -> (Y: float32[{0}]) {{ Y[i] = "
                              "{1}[j < 4096](X[i, j]) }}",
                              rows, how),
                  {}, arch);
    EXPECT_NE(loops.find(fmt::format("in 0..{} vectorize", expected)), std::string::npos) << loops;
  };
  lanes("max", 4096, "znver3", 16);
  lanes("sum", 4096, "znver3", 64);
  lanes("max", 256, "znver3", 64);
  lanes("max", 4096, "sapphirerapids", 64);
}

/// Short rows from memory are added up one after the other, as they come, and cores share them;
/// longer ones 16 at a time, and from two pages on cores share their columns. From L3 nothing
/// waits.
TEST(ChooseSums, DownColumnsOfMemoryTakeRowsAsTheyCome) {
  const auto down = [](int rows, int columns) {
    return automatic(fmt::format("kernel k(X: float32[{0}, {1}]) -> (Y: float32[{1}]) {{ Y[j] = "
                                 "sum[i < {0}](X[i, j]) }}",
                                 rows, columns),
                     {}, "znver4");
  };
  const auto has = [](const std::string& loops, std::string_view part) {
    return loops.find(part) != std::string::npos;
  };
  const std::string short_rows = down(98304, 256);
  EXPECT_TRUE(has(short_rows, "allocate Y.rf: float32[64, 256]")) << short_rows;
  EXPECT_TRUE(has(short_rows,
                  "for i.inner in 0..1536 {\n"
                  "      for j.inner.outer_1 in 0..4 {\n"
                  "        for j.inner.inner_1 in 0..64 vectorize {"))
      << short_rows;
  const std::string rows = down(24576, 1024);
  EXPECT_TRUE(has(rows, "allocate Y.rf: float32[64, 1024]")) << rows;
  EXPECT_TRUE(has(rows, "for i.inner.inner in 0..16 unroll")) << rows;
  EXPECT_FALSE(has(down(12288, 2048), "Y.rf"));
  EXPECT_FALSE(has(down(1024, 1024), "Y.rf"));
  // Rows that lie apart do not come one after the other.
  const std::string apart = automatic(
      "kernel k(X: float32[384, 32, 379]) -> (S: float32[32, 379]) {"
      " S[i, j] = sum[q < 384](X[q, i, j]) }",
      {}, "znver4");
  EXPECT_TRUE(has(apart, "for q.inner in 0..16 unroll")) << apart;
  // A row times a matrix is a sum of its rows, too.
  const std::string product = automatic(
      "kernel k(A: float32[1, 24576], B: float32[24576, 1000]) -> (C: float32[1, 1000]) {"
      " C[i, j] = sum[q < 24576](A[i, q] * B[q, j]) }",
      {}, "znver4");
  EXPECT_TRUE(has(product, "allocate C.rf: float32[64, 1, 1000]")) << product;
}

/// On a Zen 4 one row after the other comes faster from memory than four side by side.
TEST(ChooseSums, RowsComeFromMemoryAsTheMachineHasThemFastest) {
  const std::string rows =
      "kernel k(X: float32[4096, 4096]) -> (S: float32[4096]) { S[i] = sum[j < 4096](X[i, j]) }";
  EXPECT_NE(automatic(rows, {}, "sapphirerapids").find("i.inner in 0..4 unroll"),
            std::string::npos);
  EXPECT_EQ(automatic(rows, {}, "znver4").find("i.inner"), std::string::npos);
}

std::string steps_of(std::string_view text, const CompileOptions& options = {}) {
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{.kind = TargetKind::Llvm, .arch = "znver4"};
  return language::print_schedule(kernel, "cpu", choose_schedule(kernel, {}, target, options));
}

/// Squares of the rows are turned, so that each is reduced as it says.
TEST(ChooseSums, RowsWhoseOrderStaysAreSideBySide) {
  EXPECT_EQ(steps_of("kernel k(X: float32[100, 1000]) -> (S: float32[100]) {"
                     " S[i] = sum[k < 1000](X[i, k]) }",
                     {.strict = true}),
            "schedule cpu {\n"
            "  split(S.i, factor=16)\n"
            "  split(S.k, factor=64)\n"
            "  reorder(S.i.outer, S.k.outer, S.k.inner, S.i.inner)\n"
            "  vectorize(S.i.inner)\n"
            "  parallel(S.i.outer)\n"
            "  cache_read(X, local, S, S.i.outer, S.k.outer, S.k.inner, S.i.inner)\n"
            "  compute_at(X.local, S.k.outer)\n"
            "  split(X.local.k.inner, factor=16)\n"
            "  split(X.local.i.inner, factor=16)\n"
            "  reorder(X.local.i.inner.outer, X.local.k.inner.outer, X.local.i.inner.inner, "
            "X.local.k.inner.inner)\n"
            "  unroll(X.local.i.inner.inner)\n"
            "  vectorize(X.local.k.inner.inner)\n"
            "}\n");
  const auto is_turned = [](std::string_view shape, std::string_view sum, bool strict = true,
                            int rows = 100) {
    const std::string steps =
        steps_of(fmt::format("kernel k(X: float32[{}], I: int64[1000]) -> (S: float32[{}]) {{"
                             " S[i] = {} }}",
                             shape, rows, sum),
                 {.strict = strict});
    return steps.find("cache_read(X") != std::string::npos;
  };
  EXPECT_TRUE(is_turned("100, 1000", "prod[k < 1000](X[i, k])"));
  EXPECT_FALSE(is_turned("100, 1000", "sum[k < 1000](X[i, k])", false));
  EXPECT_FALSE(is_turned("100, 8", "sum[k < 8](X[i, k])"));
  // Half of the lanes at least.
  EXPECT_TRUE(is_turned("8, 1000", "sum[k < 1000](X[i, k])", true, 8));
  EXPECT_FALSE(is_turned("7, 1000", "sum[k < 1000](X[i, k])", true, 7));
  EXPECT_FALSE(is_turned("1000, 100", "sum[k < 1000](X[k, i])"));
  EXPECT_FALSE(is_turned("100, 1000", "sum[k < 1000](X[i, I[k]])"));
  EXPECT_FALSE(is_turned("100, 2000", "sum[k < 1000](X[i, k * 2])"));
}

std::string pairs_of(std::string_view sum, int columns = 500, std::string_view x = "500, 128") {
  return steps_of(
      fmt::format("kernel k(X: float32[{0}], Y: float32[{1}, 128]) -> "
                  "(D: float32[500, {1}]) {{ D[i, j] = {2} }}",
                  x, columns, sum));
}

/// Of two tensors by rows, that are no product: tiles of both, a vector of the rows of the second,
/// which are turned into columns for that.
TEST(ChooseSums, PairsOfRowsAreInTilesOfTurnedColumns) {
  EXPECT_EQ(pairs_of("sum[k < 128](abs(X[i, k] - Y[j, k]))"),
            "schedule cpu {\n"
            "  split(D.i, factor=12)\n"
            "  split(D.j, factor=32)\n"
            "  reorder(D.i.outer, D.j.outer, D.k, D.i.inner, D.j.inner)\n"
            "  cache_read(Y, global, D, D.j.outer, D.k, D.j.inner)\n"
            "  vectorize(D.j.inner)\n"
            "  unroll(D.i.inner)\n"
            "  parallel(D.i.outer)\n"
            "  split(Y.global.k, factor=16)\n"
            "  split(Y.global.j.inner, factor=16)\n"
            "  reorder(Y.global.k.outer, Y.global.j.inner.outer, Y.global.j.inner.inner, "
            "Y.global.k.inner)\n"
            "  unroll(Y.global.j.inner.inner)\n"
            "  vectorize(Y.global.k.inner)\n"
            "  parallel(Y.global.j.outer)\n"
            "}\n");
  const auto has_tiles = [&](std::string_view sum, std::string_view x = "500, 128") {
    return pairs_of(sum, 500, x).find("unroll(D.i.inner)") != std::string::npos;
  };
  EXPECT_TRUE(has_tiles("sum[k < 3](abs(X[i, k] - Y[j, k]))"));
  EXPECT_TRUE(has_tiles("min[k < 60](X[k, i] + Y[j, k])", "60, 500"));
  // An element of each pair; a row alone.
  EXPECT_FALSE(has_tiles("sum[k < 128](abs(X[i, j, k] - Y[j, k]))", "500, 500, 128"));
  EXPECT_FALSE(has_tiles("sum[k < 128](abs(Y[i, k] - 1.0))"));
}

/// What both read from one tensor stays where it is: short rows are gathered, long ones are added
/// up along vectors.
TEST(ChooseSums, PairsOfOneTensorAreNotTurned) {
  const auto chosen = [](int steps) {
    return steps_of(
        fmt::format("kernel k(X: float32[500, {0}]) -> (D: float32[500, 500]) "
                    "{{ D[i, j] = sum[k < {0}](abs(X[i, k] - X[j, k])) }}",
                    steps));
  };
  EXPECT_EQ(chosen(3).find("cache_read"), std::string::npos);
  EXPECT_NE(chosen(3).find("vectorize(D.j.inner)"), std::string::npos);
  EXPECT_EQ(chosen(128),
            "schedule cpu {\n"
            "  split(D.i, factor=5)\n"
            "  split(D.j, factor=4)\n"
            "  split(D.k, factor=16)\n"
            "  reorder(D.i.outer, D.j.outer, D.k.outer, D.i.inner, D.j.inner, "
            "D.k.inner)\n"
            "  vectorize(D.k.inner)\n"
            "  unroll(D.j.inner)\n"
            "  unroll(D.i.inner)\n"
            "  parallel(D.i.outer)\n"
            "}\n");
}

/// Of so few columns a vector would be mostly empty.
TEST(ChooseSums, AFewRowsPairedWithManyAreAddedUpAlongVectors) {
  EXPECT_NE(pairs_of("max[k < 128](X[i, k] * Y[j, k])", 3).find("vectorize(D.k.inner)"),
            std::string::npos);
}

/// Rows with two or three results are the lanes, and results and short sums are written out.
TEST(ChooseSums, TakesRowsAsLanesWhereResultsAreFewerThanLanes) {
  const auto chosen = [](std::string_view x, std::string_view y, std::string_view sum) {
    return steps_of(
        fmt::format("kernel k(X: float32[{}], M: float32[100, 100]) -> (Y: float32[{}])"
                    " {{ Y[{}] = {} }}",
                    x, y, y.find(',') == std::string::npos ? "i" : "i, j", sum));
  };
  EXPECT_EQ(chosen("1000000, 3", "1000000, 3", "sum[k < 3](X[i, k] * M[k, j])"),
            "schedule cpu {\n"
            "  split(Y.i, factor=16)\n"
            "  reorder(Y.i.outer, Y.k, Y.j, Y.i.inner)\n"
            "  vectorize(Y.i.inner)\n"
            "  unroll(Y.j)\n"
            "  unroll(Y.k)\n"
            "  parallel(Y.i.outer)\n"
            "}\n");
  const auto has_lanes = [&](std::string_view x, std::string_view y, std::string_view sum) {
    return chosen(x, y, sum).find("vectorize(Y.i.inner)") != std::string::npos;
  };
  EXPECT_TRUE(has_lanes("1000, 3", "1000", "max[k < 3](X[i, k])"));
  EXPECT_TRUE(has_lanes("20000, 30", "20000, 3", "sum[k < 30](X[i, k] * M[k, j])"));
  EXPECT_FALSE(
      chosen("20000, 30", "20000, 3", "sum[k < 30](X[i, k] * M[k, j])").find("unroll(Y.k)") !=
      std::string::npos);
  // Four results are a vector of their own, and a few rows fill none.
  EXPECT_FALSE(has_lanes("1000, 3", "1000, 4", "sum[k < 3](X[i, k] * M[k, j])"));
  EXPECT_FALSE(has_lanes("7, 3", "7, 3", "sum[k < 3](X[i, k] * M[k, j])"));
}

}  // namespace
}  // namespace kiln::testing
