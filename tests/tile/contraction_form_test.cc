// Contractions whose factors are copied before, so that tensor cores and copies without threads
// reach them, compute what the definition says.
#include "compiler/tile/contraction_form.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/codegen/main_loop.h"
#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/random_contraction.h"
#include "tests/support/with_tileiras.h"
#include "tests/tile/definitions.h"

namespace kiln::testing {
namespace {

/// A convolution whose images have their channels in any place, as the result has; filters in one
/// of three orders, of one place some of them; padding or none, and something made of the sums.
std::string drawn_convolution(Random& random, std::vector<int64_t>& sizes) {
  constexpr std::string_view kTypes[] = {"float16", "bfloat16", "int8", "float8_e5m2"};
  const std::string_view type = kTypes[random.between(0, 3)];
  const std::string_view wide = type == "int8" ? "int32" : "float32";
  const int images = random.between(1, 4);
  const bool is_open = random.chance(0.3);
  if (is_open) sizes.push_back(images);
  const std::string count = is_open ? "n" : fmt::to_string(images);
  const int window = random.between(1, 3);
  const int height = window + random.between(0, 8);
  const int width = window + random.between(0, 8);
  const int padding = window > 1 && random.chance(0.5) ? 1 : 0;
  const int stride = random.between(1, 2);
  const int channels = random.between(1, 70);
  const int filters = random.between(1, 40);
  const auto outputs = [&](int extent) { return (extent + 2 * padding - window) / stride + 1; };
  const bool are_last = random.chance(0.25);
  const auto shaped = [&](std::string_view of, std::string_view y, std::string_view x) {
    return are_last ? fmt::format("{}, {}, {}, {}", count, y, x, of)
                    : fmt::format("{}, {}, {}, {}", count, of, y, x);
  };
  const auto indexed = [&](std::string_view of, std::string_view y, std::string_view x) {
    return are_last ? fmt::format("b, {}, {}, {}", y, x, of)
                    : fmt::format("b, {}, {}, {}", of, y, x);
  };
  const auto text = [](int number) { return fmt::to_string(number); };
  const std::string y = fmt::format("y*{} + r", stride);
  const std::string x = fmt::format("x*{} + s", stride);
  std::string factor = fmt::format("{}(X[{}])", wide, indexed("c", y, x));
  if (padding > 0) {
    factor = fmt::format(
        "if_then_else({0} >= 1 && {0} < {1} && {2} >= 1 && {2} < {3}, {4}(X[{5}]), {6})", y,
        height + 1, x, width + 1, wide, indexed("c", y + " - 1", x + " - 1"),
        type == "int8" ? "0" : "0.0");
  }
  const std::string w = text(window);
  const std::string filter_shapes[] = {fmt::format("{}, {}, {}, {}", filters, channels, w, w),
                                       fmt::format("{}, {}, {}, {}", w, w, channels, filters),
                                       fmt::format("{}, {}, {}, {}", filters, w, w, channels)};
  const std::string filter_indices[] = {"m, c, r, s", "r, s, c, m", "m, r, s, c"};
  const int order = random.between(0, 2);
  const std::string shape = shaped(text(filters), text(outputs(height)), text(outputs(width)));
  return fmt::format(
      "kernel k(X: {0}[{1}], F: {0}[{2}], D: {3}[{4}]) -> (Y: {3}[{4}]) {{\n"
      "  S: {3}[{4}]\n"
      "  S[{5}] = sum[c < {6}, r < {7}, s < {7}]({8} * {3}(F[{9}]))\n"
      "  Y[{5}] = S[{5}] + D[{5}]\n}}\n",
      type, shaped(text(channels), text(height), text(width)), filter_shapes[order], wide, shape,
      indexed("m", "y", "x"), channels, window, factor, filter_indices[order]);
}

/// Exact sums, in whatever order.
std::vector<HostTensor> small_integers(const language::Kernel& kernel,
                                       const std::vector<int64_t>& sizes, Random& random) {
  std::vector<HostTensor> inputs = random_inputs(kernel, sizes, random);
  for (HostTensor& tensor : inputs) {
    for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
      const auto number = static_cast<double>(random.between(-3, 3));
      language::write_element(
          tensor, i,
          language::convert(tensor.type, language::Scalar::of_float(DType::Float64, number)));
    }
  }
  return inputs;
}

/// That each way to do a kernel for such a call, of which there is at least one, gives the bits of
/// the definition. Returns how many copies they have.
size_t expect_forms(const language::Kernel& kernel, std::string_view arch,
                    const std::vector<int64_t>& sizes, const std::vector<HostTensor>& inputs) {
  const std::vector<HostTensor> expected =
      language::evaluate(kernel.definition, kernel.names, sizes, inputs);
  size_t done = 0;
  size_t copies = 0;
  for (const tile::ContractionForm& form : tile::contraction_forms(kernel, arch)) {
    tile::Sequence sequence;
    try {
      sequence = form.sequence(form.shapes()[0]);
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "TILE_FORM");
      continue;
    }
    if (condition_of(sequence).evaluate(sizes) == 0) continue;
    SCOPED_TRACE(tile::print(sequence));
    for (const tile::Sequence::Step& each : sequence.steps)
      expect_disjoint_blocks(each.program);
    const std::vector<HostTensor> actual = tile::interpret(sequence, sizes, inputs);
    EXPECT_EQ(actual.size(), 1u);
    EXPECT_TRUE(actual[0].bytes == expected[0].bytes);
    ++done;
    copies += form.copies().size();
  }
  EXPECT_GT(done, 0u);
  return copies;
}

