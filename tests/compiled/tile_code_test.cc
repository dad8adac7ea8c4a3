// Which of the two generators for GPUs it is, and what the report says of it.
#include "compiler/tile_code.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/lower.h"
#include "tests/support/expect_error.h"
#include "tests/support/kernels.h"
#include "tests/support/with_tileiras.h"

namespace kiln::testing {
namespace {

/// A product of rows of A and columns of B.
std::string product(std::string_view rows, std::string_view steps, std::string_view columns) {
  return fmt::format(
      "kernel product(A: float16[{0}, {1}], B: float16[{1}, {2}]) -> (C: float32[{0}, {2}]) {{"
      " C[i, j] = sum[r < {1}](float32(A[i, r]) * float32(B[r, j])) }}",
      rows, steps, columns);
}

/// Has no code, or what it is given.
class FakeAssembler : public codegen::TileAssembler {
 public:
  std::vector<std::string> assemble(std::span<const std::string> modules,
                                    std::string_view) const override {
    if (cubin.empty()) fail(ErrorKind::Unavailable, "TILEIRAS", "tileiras was ended by signal 11");
    return std::vector<std::string>(modules.size(), cubin);
  }
  std::string program() const override { return "tileiras"; }
  std::string cubin;
};

struct Made {
  Artifact artifact;
  nlohmann::json report;
};

Made made_of(std::string_view text, const codegen::TileAssembler* assembler,
             CompileOptions options = {.untouched = true}, const std::string& arch = "sm_90") {
  Made made;
  made.artifact.target = TargetKind::Cuda;
  made.artifact.arch = arch;
  made.artifact.variants.resize(1);
  made.artifact.report = R"({"kernels": []})";
  options.assembler = assembler;
  const language::Kernel kernel = kernel_of(text).kernel;
  const Target target{TargetKind::Cuda, arch};
  LoweringObserver silent;
  const ir::Kernel loops =
      lower(kernel, choose_schedule(kernel, {}, target, {}), target, {}, Layout::Compact, silent);
  add_tile_code(kernel, loops, target, options, made.artifact);
  made.report = nlohmann::json::parse(made.artifact.report);
  return made;
}

void expect_cuda_c(const Made& made, std::string_view why) {
  EXPECT_EQ(made.report["generator"]["name"], "CUDA C");
  EXPECT_EQ(made.report["generator"]["why"], why);
  EXPECT_TRUE(made.artifact.variants[0].tile_code.empty());
  EXPECT_TRUE(made.artifact.variants[0].tile_launches.empty());
}

/// One tile that has all of a long sum: CUDA C has it in parts.
TEST(TileCode, IsNotForWhatTakesLessTimeInCudaC) {
  FakeAssembler assembler;
  expect_cuda_c(made_of(product("64", "16384", "64"), &assembler),
                "its CUDA C is predicted to take less time than code on tiles");
  // Such code is asked for there.
  expect_cuda_c(made_of(product("4096", "4096", "4096"), &assembler),
                "tileiras was ended by signal 11");
  const std::string open = product("n", "16384", "64");
  expect_cuda_c(made_of(open, &assembler), "tileiras was ended by signal 11");
}

TEST(TileCode, IsNotForScheduledStrictOrOtherwiseUnfitKernels) {
  FakeAssembler assembler;
  const std::string plain = product("512", "256", "512");
  expect_cuda_c(made_of(plain, &assembler, {}), "its schedule is given");
  expect_cuda_c(made_of(plain, &assembler, {.untouched = true, .strict = true}),
                "strict keeps its sums in the order of the definition");
  for (const char* arch : {"sm_80", "sm_90a", "sm_120"}) {
    expect_cuda_c(
        made_of(plain, &assembler, {.untouched = true}, arch),
        fmt::format("Tile IR is used for sm_90, sm_100, sm_103, sm_110, not for {}", arch));
  }
  expect_cuda_c(
      made_of("kernel f(A: float32[8]) -> (B: float32[8]) { B[i] = A[i] + 1.0 }", &assembler),
      "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or of 8-bit "
      "integers in int32");
}

/// Whatever is predicted of it.
TEST(TileCode, IsForSchedulesThatNameItsBlocks) {
  FakeAssembler assembler;
  const std::string long_sum = product("64", "16384", "64");
  expect_cuda_c(made_of(long_sum, &assembler, {.block = TileBlock{.rows = 64}}),
                "tileiras was ended by signal 11");
  expect_cuda_c(made_of(long_sum, &assembler, {.strict = true, .block = TileBlock{.rows = 64}}),
                "strict keeps its sums in the order of the definition");
}

/// Rows that no copy without threads reaches are copied before, if that pays.
TEST(TileCode, CopiesFactorsWhereThatPays) {
  FakeAssembler assembler;
  expect_cuda_c(made_of(product("4095", "4093", "4091"), &assembler),
                "tileiras was ended by signal 11");
  for (const auto& [steps, columns] : {std::pair{"256", "516"}, std::pair{"256", "510"}}) {
    expect_cuda_c(made_of(product("512", steps, columns), &assembler),
                  "its CUDA C is predicted to take less time than code on tiles");
  }
}

/// Each block of columns would compute the factor anew.
TEST(TileCode, ComputesFactorsOnTheirWayWhereThatPays) {
  FakeAssembler assembler;
  const auto of = [&](std::string_view factor) {
    return made_of(fmt::format("kernel k(A: float16[4096, 4096], B: float16[4096, 4096])"
                               " -> (C: float32[4096, 4096]) {{ R: float16[4096, 4096]"
                               " R[i, k] = {}"
                               " C[i, j] = sum[k < 4096](float32(R[i, k]) * float32(B[k, j])) }}",
                               factor),
                   &assembler);
  };
  expect_cuda_c(of("max(A[i, k], 0)"), "tileiras was ended by signal 11");
}

TEST(TileCode, IsNotForSumsOfIntegersThatMayWrap) {
  FakeAssembler assembler;
  const auto squares = [&](std::string_view terms) {
    return made_of(
        fmt::format("kernel k(A: int8[{0}, 4096], B: uint8[{0}, 4096]) -> (C: int32[4096, 4096]) {{"
                    " C[i, j] = sum[k < {0}](int32(A[k, i]) * int32(B[k, j])) }}",
                    terms),
        &assembler);
  };
  expect_cuda_c(squares("33025"), "tileiras was ended by signal 11");
  for (const char* terms : {"33026", "n"}) {
    expect_cuda_c(squares(terms),
                  "its sums in int32 may have more than 33025 terms, and could be too large");
  }
}

TEST(TileCode, TroubleWithTheAssemblerIsASentence) {
  FakeAssembler assembler;
  expect_cuda_c(made_of(product("512", "256", "512"), &assembler),
                "tileiras was ended by signal 11");
  assembler.cubin =
      "\x7f"
      "ELF that is none";
  expect_cuda_c(made_of(product("512", "256", "512"), &assembler),
                "the code made of tiles is none");
}

TEST(TileCode, IsNotMentionedWhereNothingAssembles) {
  const Made made = made_of(product("512", "256", "512"), nullptr);
  EXPECT_FALSE(made.report.contains("generator"));
}

class AssembledTileCode : public WithTileiras {};

TEST_F(AssembledTileCode, SaysHowByteFloatsAreAddedUp) {
  const codegen::Tileiras tileiras;
  const auto why = [&](const CompileOptions& options, const std::string& arch) {
    const Made made = made_of(
        "kernel k(A: float8_e5m2[4096, 4096], B: float8_e5m2[4096, 4096])"
        " -> (C: float32[4096, 4096]) { C[i, j] ="
        " sum[k < 4096](float32(A[i, k]) * float32(B[j, k])) }",
        &tileiras, options, arch);
    EXPECT_EQ(made.report["generator"]["name"], "Tile IR") << made.report;
    return made.report["generator"]["why"];
  };
  constexpr std::string_view kRest = "; a driver older than CUDA 13 runs the CUDA C";
  EXPECT_EQ(why({.untouched = true}, "sm_90"),
            fmt::format("an untouched product of 8-bit floats, in blocks of 128 x 128 with 128 "
                        "steps at once, added up in float32 every 128 steps (with fast=True or "
                        "--fast by tensor cores alone, in fewer bits){}",
                        kRest));
  EXPECT_EQ(why({.untouched = true, .fast = true}, "sm_90"),
            fmt::format("an untouched product of 8-bit floats, in blocks of 128 x 256 with 128 "
                        "steps at once, added up by tensor cores alone, in fewer bits than "
                        "float32 has{}",
                        kRest));
  EXPECT_EQ(why({.untouched = true, .fast = true}, "sm_100"),
            fmt::format("an untouched product of 8-bit floats, in blocks of 128 x 256 with 128 "
                        "steps at once{}",
                        kRest));
}

/// Each block of columns would compute the factor anew: what takes long is stored once.
TEST_F(AssembledTileCode, StoresAFactorWhereThatPays) {
  const codegen::Tileiras tileiras;
  const auto launches = [&](std::string_view factor) {
    const Made made =
        made_of(fmt::format("kernel k(A: float16[4096, 4096], B: float16[4096, 4096])"
                            " -> (C: float32[4096, 4096]) {{ R: float16[4096, 4096]"
                            " R[i, k] = {}"
                            " C[i, j] = sum[k < 4096](float32(R[i, k]) * float32(B[k, j])) }}",
                            factor),
                &tileiras);
    EXPECT_EQ(made.report["generator"]["name"], "Tile IR") << made.report;
    const std::string why = made.report["generator"]["why"];
    const size_t count = made.artifact.variants[0].tile_launches.size();
    EXPECT_EQ(why.find(", of a factor that is computed and stored before") != std::string::npos,
              count == 2);
    EXPECT_EQ(made.artifact.variants[0].tile_workspace_bytes.evaluate({}),
              count == 2 ? 4096 * 4096 * 2 : 0);
    return count;
  };
  EXPECT_EQ(launches("max(A[i, k], 0)"), 1u);
  EXPECT_EQ(launches("float16(float32(A[i, k])*0.5*(1.0 + erf(float32(A[i, k])*0.70710678)))"), 2u);
}

/// Calls whose rows begin at multiples of 16 bytes run one program, others copies before another
/// one, if the copies pay.
TEST_F(AssembledTileCode, IsChosenByTheSizesOfACall) {
  const codegen::Tileiras tileiras;
  const Made made = made_of(product("m", "k", "n"), &tileiras);
  EXPECT_EQ(made.report["generator"]["name"], "Tile IR") << made.report;
  const std::string why = made.report["generator"]["why"];
  EXPECT_NE(
      why.find("where floormod(k, 8) == 0 && floormod(n, 8) == 0 && 16383 < m*n; else a product"),
      std::string::npos)
      << why;
  const std::vector<Variant>& variants = made.artifact.variants;
  ASSERT_EQ(variants.size(), 3u);
  EXPECT_EQ(variants[0].tile_launches.size(), 1u);
  EXPECT_EQ(variants[1].tile_launches.size(), 3u);
  EXPECT_EQ(variants[1].tile_launches[2].entry, "kiln_tile_3");
  EXPECT_EQ(variants[2].tile_launches.size(), 0u);
  const auto taken = [&](std::vector<int64_t> sizes) {
    const auto holds = [&](const Variant& each) { return each.condition.evaluate(sizes) != 0; };
    return std::ranges::find_if(variants, holds) - variants.begin();
  };
  EXPECT_EQ(taken({4095, 4096, 4096}), 0);
  EXPECT_EQ(taken({4095, 4096, 4091}), 1);
  EXPECT_EQ(taken({4096, 4093, 4096}), 1);
  EXPECT_EQ(taken({63, 65, 67}), 2);
  EXPECT_EQ(taken({64, 64, 64}), 2);        // a block has less to do than its start takes
  EXPECT_EQ(taken({100, 4096, 65535}), 2);  // B is copied for a few rows
  const int64_t sizes[] = {4095, 4096, 4091};
  EXPECT_EQ(variants[1].tile_launches[0].grid[0].evaluate(sizes), 0);  // A lies well
  EXPECT_EQ(variants[1].tile_workspace_bytes.evaluate(sizes), 4096 * 4096 * 2);
}

TEST_F(AssembledTileCode, IsLaunchedBehindThatOfItsCopies) {
  const codegen::Tileiras tileiras;
  const Made made = made_of(product("4095", "4093", "4091"), &tileiras);
  EXPECT_EQ(made.report["generator"]["name"], "Tile IR") << made.report;
  const Variant& variant = made.artifact.variants[0];
  ASSERT_EQ(variant.tile_launches.size(), 3u);
  EXPECT_EQ(variant.tile_launches[2].entry, "kiln_tile_2");
  EXPECT_EQ(variant.tile_launches[2].grid[0].evaluate({}), 32 * 16);
  const int64_t rows_of_both = 4095 + 4093;
  EXPECT_EQ(variant.tile_workspace_bytes.evaluate({}), rows_of_both * 4096 * 2);
  EXPECT_EQ(made.report["launches"], 3);
}

TEST_F(AssembledTileCode, IsLaunchedOnceForEachBlock) {
  const codegen::Tileiras tileiras;
  const Made made = made_of(product("n", "256", "512"), &tileiras);
  EXPECT_EQ(made.report["generator"]["name"], "Tile IR") << made.report;
  EXPECT_EQ(
      made.report["generator"]["why"],
      "an untouched product of 16-bit floats, in blocks of 128 x 128 with 64 steps at once; a "
      "driver older than CUDA 13 runs the CUDA C");
  EXPECT_EQ(made.report["kernels"][0]["name"], "kiln_tile_0");
  EXPECT_EQ(made.report["kernels"][0]["spill_bytes"], 0);
  ASSERT_EQ(made.artifact.variants[0].tile_launches.size(), 1u);
  const Launch& launch = made.artifact.variants[0].tile_launches[0];
  EXPECT_EQ(launch.entry, "kiln_tile_0");
  const int64_t sizes[] = {1000};
  EXPECT_EQ(launch.grid[0].evaluate(sizes), 8 * 4);
  for (const SizeExpr& extent : launch.block)
    EXPECT_EQ(extent, SizeExpr::constant(1));
}

/// An attention of eight heads.
std::string attention(std::string_view type, std::string_view places, std::string_view depth) {
  return fmt::format(
      R"(kernel attention(Q: {0}[8, {1}, {2}], K: {0}[8, {1}, {2}], V: {0}[8, {1}, {2}]) -> (O: {0}[8, {1}, {2}]) {{
  S: float32[8, {1}, {1}]
  S[h, i, j] = select(j <= i, sum[k < {2}](float32(Q[h, i, k]) * float32(K[h, j, k])) * 0.125, -inf)
  M: float32[8, {1}]
  M[h, i] = max[j < {1}](S[h, i, j])
  E: float32[8, {1}, {1}]
  E[h, i, j] = exp(S[h, i, j] - M[h, i])
  L: float32[8, {1}]
  L[h, i] = sum[j < {1}](E[h, i, j])
  O[h, i, d] = {0}(sum[j < {1}](float32({0}(E[h, i, j] / L[h, i])) * float32(V[h, j, d])))
}})",
      type, places, depth);
}

