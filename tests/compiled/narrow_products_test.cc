// Products of 8 and 16 bits without a schedule: the same as the definition says, for all ways in
// which factors lie, and by the instructions that CPUs have for them.
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/compile.h"
#include "compiler/language/evaluate/evaluate.h"
#include "runtime/core/cpu_name.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

constexpr uint64_t kSeed = 41;
constexpr int kRounds = 30;

/// How the factors of a product of matrices lie.
struct Layouts {
  std::string_view a;
  std::string_view a_at;
  std::string_view b;
  std::string_view b_at;
};
constexpr Layouts kPlain = {"{0}, {1}", "i, k", "{1}, {2}", "k, j"};

std::string product(std::string_view types, const Layouts& layouts, int rows, int steps,
                    int columns) {
  const std::string a(types.substr(0, types.find(' ')));
  const std::string b(types.substr(types.find(' ') + 1));
  const std::string sum = a == "bfloat16" || a == "float16" ? "float32" : "int32";
  const auto shape = [&](std::string_view text) {
    return fmt::format(fmt::runtime(text), rows, steps, columns);
  };
  return fmt::format(
      "kernel product(A: {}[{}], B: {}[{}]) -> (C: {}[{}, {}]) {{ C[i, j] = sum[k < {}]({}(A[{}]) "
      "* "
      "{}(B[{}])) }}",
      a, shape(layouts.a), b, shape(layouts.b), sum, rows, columns, steps, sum, layouts.a_at, sum,
      layouts.b_at);
}

constexpr Layouts kLayouts[] = {kPlain,
                                {"{0}, {1}", "i, k", "{2}, {1}", "j, k"},
                                {"{1}, {0}", "k, i", "{1}, {2}", "k, j"},
                                {"{1}, {0}", "k, i", "{2}, {1}", "j, k"}};
const std::vector<std::string> kTypes = {"int8 int8",         "uint8 int8",     "int8 uint8",
                                         "uint8 uint8",       "int16 int16",    "int16 uint8",
                                         "bfloat16 bfloat16", "float16 float16"};
// Without instructions that add four products of bytes, with them, and with those for tiles.
const std::vector<std::string> kPlanned = {"x86-64-v3", "znver4", "sapphirerapids",
                                           "graniterapids"};

language::Schedule chosen(const language::Kernel& kernel, const Target& target,
                          const CompileOptions& options = {}) {
  return choose_schedule(kernel, {}, target, options);
}

/// With the schedule for a CPU.
void expect_right(const std::string& text, Random& random, const std::string& planned) {
  SCOPED_TRACE(text + ", as for " + planned);
  const language::TextKernel parsed = kernel_of(text);
  const std::vector<HostTensor> inputs = random_inputs(parsed.kernel, {}, random);
  const auto expected =
      language::evaluate(parsed.kernel.definition, parsed.kernel.names, {}, inputs);
  const auto actual =
      run_on_cpu(parsed.kernel, chosen(parsed.kernel, {TargetKind::Llvm, planned}), {}, inputs);
  EXPECT_EQ(difference(actual, expected, {}), "");
}

/// With the schedule for the host, or with one for another CPU.
void expect_right(const std::string& text, Random& random) {
  expect_right(text, random, random.chance(0.5) ? std::string(host_cpu()) : random.pick(kPlanned));
}

TEST(NarrowProducts, AreWhatTheDefinitionSays) {
  const uint64_t seed = fuzz_seed(kSeed);
  for (int round = 0; round < fuzz_rounds(kRounds) && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(fmt::format("KILN_FUZZ_SEED={}", seed + static_cast<uint64_t>(round)));
    Random random(seed + static_cast<uint64_t>(round));
    const int rows = random.chance(0.3) ? random.between(1, 4) : random.between(5, 150);
    const int columns = random.chance(0.3) ? 16 * random.between(1, 8) : random.between(1, 150);
    const int steps = random.chance(0.5) ? 8 * random.between(1, 12) : random.between(1, 99);
    expect_right(product(random.pick(kTypes), kLayouts[random.below(4)], rows, steps, columns),
                 random);
  }
}