TEST(ContractionForm, OfAnyConvolutionIsTheDefinition) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(80));
  size_t copies = 0;
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    Random random(seed);
    std::vector<int64_t> sizes;
    const std::string text = drawn_convolution(random, sizes);
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, text));
    const language::Kernel kernel = kernel_of(text).kernel;
    copies += expect_forms(kernel, "sm_90", sizes, small_integers(kernel, sizes, random));
  }
  EXPECT_GT(copies, end - first);
}

TEST(ContractionForm, OfAnyProductIsTheDefinition) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(60));
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    Random random(seed);
    const DrawnContraction drawn = drawn_contraction(random);
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, drawn.text));
    const language::Kernel kernel = kernel_of(drawn.text).kernel;
    expect_forms(kernel, "sm_90", drawn.sizes, small_integers(kernel, drawn.sizes, random));
  }
}

/// A product whose sizes a call brings, any of which may be 1, odd or even enough for copies
/// without threads; its factors are transposed or not.
TEST(ContractionForm, OfRowsThatTheCallSaysTheLengthOfIsTheDefinition) {
  constexpr std::string_view kTypes[] = {"float16", "float8_e4m3fn", "int8", "float32"};
  constexpr std::string_view kText =
      "kernel k(A: {0}[{1}], B: {0}[{2}], D: {3}[m, n]) -> (C: {3}[m, n]) {{\n"
      "  S: {3}[m, n]\n"
      "  S[i, j] = sum[r < k]({4}(A[{5}]) * {4}(B[{6}]))\n"
      "  C[i, j] = S[i, j] + D[i, j]\n}}\n";
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(60));
  size_t copies = 0;
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    Random random(seed);
    const std::string_view type = kTypes[random.between(0, 3)];
    const std::string_view wide = type == "int8" ? "int32" : "float32";
    std::vector<int64_t> sizes;
    for (int i = 0; i < 3; ++i)
      sizes.push_back(random.chance(0.5) ? 16 * random.between(1, 5) : random.between(1, 80));
    const bool turns_a = random.chance(0.5);
    const bool turns_b = random.chance(0.5);
    const std::string text = fmt::format(
        fmt::runtime(kText), type, turns_a ? "k, m" : "m, k", turns_b ? "n, k" : "k, n", wide,
        type == "float32" ? "tf32" : wide, turns_a ? "r, i" : "i, r", turns_b ? "j, r" : "r, j");
    SCOPED_TRACE(
        fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}\n{}", seed, text, fmt::join(sizes, " ")));
    const language::Kernel kernel = kernel_of(text).kernel;
    for (const std::string_view arch : {"sm_90", "sm_100"})
      copies += expect_forms(kernel, arch, sizes, small_integers(kernel, sizes, random));
  }
  EXPECT_GT(copies, end - first);
}