TEST_F(AssembledTileCode, OfAnAttentionIsForEveryProcessorWithTensorCores) {
  const codegen::Tileiras tileiras;
  for (const auto& [arch, queries, keys] :
       {std::tuple{"sm_80", 64, 64}, std::tuple{"sm_90", 128, 128}, std::tuple{"sm_100", 128, 128},
        std::tuple{"sm_120", 64, 64}}) {
    SCOPED_TRACE(arch);
    const Made made =
        made_of(attention("bfloat16", "4096", "128"), &tileiras, {.untouched = true}, arch);
    EXPECT_EQ(made.report["generator"]["why"],
              fmt::format("an untouched attention, whose scores are not stored: {} queries a "
                          "block, {} keys at once; a driver older than CUDA 13 runs the CUDA C",
                          queries, keys));
    EXPECT_EQ(made.report["kernels"][0]["spill_bytes"], 0);
    EXPECT_EQ(made.artifact.variants[0].tile_launches.at(0).grid[0].evaluate({}),
              8 * 4096 / queries);
  }
}

/// Whose products are done by lanes, where that is predicted to take less time than its CUDA C.
TEST_F(AssembledTileCode, OfAnAttentionInFloat32StoresNoScoresEither) {
  const codegen::Tileiras tileiras;
  for (const char* width : {"64", "128"}) {
    for (const char* arch : {"sm_80", "sm_120"}) {
      SCOPED_TRACE(fmt::format("{} {}", arch, width));
      const Made made =
          made_of(attention("float32", "4096", width), &tileiras, {.untouched = true}, arch);
      ASSERT_EQ(made.report["generator"]["name"], "Tile IR") << made.report["generator"];
      EXPECT_LE(made.report["kernels"][0]["spill_bytes"], 32);
      EXPECT_EQ(made.report["kernels"][0]["main_loop"]["kind"], "FFMA");
    }
  }
}