TEST(NarrowProducts, OfBatchesAndConvolutionsAreWhatTheDefinitionSays) {
  Random random(kSeed);
  for (const std::string_view type : {"int8", "uint8", "bfloat16", "float16"}) {
    const std::string sum = type.ends_with("float16") ? "float32" : "int32";
    const auto with_types = [&](std::string_view text) {
      return fmt::format(fmt::runtime(text), type, sum);
    };
    for (const std::string_view text :
         {"kernel batch(A: {0}[3, 20, 37], B: {0}[3, 37, 50]) -> (C: {1}[3, 20, 50]) {{"
          " C[b, i, j] = sum[k < 37]({1}(A[b, i, k]) * {1}(B[b, k, j])) }}",
          "kernel shared(A: {0}[3, 20, 36], B: {0}[36, 48]) -> (C: {1}[3, 20, 48]) {{"
          " C[b, i, j] = sum[k < 36]({1}(A[b, i, k]) * {1}(B[k, j])) }}",
          "kernel nchw(X: {0}[2, 16, 5, 28], W: {0}[10, 16, 3, 3]) -> (Y: {1}[2, 10, 3, 26]) {{"
          " Y[n, o, y, x] = sum[c < 16, r < 3, s < 3]({1}(X[n, c, y + r, x + s]) * "
          "{1}(W[o, c, r, s])) }}",
          "kernel nhwc(X: {0}[2, 5, 11, 18], W: {0}[3, 3, 18, 40]) -> (Y: {1}[2, 3, 9, 40]) {{"
          " Y[n, y, x, o] = sum[r < 3, s < 3, c < 18]({1}(X[n, y + r, x + s, c]) * "
          "{1}(W[r, s, c, o])) }}",
          "kernel strided(X: {0}[2, 16, 9, 41], W: {0}[24, 16, 1, 1]) -> (Y: {1}[2, 24, 5, 21]) {{"
          " Y[n, o, y, x] = sum[c < 16, r < 1, s < 1]({1}(X[n, c, y*2 + r, x*2 + s]) * "
          "{1}(W[o, c, r, s])) }}",
          "kernel padded(X: {0}[1, 16, 5, 18], W: {0}[20, 16, 3, 3]) -> (Y: {1}[1, 20, 5, 18]) {{"
          " Y[n, o, y, x] = sum[c < 16, r < 3, s < 3]({1}(if_then_else(y + r >= 1 && y + r < 6 && "
          "x + s >= 1 && x + s < 19, X[n, c, y + r - 1, x + s - 1], {0}(0))) * {1}(W[o, c, r, s])) "
          "}}"}) {
      expect_right(with_types(text), random);
    }
  }
}

/// Of small images, whose patches are laid out in groups of steps where whole groups make a patch.
TEST(NarrowProducts, OfSmallImagesAreWhatTheDefinitionSays) {
  const uint64_t seed = fuzz_seed(kSeed);
  for (int round = 0; round < fuzz_rounds(kRounds) && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(fmt::format("KILN_FUZZ_SEED={}", seed + static_cast<uint64_t>(round)));
    Random random(seed + static_cast<uint64_t>(round));
    const std::string types = random.pick(kTypes);
    const int window = random.between(1, 3);
    const int stride = random.between(1, 2);
    const int size = random.between(4, 9);  // of the result
    const int padding = random.chance(0.4) ? window / 2 : 0;
    const int whole = (size - 1) * stride + window;
    expect_right(
        fmt::format(
            "kernel small(X: {a}[{n}, {c}, {h}, {h}], W: {b}[{f}, {c}, {k}, {k}]) -> "
            "(Y: {sum}[{n}, {f}, {size}, {size}]) {{ "
            "P: {a}[{n}, {c}, {whole}, {whole}] "
            "P[n, c, y, x] = if_then_else(y >= {p} && y < {h} + {p} && x >= {p} && x < {h} + {p}, "
            "X[n, c, y - {p}, x - {p}], {a}(0)) "
            "Y[n, f, y, x] = sum[c < {c}, r < {k}, s < {k}]({sum}(P[n, c, y*{stride} + r, "
            "x*{stride} + s]) * {sum}(W[f, c, r, s])) }}",
            fmt::arg("a", types.substr(0, types.find(' '))),
            fmt::arg("b", types.substr(types.find(' ') + 1)),
            fmt::arg("sum", types.ends_with("float16") ? "float32" : "int32"),
            fmt::arg("n", random.between(1, 2)),
            fmt::arg("c", random.chance(0.7) ? 4 * random.between(1, 10) : random.between(1, 40)),
            fmt::arg("f", random.between(2, 40)), fmt::arg("h", whole - 2 * padding),
            fmt::arg("whole", whole), fmt::arg("k", window), fmt::arg("p", padding),
            fmt::arg("stride", stride), fmt::arg("size", size)),
        random);
  }
}