/// The text of the last of its forms.
std::string text_of(std::string_view kernel_text, const tile::BlockShape& shape,
                    std::string_view arch = "sm_90") {
  const language::Kernel kernel = kernel_of(kernel_text).kernel;
  return tile::print(tile::contraction_forms(kernel, arch).back().sequence(shape));
}

/// What is made of a factor before it is multiplied, in 16 bits.
constexpr std::string_view kComputed[] = {
    // A relu and a scale of the steps.
    "kernel k(A: bfloat16[70, 64], B: bfloat16[64, 40], s: bfloat16[64]) -> (C: float32[70, 40]) {"
    " R: bfloat16[70, 64] R[i, k] = max(A[i, k], 0)*s[k]"
    " C[i, j] = sum[k < 64](float32(R[i, k]) * float32(B[k, j])) }",
    // Weights of 8 bits, with scales of their columns, in either order.
    "kernel k(A: float16[n, 96], B: int8[96, 48], s: float32[48]) -> (C: float16[n, 48]) {"
    " S: float32[n, 48]"
    " S[i, j] = sum[k < 96](float32(A[i, k]) * float32(float16(float32(B[k, j])*s[j])))"
    " C[i, j] = float16(S[i, j]) }",
    "kernel k(A: float16[32, 64], B: int8[48, 64]) -> (C: float32[32, 48]) {"
    " C[i, j] = sum[k < 64](float32(A[i, k]) * float32(float16(B[j, k]))) }",
    // Both, in a batch that one of them does without.
    "kernel k(A: float16[3, 64, 20], B: float16[64, 24], b: float16[3, 64]) -> (C: float32[3, 20, "
    "24]) {"
    " C[g, i, j] = sum[k < 64](float32(A[g, k, i] + b[g, k]) * float32(B[k, j]*B[k, j])) }",
    // By places.
    "kernel k(A: bfloat16[64, 64], B: bfloat16[64, 32]) -> (C: float32[64, 32]) {"
    " C[i, j] = sum[k < 64](float32(select(k <= i, A[i, k], 0)) * float32(B[k, j])) }"};

TEST(ContractionForm, FactorsAreComputedOnTheirWay) {
  for (const std::string_view text : kComputed) {
    SCOPED_TRACE(text);
    const language::Kernel kernel = kernel_of(text).kernel;
    const bool is_open = !kernel.definition.variables.empty();
    const std::vector<int64_t> sizes = is_open ? std::vector<int64_t>{37} : std::vector<int64_t>{};
    Random random(11);
    EXPECT_EQ(expect_forms(kernel, "sm_90", sizes, small_integers(kernel, sizes, random)), 0u);
  }
}

TEST(ContractionForm, AComputedFactorMayBeStoredFirst) {
  EXPECT_EQ(
      text_of("kernel k(A: float16[64, 61], B: float16[61, 40], s: float16[61])"
              " -> (C: float32[64, 40]) { R: float16[64, 61] R[i, k] = A[i, k]*s[k]"
              " C[i, j] = sum[k < 61](float32(R[i, k]) * float32(B[k, j])) }",
              {64, 32, 32, 0}),
      R"(tile k_computes_R(A: float16[64, 61], B: float16[61, 40], s: float16[61], R: float16[64, 61] rows by 8 output) {
  blocks i: 64 by 64, k: 61 by 64
  view v0 = A[64, 64]
  view v1 = s[64]
  view v2 = R[64, 64]
  t0 = load v0[i, k]
  t1 = load v1[k]
  t2 = reshape [1, 64] t1
  t3 = broadcast [64, 64] t2
  t4 = multiply t0, t3
  store v2[i, k] = t4
}
tile k(A: float16[64, 61], B: float16[61, 40], s: float16[61], C: float32[64, 40] output, R: float16[64, 61] rows by 8) {
  blocks i: 64 by 64, j: 40 by 32
  view v0 = R[64, 32]
  view v1 = B[32, 32]
  view v2 = C[64, 32]
  t0 = constant float32[64, 32] 0
  t1 = for k: 61 by 32 with t2 = t0 {
    t3 = load v0[i, k]
    t4 = load v1[k, j]
    t5 = mma t3, t4, t2
    yield t5
  }
  store v2[i, j] = t1
}
)");
}

