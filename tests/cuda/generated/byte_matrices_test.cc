// Matrix instructions of 8-bit factors as the lanes of a warp run them: which bytes a lane gets,
// also of factors that are turned on the way, and that sums of integers are those of the definition
// to the last bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/sketch_space.h"
#include "compiler/ir/print.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/evaluate/scalar.h"
#include "runtime/core/error.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/generated/host_gpu.h"
#include "tests/support/cuda_text.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/gpu_run.h"
#include "tests/support/kernels.h"

namespace kiln::testing::byte_matrices {
namespace {

constexpr std::string_view kLate = "matrix instructions, 256 x 128 a block";

/// A product, perhaps in batches, and what is made of its sums.
struct Product {
  std::string a = "int8";
  std::string b = "int8";
  int64_t m = 64;
  int64_t n = 64;
  int64_t l = 64;
  bool is_a_transposed = false;
  bool is_b_transposed = false;
  int64_t batches = 0;
  std::string epilogue = {};  // its type

  std::string sums() const { return a.ends_with("int8") ? "int32" : "float32"; }
  std::string text() const {
    const std::string batch = batches == 0 ? "" : fmt::format("{}, ", batches);
    const std::string at = batches == 0 ? "" : "b, ";
    const auto shape = [&](int64_t rows, int64_t columns, bool is_transposed) {
      return is_transposed ? fmt::format("{}{}, {}", batch, columns, rows)
                           : fmt::format("{}{}, {}", batch, rows, columns);
    };
    const std::string result = fmt::format("{}{}, {}", batch, m, n);
    const std::string sum =
        fmt::format("sum[k < {0}]({1}(A[{2}{3}]) * {1}(B[{2}{4}]))", l, sums(), at,
                    is_a_transposed ? "k, i" : "i, k", is_b_transposed ? "j, k" : "k, j");
    const std::string inputs = fmt::format("A: {}[{}], B: {}[{}]", a, shape(m, l, is_a_transposed),
                                           b, shape(l, n, is_b_transposed));
    if (epilogue.empty()) {
      return fmt::format("kernel k({}) -> (C: {}[{}]) {{ C[{}i, j] = {} }}", inputs, sums(), result,
                         at, sum);
    }
    return fmt::format(
        "kernel k({0}, V: {1}[{2}]) -> (C: {3}[{4}]) {{ S: {1}[{4}]\n S[{5}i, j] = {6}\n"
        " C[{5}i, j] = {3}(max(S[{5}i, j] + V[j], 0)) }}",
        inputs, sums(), n, epilogue, result, at, sum);
  }
};

/// Any integers or small whole numbers, and what the definition makes of them.
struct Call {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> expected;
};
Call call_of(const language::TextKernel& text, const std::vector<int64_t>& sizes, Random& random) {
  Call call{random_inputs(text.kernel, sizes, random), {}};
  for (HostTensor& input : call.inputs) {
    if (size_of(input.type) > 1 || is_float(input.type)) continue;
    for (auto& byte : input.bytes)
      byte = static_cast<std::remove_reference_t<decltype(byte)>>(random.below(256));
  }
  call.expected = language::evaluate(text.kernel.definition, text.kernel.names, sizes, call.inputs);
  return call;
}

std::string difference_of_bytes(const language::TextKernel& text, const ir::Kernel& loops,
                                const std::vector<int64_t>& sizes = {}) {
  HostGpu gpu;
  gpu.add(loops);
  gpu.compile();
  Random random(5);
  const Call call = call_of(text, sizes, random);
  try {
    return difference(gpu.run(0, sizes, call.inputs), call.expected, {});
  } catch (const Error& error) {
    return error.message();
  }
}

/// The loops by one of the tiles for tensor cores, with any of its numbers.
ir::Kernel loops_of_any_tile(const language::TextKernel& text, Random& random) {
  const Target target{TargetKind::Cuda, "sm_90"};
  const SketchSpace space(text.kernel, {}, target, {});
  autoschedule::Candidate candidate = space.preferred();
  for (size_t i = 0; i < space.stages().size(); ++i) {
    const std::vector<autoschedule::Sketch>& sketches = space.stages()[i].sketches;
    if (!sketches.at(0).name.starts_with("matrix instructions")) continue;
    const int which = random.below(static_cast<int>(sketches.size()));
    const autoschedule::Sketch& sketch = sketches[static_cast<size_t>(which)];
    candidate.stages[i] = {static_cast<uint32_t>(which), {}};
    for (const autoschedule::Parameter& parameter : sketch.parameters) {
      const int value = random.below(static_cast<int>(parameter.values.size()));
      candidate.stages[i].values.push_back(parameter.values[static_cast<size_t>(value)]);
    }
  }
  LoweringObserver silent;
  return lower(text.kernel, space.schedule(candidate), target, {}, Layout::Compact, silent);
}

class ByteMatrices : public ::testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(OnHost, ByteMatrices,
                         ::testing::Values(std::vector<std::string>{"int8", "uint8"},
                                           std::vector<std::string>{"float8_e4m3fn",
                                                                    "float8_e5m2"}),
                         [](const auto& info) { return info.param[0]; });

TEST_P(ByteMatrices, AreWhatTheDefinitionSaysHoweverTheyLie) {
  HostGpu gpu;
  std::vector<language::TextKernel> texts;
  for (const std::string& a : GetParam()) {
    for (const std::string& b : GetParam()) {
      for (const bool is_a_transposed : {false, true}) {
        for (const bool is_b_transposed : {false, true}) {
          texts.push_back(kernel_of(Product{.a = a,
                                            .b = b,
                                            .m = 80,
                                            .n = 96,
                                            .l = 96,
                                            .is_a_transposed = is_a_transposed,
                                            .is_b_transposed = is_b_transposed}
                                        .text()));
          const ir::Kernel loops = gpu_loops(texts.back());
          EXPECT_GT(count_in(source_of(loops), "kiln_multiply_"), 0U) << ir::print(loops);
          gpu.add(loops);
        }
      }
    }
  }
  gpu.compile();
  Random random(7);
  for (size_t i = 0; i < texts.size(); ++i) {
    const Call call = call_of(texts[i], {}, random);
    EXPECT_EQ(difference(gpu.run(i, {}, call.inputs), call.expected, {}), "") << i;
  }
}

/// Sizes that are no multiples of anything, batches, results of each type, all tiles.
TEST_P(ByteMatrices, OfAnySizesAreWhatTheDefinitionSays) {
  Random random(fuzz_seed(11));
  const std::vector<std::string>& factors = GetParam();
  const std::vector<std::string> results = {"",       "int8",    "uint8",    "int16",  "int64",
                                            "uint32", "float16", "bfloat16", "float32"};
  HostGpu gpu;
  std::vector<language::TextKernel> texts;
  const int rounds = fuzz_rounds(18);
  int with_matrices = 0;
  for (int i = 0; i < rounds; ++i) {
    const Product product{
        .a = random.pick(factors),
        .b = random.pick(factors),
        .m = random.chance(0.5) ? 16 * random.between(4, 8) : random.between(64, 90),
        .n = random.chance(0.5) ? 16 * random.between(4, 8) : random.between(64, 90),
        .l = random.chance(0.5) ? 32 * random.between(1, 5) : random.between(32, 170),
        .is_a_transposed = random.chance(0.5),
        .is_b_transposed = random.chance(0.5),
        .batches = random.chance(0.3) ? 2 : 0,
        .epilogue = results[static_cast<size_t>(i) % results.size()]};
    SCOPED_TRACE(product.text());
    texts.push_back(kernel_of(product.text()));
    const ir::Kernel loops =
        i % 2 == 0 ? gpu_loops(texts.back()) : loops_of_any_tile(texts.back(), random);
    if (count_in(source_of(loops), "kiln_multiply_") > 0) ++with_matrices;
    gpu.add(loops);
  }
  // Tiles that are larger than the whole keep their guards; none is taken unasked.
  EXPECT_GT(with_matrices, rounds / 3);
  gpu.compile();
  for (size_t i = 0; i < texts.size(); ++i) {
    const Call call = call_of(texts[i], {}, random);
    EXPECT_EQ(difference(gpu.run(i, {}, call.inputs), call.expected, {}), "")
        << language::print_text(texts[i]);
  }
}

TEST(ByteMatricesOnHost, OfSizesThatTheCallBringsAreWhatTheDefinitionSays) {
  const language::TextKernel text = kernel_of(
      R"(kernel k(A: uint8[n, l], B: int8[l, m]) -> (C: int32[n, m]) {
        C[i, j] = sum[k < l](int32(A[i, k]) * int32(B[k, j])) })");
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(difference_of_bytes(text, loops, {70, 77, 66}), "") << ir::print(loops);
}

/// A sum of four parts and of one that is shorter, copied three stages deep.
TEST(ByteMatricesOnHost, AreCopiedInTheBackground) {
  for (const bool is_turned : {false, true}) {
    const Product product{
        .m = 256, .n = 128, .l = 592, .is_a_transposed = is_turned, .is_b_transposed = !is_turned};
    const language::TextKernel text = kernel_of(product.text());
    const ir::Kernel loops = gpu_loops_by(text, kLate);
    EXPECT_EQ(difference_of_bytes(text, loops), "") << ir::print(loops);
    EXPECT_GT(count_in(source_of(loops), "kiln_copy<16, "), 0U);
    EXPECT_GT(count_in(source_of(loops), "kiln_multiply_bytes<"), 0U);
  }
}

/// The host keeps as few bits of a sum as tensor cores of sm_89 do, 14 of them (cuda_host.h): what
/// 128 steps of such numbers add up to has no more, what 256 do has.
TEST(ByteMatricesOnHost, OfFloatsAreAddedUpInFloat32AfterAFewSteps) {
  for (const bool is_turned : {false, true}) {
    const Product product{.a = "float8_e4m3fn",
                          .b = "float8_e4m3fn",
                          .m = 256,
                          .n = 128,
                          .l = 640,
                          .is_a_transposed = is_turned,
                          .is_b_transposed = !is_turned};
    const language::TextKernel text = kernel_of(product.text());
    Random random(3);
    std::vector<HostTensor> inputs = random_inputs(text.kernel, {}, random);
    for (HostTensor& input : inputs) {
      for (int64_t i = 0; i < static_cast<int64_t>(input.bytes.size()); ++i)
        language::write_element(input, i,
                                language::Scalar::of_float(input.type, 8 + random.below(4)));
    }
    const std::vector<HostTensor> expected =
        language::evaluate(text.kernel.definition, text.kernel.names, {}, inputs);
    HostGpu gpu;
    const ir::Kernel early = gpu_loops(text, {}, "sm_89");
    gpu.add(early);
    const ir::Kernel late = gpu_loops_by(text, "matrix instructions, 128 x 128 a block", "sm_89");
    gpu.add(late);
    gpu.compile();
    EXPECT_EQ(difference(gpu.run(0, {}, inputs), expected, {}), "") << source_of(early);
    EXPECT_EQ(difference(gpu.run(1, {}, inputs), expected, {}), "") << source_of(late);
    EXPECT_GT(count_in(source_of(late), "kiln_copy<16, "), 0U);
  }
}

/// Whose rows and columns are those of turned bytes, though its bytes are not.
TEST(ByteMatricesOnHost, MayHaveTheirRowsInAnyOrderThatTheirSumsHave) {
  const Product plain{.is_b_transposed = true};
  const Product turned{.is_a_transposed = true};
  const language::TextKernel text = kernel_of(plain.text());
  const Target target{TargetKind::Cuda, "sm_90"};
  LoweringObserver silent;
  const ir::Kernel loops =
      lower(text.kernel, choose_schedule(kernel_of(turned.text()).kernel, {}, target, {}), target,
            {}, Layout::Compact, silent);
  EXPECT_GT(count_in(source_of(loops), "kiln_multiply_bytes<"), 0U);
  EXPECT_EQ(difference_of_bytes(text, loops), "") << ir::print(loops);
}

TEST(ByteMatricesOnHost, MissEachOfTheirBarriers) {
  const language::TextKernel text = kernel_of(Product{.l = 384}.text());
  const ir::Kernel loops = gpu_loops(text);
  EXPECT_EQ(difference_of_bytes(text, loops), "");
  for (const char* const number : {"0", "1"}) {
    const Setting without("FAKE_NVRTC_WITHOUT_BARRIER", number);
    EXPECT_NE(difference_of_bytes(text, loops), "") << number;
  }
}

}  // namespace
}  // namespace kiln::testing::byte_matrices