/// The first shape for an L4 spills registers, the second does not.
TEST_F(AssembledTileCode, OfAnAttentionHasAShapeThatSpillsNothing) {
  const codegen::Tileiras tileiras;
  const Made made =
      made_of(attention("bfloat16", "4096", "128"), &tileiras, {.untouched = true}, "sm_89");
  EXPECT_NE(made.report["generator"]["why"].get<std::string>().find("32 queries a block"),
            std::string::npos)
      << made.report["generator"];
  EXPECT_EQ(made.report["kernels"][0]["spill_bytes"], 0);
}

TEST(TileCode, OfAnAttentionSaysWhyItIsNone) {
  FakeAssembler assembler;
  expect_cuda_c(made_of(attention("float32", "512", "288"), &assembler),
                "a query or a value has 512 numbers, and in float32 a block computes with 128");
  expect_cuda_c(
      made_of(attention("float16", "512", "64"), &assembler, {.untouched = true}, "sm_75"),
      "Tile IR is used for sm_80, sm_86, sm_89, sm_90, sm_100, sm_103, sm_110, sm_120, "
      "sm_121, not for sm_75");
}

/// Threads would move its rows element by element; so there is no text of it, either.
TEST(TileCode, OfAnAttentionHasRowsThatAreCopiedWithoutThreads) {
  const std::string text = attention("float16", "512", "63");
  const std::string why = "the rows of a factor are no multiples of 16 bytes";
  FakeAssembler assembler;
  expect_cuda_c(made_of(text, &assembler), why);
  expect_error([&] { tile_text(kernel_of(text).kernel); }, ErrorKind::Unsupported,
               "attention has no form on tiles: " + why);
}