/// One, two, or none: what is no stage of the definition is not stored.
TEST(ContractionForm, StagesThatAreFactorsAreStored) {
  constexpr std::string_view kStages =
      "kernel k(A: float16[33, 64], B: float16[64, 48]) -> (C: float32[33, 48]) {{"
      " R: float16[33, 64] R[i, k] = max(A[i, k], 0)"
      " W: float16[64, 48] W[k, j] = B[k, j]*B[k, j]"
      " C[i, j] = sum[k < 64](float32({}) * float32({})) }}";
  const auto stored = [&](std::string_view a, std::string_view b) {
    const language::Kernel kernel = kernel_of(fmt::format(fmt::runtime(kStages), a, b)).kernel;
    Random random(5);
    expect_forms(kernel, "sm_90", {}, small_integers(kernel, {}, random));
    return tile::contraction_forms(kernel, "sm_90").back().stored().size();
  };
  EXPECT_EQ(stored("R[i, k]", "W[k, j]"), 2u);
  EXPECT_EQ(stored("R[i, k]", "B[k, j]"), 1u);
  EXPECT_EQ(stored("A[i, k] + R[i, k]", "B[k, j]"), 0u);
}

TEST(ContractionForm, WhatIsNoShortFloatIsNotComputedOnItsWay) {
  for (const std::string_view factor : {"A[i, k]*2.0", "float32(float64(A[i, k]))"}) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(A: float32[32, 32], B: float16[32, 32])"
                              " -> (C: float32[32, 32]) {{"
                              " C[i, j] = sum[k < 32]({} * float32(B[k, j])) }}",
                              factor))
            .kernel;
    expect_no_form(kernel,
                   "it is no sum of products of 16-bit or 8-bit floats or of tf32() in float32, or "
                   "of 8-bit integers in int32");
  }
}

TEST(ContractionForm, ChannelsOfAWindowComeLast) {
  EXPECT_EQ(
      text_of("kernel k(X: float16[n, 64, 10, 12], F: float16[32, 64, 3, 3])"
              " -> (Y: float32[n, 32, 8, 10]) {"
              " Y[b, m, y, x] = sum[c < 64, r < 3, s < 3]("
              "float32(X[b, c, y + r, x + s]) * float32(F[m, c, r, s])) }",
              {64, 32, 32, 0}),
      R"(tile k_copies_X[n](X: float16[n, 64, 120], X_copy: float16[n, 120, 64] rows by 8 output) {
  blocks d0: n by 1, d1: 120 by 64, d2: 64 by 64
  view v0 = X[1, 64, 64]
  view v1 = X_copy[1, 64, 64] order [0, 2, 1]
  t0 = load v0[d0, d2, d1]
  store v1[d0, d2, d1] = t0
}
tile k_copies_F[n](F: float16[32, 64, 9], F_copy: float16[32, 9, 64] rows by 8 output) {
  blocks d0: 32 by 4, d1: 9 by 16, d2: 64 by 64
  view v0 = F[4, 64, 16]
  view v1 = F_copy[4, 64, 16] order [0, 2, 1]
  t0 = load v0[d0, d2, d1]
  store v1[d0, d2, d1] = t0
}
tile k[n](X_copy: float16[n, 10, 12, 64] rows by 8, F_copy: float16[32, 3, 3, 64] rows by 8, Y: float32[n, 32, 8, 10] output) {
  blocks b: n by 1, m: 32 by 32, y: 8 by 4, x: 10 by 16
  view v0 = F_copy[1, 1, 32, 32] order [1, 2, 3, 0]
  view v1 = Y[1, 4, 16, 32] order [0, 2, 3, 1]
  t0 = constant float32[64, 32] 0
  t1 = for r: 3 by 1, s: 3 by 1, c: 64 by 32 with t2 = t0 {
    t3 = window X_copy[b, y + r, x + s, c] over b, y, x by c
    t4 = load v0[r, s, c, m]
    t5 = reshape [32, 32] t4
    t6 = mma t3, t5, t2
    yield t6
  }
  t7 = reshape [1, 4, 16, 32] t1
  store v1[b, y, x, m] = t7
}
)");
}