TEST(NarrowProducts, KeepTheExtremesOfTheirTypes) {
  for (const auto& [types, a, b, each] : {std::tuple("int8 int8", 0x80, 0x80, 128 * 128),
                                          std::tuple("int8 int8", 0x7f, 0x80, -127 * 128),
                                          std::tuple("uint8 uint8", 0xff, 0xff, 255 * 255),
                                          std::tuple("uint8 int8", 0xff, 0x80, -255 * 128)}) {
    const language::TextKernel text = kernel_of(product(types, kPlain, 5, 64, 33));
    Random random(1);
    std::vector<HostTensor> inputs = random_inputs(text.kernel, {}, random);
    std::ranges::fill(inputs[0].bytes, static_cast<std::byte>(a));
    std::ranges::fill(inputs[1].bytes, static_cast<std::byte>(b));
    for (const std::string& planned : {std::string(host_cpu()), kPlanned[0]}) {
      const auto actual =
          run_on_cpu(text.kernel, chosen(text.kernel, {TargetKind::Llvm, planned}), {}, inputs);
      EXPECT_EQ(values_of<int32_t>(actual[0]), std::vector<int32_t>(5 * 33, 64 * each))
          << types << " as for " << planned;
    }
  }
}

// The only pair of products that is too large for an int32.
TEST(NarrowProducts, OfWordsWrapAsSumsOfIntegersDo) {
  const language::TextKernel text = kernel_of(product("int16 int16", kPlain, 5, 8, 33));
  Random random(1);
  std::vector<HostTensor> inputs = random_inputs(text.kernel, {}, random);
  for (HostTensor& input : inputs) {
    for (size_t i = 0; i < input.bytes.size(); ++i)
      input.bytes[i] = static_cast<std::byte>(i % 2 == 0 ? 0 : 0x80);
  }
  const auto expected = language::evaluate(text.kernel.definition, text.kernel.names, {}, inputs);
  const auto actual =
      run_on_cpu(text.kernel, chosen(text.kernel, {TargetKind::Llvm, host_cpu()}), {}, inputs);
  EXPECT_EQ(values_of<int32_t>(actual[0]), std::vector<int32_t>(5 * 33, 0));
  EXPECT_EQ(difference(actual, expected, {}), "");
}

/// The assembly of a kernel for a CPU, as it is chosen where it has no schedule.
std::string assembly_of(const std::string& kernel, const std::string& cpu,
                        const CompileOptions& options = {}) {
  const language::TextKernel text = kernel_of(kernel);
  const Target target{TargetKind::Llvm, cpu};
  const language::Schedule schedule =
      text.schedules.empty() ? chosen(text.kernel, target, options) : text.schedules.front().second;
  return source_of(text.kernel, schedule, target, options, "asm");
}