/// And not where the order of a sum is to be kept, of other types, or for other architectures.
TEST(TileCode, AddsUpByteFloatsAsTensorCoresDoWhereItIsFast) {
  const auto text_of = [](std::string_view type, const CompileOptions& options) {
    return tile_text(kernel_of(fmt::format("kernel k(A: {0}[512, 512], B: {0}[512, 512])"
                                           " -> (C: float32[512, 512]) {{ C[i, j] ="
                                           " sum[k < 512](float32(A[i, k]) * float32(B[j, k])) }}",
                                           type))
                         .kernel,
                     options);
  };
  const auto is_fast = [&](std::string_view type, const CompileOptions& options) {
    return text_of(type, options).find("mma_fast") != std::string::npos;
  };
  EXPECT_TRUE(is_fast("float8_e4m3fn", {.fast = true}));
  EXPECT_TRUE(is_fast("float8_e5m2", {.fast = true}));
  EXPECT_FALSE(is_fast("float8_e4m3fn", {}));
  EXPECT_FALSE(is_fast("float8_e4m3fn", {.strict = true, .fast = true}));
  EXPECT_FALSE(is_fast("float16", {.fast = true}));
}

TEST(TileCode, ItsTextSaysForWhichCallsItIs) {
  const std::string text = tile_text(kernel_of(product("m", "n", "512")).kernel);
  EXPECT_TRUE(
      text.starts_with("// where floormod(n, 8) == 0\ntile product[m, n](A: float16[m, n] "
                       "rows by 8, B: float16[n, 512], "))
      << text;
  EXPECT_NE(text.find("}\n// else\ntile product_copies_A[m, n](A: float16[m, n], A_copy: "),
            std::string::npos)
      << text;
}

TEST(TileCode, ItsTextIsForAPerson) {
  EXPECT_TRUE(tile_text(kernel_of(product("512", "256", "512")).kernel)
                  .starts_with("tile product(A: float16[512, 256], B: float16[256, 512], C: "
                               "float32[512, 512] output) {\n"));
  expect_error(
      [] {
        tile_text(kernel_of("kernel f(A: float32[8]) -> (B: float32[8]) { B[i] = A[i] }").kernel);
      },
      ErrorKind::Unsupported,
      "f has no form on tiles: it is no sum of products of 16-bit or 8-bit floats or of tf32() in "
      "float32, or of 8-bit integers in int32");
}

}  // namespace
}  // namespace kiln::testing