TEST(ContractionForm, RowsOfAnyLengthBeginAtMultiplesOf16Bytes) {
  EXPECT_EQ(text_of("kernel k(A: float16[64, 61], B: float16[61, 40]) -> (C: float32[64, 40]) {"
                    " C[i, j] = sum[k < 61](float32(A[i, k]) * float32(B[k, j])) }",
                    {64, 32, 32, 0}),
            R"(tile k_copies_A(A: float16[64, 61], A_copy: float16[64, 61] rows by 8 output) {
  blocks d0: 64 by 64, d1: 61 by 64
  view v0 = A[64, 64]
  view v1 = A_copy[64, 64]
  t0 = load v0[d0, d1]
  store v1[d0, d1] = t0
}
tile k(A_copy: float16[64, 61] rows by 8, B: float16[61, 40], C: float32[64, 40] output) {
  blocks i: 64 by 64, j: 40 by 32
  view v0 = A_copy[64, 32]
  view v1 = B[32, 32]
  view v2 = C[64, 32]
  t0 = constant float32[64, 32] 0
  t1 = for k: 61 by 32 with t2 = t0 {
    t3 = load v0[i, k]
    t4 = load v1[k, j]
    t5 = mma t3, t4, t2
    yield t5
  }
  store v2[i, j] = t1
}
)");
}

/// Where the call says how long rows are, they are copied unless they begin there anyway.
TEST(ContractionForm, RowsOfOpenLengthBeginAtMultiplesOf16Bytes) {
  constexpr std::string_view kOpen =
      "kernel k(A: float16[64, m], B: float16[m, n]) -> (C: float32[64, n]) {"
      " C[i, j] = sum[r < m](float32(A[i, r]) * float32(B[r, j])) }";
  EXPECT_EQ(text_of(kOpen, {64, 32, 32, 0}),
            R"(tile k_copies_A[m, n](A: float16[64, m], A_copy: float16[64, m] rows by 8 output) {
  blocks d0: 64 by 16, d1: m by 256
  view v0 = A[16, 256]
  view v1 = A_copy[16, 256]
  t0 = load v0[d0, d1]
  store v1[d0, d1] = t0
}
tile k_copies_B[m, n](B: float16[m, n], B_copy: float16[m, n] rows by 8 output) {
  blocks d0: m by 16, d1: n by 256
  view v0 = B[16, 256]
  view v1 = B_copy[16, 256]
  t0 = load v0[d0, d1]
  store v1[d0, d1] = t0
}
tile k[m, n](A_copy: float16[64, m] rows by 8, B_copy: float16[m, n] rows by 8, C: float32[64, n] output) {
  blocks i: 64 by 64, j: n by 32
  view v0 = A_copy[64, 32]
  view v1 = B_copy[32, 32]
  view v2 = C[64, 32]
  t0 = constant float32[64, 32] 0
  t1 = for r: m by 32 with t2 = t0 {
    t3 = load v0[i, r]
    t4 = load v1[r, j]
    t5 = mma t3, t4, t2
    yield t5
  }
  store v2[i, j] = t1
}
)");
  const std::vector<tile::ContractionForm> forms =
      tile::contraction_forms(kernel_of(kOpen).kernel, "sm_90");
  ASSERT_EQ(forms.size(), 3u);
  const tile::Sequence even = forms[1].sequence({64, 32, 32, 0});
  EXPECT_TRUE(forms[1].has_even_rows());
  const std::vector<std::string> names = {"m", "n"};
  EXPECT_EQ(has_even_rows(even).describe(names), "floormod(m, 8) == 0 && floormod(n, 8) == 0");
  EXPECT_EQ(tile::unaligned_rows(even.last()), "");
  const tile::Sequence copied = forms[2].sequence({64, 32, 32, 0});
  const int64_t sizes[] = {24, 33};  // A is read as it is
  EXPECT_EQ(block_count(copied.steps[0]).evaluate(sizes), 0);
  EXPECT_EQ(block_count(copied.steps[1]).evaluate(sizes), 2);
  EXPECT_EQ(workspace_bytes(copied).evaluate(sizes), 24 * 40 * 2);
}