/// Of a product of matrices.
std::string assembly(std::string_view types, const std::string& cpu, bool strict = false) {
  CompileOptions options;
  options.strict = strict;
  return assembly_of(product(types, kPlain, 256, 256, 256), cpu, options);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(NarrowProducts, UseTheInstructionsOfTheCpu) {
  for (const char* const cpu :
       {"cascadelake", "icelake-server", "znver4", "znver5", "x86-64-v4+avx512vnni"}) {
    for (const char* const types : {"int8 int8", "uint8 int8", "uint8 uint8"})
      EXPECT_TRUE(contains(assembly(types, cpu), "vpdpbusd")) << types << " on " << cpu;
  }
  EXPECT_TRUE(contains(assembly("int8 int8", "alderlake"), "{vex}\tvpdpbusd"));
  for (const char* const cpu : {"cooperlake", "znver4", "znver5"})
    EXPECT_TRUE(contains(assembly("bfloat16 bfloat16", cpu), "vdpbf16ps")) << cpu;
}

TEST(NarrowProducts, AreOfTilesWhereTheCpuHasThem) {
  for (const auto& [types, instruction] :
       {std::pair("int8 int8", "tdpbssd"), std::pair("int8 uint8", "tdpbsud"),
        std::pair("uint8 int8", "tdpbusd"), std::pair("uint8 uint8", "tdpbuud"),
        std::pair("bfloat16 bfloat16", "tdpbf16ps")}) {
    for (const char* const cpu :
         {"sapphirerapids", "x86-64-v4+avx512vnni+avx512bf16+amx-int8+amx-bf16"}) {
      const std::string code = assembly(types, cpu);
      EXPECT_TRUE(contains(code, instruction)) << types << " on " << cpu;
      EXPECT_TRUE(contains(code, "ldtilecfg"));
      EXPECT_TRUE(contains(code, "tilerelease"));
    }
  }
  EXPECT_FALSE(contains(assembly("bfloat16 bfloat16", "sapphirerapids", true), "tdpbf16ps"));
  for (const char* const cpu : {"graniterapids", "x86-64-v4+amx-fp16"})
    EXPECT_TRUE(contains(assembly("float16 float16", cpu), "tdpfp16ps")) << cpu;
  EXPECT_FALSE(contains(assembly("float16 float16", "graniterapids", true), "tdpfp16ps"));
  EXPECT_FALSE(contains(assembly("float16 float16", "sapphirerapids"), "tdp"));
}

/// Steps that are left over, rows and columns that are, and both.
TEST(NarrowProducts, OfTilesAreRightAtTheirEnds) {
  Random random(kSeed);
  for (const auto& [rows, steps, columns] :
       {std::tuple(32, 64, 32), std::tuple(64, 404, 96), std::tuple(40, 404, 41),
        std::tuple(17, 1000, 49), std::tuple(2, 100, 33), std::tuple(150, 70, 16),
        std::tuple(100, 60, 112), std::tuple(100, 60, 104), std::tuple(77, 33, 200)}) {
    for (const std::string_view types : {"int8 int8", "uint8 int8", "bfloat16 bfloat16"}) {
      expect_right(product(types, kLayouts[random.below(4)], rows, steps, columns), random,
                   host_cpu());
    }
  }
}

int64_t count(const std::string& text, std::string_view part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// 64 rows in tiles of 32, and so many columns in tiles of 32; `order` of the loops over tiles.
std::string in_tiles(int columns, std::string_view order) {
  std::string text = product("int8 int8", kPlain, 64, 64, columns);
  text.pop_back();
  return text + fmt::format(R"(schedule cpu {{
    split(C.i, factor=32) split(C.j, factor=32) split(C.k, factor=4)
    reorder({}, C.k.outer, C.i.inner, C.j.inner, C.k.inner)
    cache_read(B, global, C, C.j.outer, C.k.outer, C.j.inner, C.k.inner)
    vectorize(C.j.inner) unroll(C.i.inner) vectorize(B.global.j.inner) unroll(B.global.k.inner)
  }} }})",
                            order);
}

// Tiles of 16 columns are among those of 32; those of 8 have no room beside them.
TEST(NarrowProducts, SetTheTilesOnceWhereThoseAtTheEndsFit) {
  const std::string rows_first = "C.i.outer, C.j.outer";
  EXPECT_EQ(count(assembly_of(in_tiles(64, rows_first), "sapphirerapids"), "ldtilecfg"), 1);
  EXPECT_EQ(count(assembly_of(in_tiles(80, rows_first), "sapphirerapids"), "ldtilecfg"), 1);
  EXPECT_EQ(count(assembly_of(in_tiles(72, rows_first), "sapphirerapids"), "ldtilecfg"), 3);
}

// The last columns, and in their loop all rows: tiles are set before it.
TEST(NarrowProducts, SetTheTilesAroundTheLoopsThatNeedOthers) {
  const auto code = [](std::string_view order) {
    return assembly_of(in_tiles(72, order), "sapphirerapids");
  };
  const auto sets_in_loop = [](const std::string& text) {
    const size_t others = text.find("ldtilecfg", text.find("ldtilecfg") + 1);
    return text.find("tilezero", others) < text.find("\n.LBB", others);
  };
  EXPECT_TRUE(sets_in_loop(code("C.i.outer, C.j.outer")));
  EXPECT_FALSE(sets_in_loop(code("C.j.outer, C.i.outer")));
}

TEST(NarrowProducts, OfCpusWithoutAreOfPairs) {
  for (const char* const cpu : {"x86-64-v3", "znver3", "skylake-avx512"}) {
    for (const char* const types : {"int8 int8", "uint8 int8", "uint8 uint8", "int16 int16"}) {
      EXPECT_TRUE(contains(assembly(types, cpu), "vpmaddwd")) << types << " on " << cpu;
      EXPECT_FALSE(contains(assembly(types, cpu), "vpmulld")) << types << " on " << cpu;
    }
  }
  EXPECT_TRUE(contains(assembly("int8 int8", "x86-64-v2"), "pmaddwd"));
}

TEST(NarrowProducts, DoWithoutWhereTheCpuHasNone) {
  EXPECT_FALSE(contains(assembly("int8 int8", "x86-64-v3"), "vpdpbusd"));
  EXPECT_FALSE(contains(assembly("bfloat16 bfloat16", "icelake-server"), "vdpbf16ps"));
  EXPECT_FALSE(contains(assembly("bfloat16 bfloat16", "znver4", true), "vdpbf16ps"));
}

}  // namespace
}  // namespace kiln::testing