/// A matrix that has dimensions of 1, too: its rows are not those that the program reads.
TEST(ContractionForm, OpenRowsMayStandBesideDimensionsOfOne) {
  for (const std::string_view shapes : {"m, n, 1", "1, n"}) {
    const bool is_vector = shapes == "1, n";
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(A: float16[m, 64], B: float16[64, n], D: float32[{0}])"
                              " -> (C: float32[m, n]) {{ S: float32[m, n]"
                              " S[i, j] = sum[r < 64](float32(A[i, r]) * float32(B[r, j]))"
                              " C[i, j] = S[i, j] + D[{1}] }}",
                              shapes, is_vector ? "0, j" : "i, j, 0"))
            .kernel;
    for (const int64_t n : {40, 41}) {
      Random random(3);
      const std::vector<int64_t> sizes = {17, n};
      expect_forms(kernel, "sm_90", sizes, small_integers(kernel, sizes, random));
    }
  }
}

size_t copies_of(std::string_view type, std::string_view wide, std::string_view b,
                 std::string_view arch) {
  const language::Kernel kernel =
      kernel_of(fmt::format("kernel k(A: {0}[64, 64], B: {0}[64, 64]) -> (C: {1}[64, 64]) {{"
                            " C[i, j] = sum[k < 64]({1}(A[i, k]) * {1}(B[{2}])) }}",
                            type, wide, b))
          .kernel;
  return tile::contraction_forms(kernel, arch).back().copies().size();
}

TEST(ContractionForm, BytesAreTurnedWhereTensorCoresReadThemAlongTheSum) {
  EXPECT_EQ(copies_of("int8", "int32", "k, j", "sm_90"), 1u);
  EXPECT_EQ(copies_of("int8", "int32", "j, k", "sm_90"), 0u);
  EXPECT_EQ(copies_of("int8", "int32", "k, j", "sm_100"), 0u);
  EXPECT_EQ(copies_of("float16", "float32", "k, j", "sm_90"), 0u);
}

TEST(ContractionForm, AxesThatGoOnIntoEachOtherAreOne) {
  EXPECT_EQ(
      text_of("kernel k(X: float16[2, 64, 8, 16], F: float16[32, 64, 1, 1], D: float32[32])"
              " -> (Y: float32[2, 32, 8, 16]) {"
              " S: float32[2, 32, 8, 16]"
              " S[b, m, y, x] = sum[c < 64, r < 1, s < 1]("
              "float32(X[b, c, y + r, x + s]) * float32(F[m, c, r, s]))"
              " Y[b, m, y, x] = S[b, m, y, x] + D[m] }",
              {32, 64, 32, 0}),
      R"(tile k(X: float16[2, 64, 128], F: float16[32, 64], D: float32[32], Y: float32[2, 32, 128] output) {
  blocks b: 2 by 1, m: 32 by 32, y: 128 by 64
  view v0 = F[32, 32]
  view v1 = X[1, 32, 64]
  view v2 = D[32]
  view v3 = Y[1, 32, 64]
  t0 = constant float32[32, 64] 0
  t1 = for c: 64 by 32 with t2 = t0 {
    t3 = load v0[m, c]
    t4 = load v1[b, c, y]
    t5 = reshape [32, 64] t4
    t6 = mma t3, t5, t2
    yield t6
  }
  t7 = load v2[m]
  t8 = reshape [32, 1] t7
  t9 = broadcast [32, 64] t8
  t10 = add t1, t9
  t11 = reshape [1, 32, 64] t10
  store v3[b, m, y] = t11
}
)");
}

std::string blocks_of(std::string_view kernel_text) {
  const std::string text = text_of(kernel_text, {64, 64, 16, 0});
  const size_t begin = text.find("blocks ");
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(ContractionForm, AxesAreJoinedWhereAllTensorsHaveThemSo) {
  constexpr std::string_view kProduct =
      "kernel k(A: float16[{0}, 8, 64], B: float16[64, 64]{1}) -> (C: float32[{0}, 8, 64]) {{"
      " S: float32[{0}, 8, 64]"
      " S[b, i, j] = sum[k < 64](float32(A[b, i, k]) * float32(B[k, j]))"
      " C[b, i, j] = {2} }}";
  EXPECT_EQ(blocks_of(fmt::format(fmt::runtime(kProduct), 4, "", "S[b, i, j]")),
            "blocks b: 32 by 64, j: 64 by 64");
  // What the call brings is not joined, nor what is computed with, nor what another tensor has
  // alone.
  EXPECT_EQ(blocks_of(fmt::format(fmt::runtime(kProduct), "n", "", "S[b, i, j]")),
            "blocks b: n by 8, i: 8 by 8, j: 64 by 64");
  EXPECT_EQ(blocks_of(fmt::format(fmt::runtime(kProduct), 4, "", "select(i > 3, S[b, i, j], 0.0)")),
            "blocks b: 4 by 4, i: 8 by 16, j: 64 by 64");
  EXPECT_EQ(
      blocks_of(fmt::format(fmt::runtime(kProduct), 4, ", D: float32[8]", "S[b, i, j] + D[i]")),
      "blocks b: 4 by 4, i: 8 by 16, j: 64 by 64");
}

class AssembledForm : public WithTileiras {};

TEST_F(AssembledForm, OfComputedFactors) {
  for (const std::string_view text : kComputed) {
    SCOPED_TRACE(text);
    for (const std::string_view arch : {"sm_90", "sm_100"}) {
      for (const tile::ContractionForm& form :
           tile::contraction_forms(kernel_of(text).kernel, arch)) {
        const tile::BlockShape shape = form.shapes()[0];
        const tile::Sequence sequence = form.sequence(shape);
        const std::string cubin =
            assembled(tile::bytecode(sequence, {.arch = arch, .warps = shape.warps}), arch);
        EXPECT_EQ(codegen::kernels_of_cubin(cubin).size(), 1 + form.stored().size());
      }
    }
  }
}

/// The loads are those that need no threads, of each of its forms that is used.
TEST_F(AssembledForm, OfOpenRowsIsCopiedWithoutThreads) {
  constexpr std::string_view kOpen =
      "kernel k(A: float16[m, k], B: float16[k, n]) -> (C: float16[m, n]) {"
      " S: float32[m, n] S[i, j] = sum[r < k](float32(A[i, r]) * float32(B[r, j]))"
      " C[i, j] = float16(S[i, j]) }";
  for (const std::string_view arch : {"sm_90", "sm_100"}) {
    for (const tile::ContractionForm& form :
         tile::contraction_forms(kernel_of(kOpen).kernel, arch)) {
      const tile::BlockShape shape = form.shapes()[0];
      const tile::Sequence sequence = form.sequence(shape);
      if (!tile::unaligned_rows(sequence.last()).empty()) continue;
      const std::string cubin =
          assembled(tile::bytecode(sequence, {.arch = arch, .warps = shape.warps}), arch);
      const std::vector<codegen::CubinKernel> kernels = codegen::kernels_of_cubin(cubin);
      ASSERT_EQ(kernels.size(), sequence.steps.size());
      const auto product = std::ranges::find(kernels, tile::entry_name(sequence.steps.size() - 1),
                                             &codegen::CubinKernel::name);
      const codegen::MainLoop loop = codegen::main_loop_of(product->code, arch);
      EXPECT_LE(loop.instructions, 18 * loop.arithmetic);
      EXPECT_TRUE(loop.accesses.empty());
    }
  }
}

TEST_F(AssembledForm, OfAnyConvolution) {
  for (uint64_t seed = 0; seed < 12 && !HasFailure(); ++seed) {
    Random random(seed);
    std::vector<int64_t> sizes;
    const std::string text = drawn_convolution(random, sizes);
    SCOPED_TRACE(text);
    const language::Kernel kernel = kernel_of(text).kernel;
    const std::string_view arch = seed % 2 == 0 ? "sm_90" : "sm_100";
    const tile::ContractionForm form = tile::contraction_forms(kernel, arch).back();
    const tile::Sequence sequence = form.sequence(form.shapes()[0]);
    const std::string cubin = assembled(tile::bytecode(sequence, {.arch = arch}), arch);
    EXPECT_EQ(codegen::kernels_of_cubin(cubin).size(), sequence.steps.size());
  }
}

}  // namespace
}  // namespace kiln::testing
