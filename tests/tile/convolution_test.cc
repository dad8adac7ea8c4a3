// Convolutions become programs on tiles that compute what the definition says.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/support/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"
#include "tests/support/with_tileiras.h"
#include "tests/tile/definitions.h"

namespace kiln::testing {
namespace {

/// One dimension of an image, and what a filter sees of it.
struct Side {
  int extent = 1;
  int window = 1;
  int stride = 1;
  int dilation = 1;
  int before = 0;  // padding
  int after = 0;

  int padded() const { return extent + before + after; }
  int outputs() const { return (padded() - (window - 1) * dilation - 1) / stride + 1; }
};

Side drawn_side(Random& random) {
  Side side;
  side.window = random.between(1, 3);
  side.stride = random.between(1, 2);
  side.dilation = random.between(1, 2);
  side.extent = (side.window - 1) * side.dilation + random.between(1, 9);
  if (random.chance(0.5)) return side;
  side.before = random.between(0, 2);
  side.after = random.between(0, 2);
  return side;
}

/// "i*2 + r"
std::string place_of(const Side& side, std::string_view output, std::string_view window) {
  return fmt::format("{}*{} + {}*{}", output, side.stride, window, side.dilation);
}

/// Where a place of the padded image is in the image itself.
std::string condition_of(const Side& side, const std::string& place) {
  return fmt::format("{0} >= {1} && {0} < {2}", place, side.before, side.before + side.extent);
}

struct Drawn {
  std::string text;
  std::vector<int64_t> sizes;
};

/// Images of any size, of one or several channels, the filters in either order; padding as a stage,
/// where the element is read, or none; and something made of the sums.
Drawn drawn_convolution(Random& random) {
  Drawn drawn;
  const Side h = drawn_side(random);
  const Side w = drawn_side(random);
  int images = random.between(1, 5);
  std::string count = fmt::to_string(images);
  if (random.chance(0.3)) {
    drawn.sizes.push_back(images);
    count = "n";
  }
  const int channels = random.chance(0.5) ? 32 * random.between(1, 3) : random.between(1, 70);
  int filters = random.between(1, 40);
  constexpr std::string_view kTypes[] = {"float16", "bfloat16", "float32"};
  const std::string_view type = kTypes[random.between(0, 2)];
  // Of a factor; where it is padded when it is read, before or behind that.
  const std::string_view wide = type == "float32" ? "tf32" : "float32";
  if (type == "float32" && channels % 32 == 0) filters = (filters + 7) / 8 * 8;
  const bool is_padded = h.padded() + w.padded() > h.extent + w.extent;
  const std::string y = place_of(h, "y", "r");
  const std::string x = place_of(w, "x", "s");
  std::string stage;
  std::string factor = fmt::format("{}(X[b, {}, {}, c])", wide, y, x);
  if (is_padded && random.chance(0.5)) {
    stage = fmt::format(
        "  P: {}[{}, {}, {}, {}]\n"
        "  P[b, i, j, c] = if_then_else({} && {}, X[b, i - {}, j - {}, c], 0)\n",
        type, count, h.padded(), w.padded(), channels, condition_of(h, "i"), condition_of(w, "j"),
        h.before, w.before);
    factor = fmt::format("{}(P[b, {}, {}, c])", wide, y, x);
  } else if (is_padded) {
    const bool is_before = type == "float32" && random.chance(0.5);
    factor = fmt::format("if_then_else({} && {}, {}(X[b, {} - {}, {} - {}, c]), 0.0)",
                         condition_of(h, y), condition_of(w, x), is_before ? "" : wide, y, h.before,
                         x, w.before);
    if (is_before) factor = fmt::format("tf32({})", factor);
  }
  const bool are_filters_last = random.chance(0.6);
  const std::string filter_shape =
      are_filters_last ? fmt::format("{}, {}, {}, {}", h.window, w.window, channels, filters)
                       : fmt::format("{}, {}, {}, {}", filters, h.window, w.window, channels);
  std::string arguments = fmt::format("X: {}[{}, {}, {}, {}], F: {}[{}]", type, count, h.extent,
                                      w.extent, channels, type, filter_shape);
  const std::string shape = fmt::format("{}, {}, {}, {}", count, h.outputs(), w.outputs(), filters);
  std::string result = "S[b, y, x, m]";
  std::string output_type = "float32";
  const int with = random.between(0, 3);
  if (with == 1) {
    arguments += fmt::format(", D: float32[{}]", filters);
    result += " + D[m]";
  } else if (with == 2) {
    arguments += fmt::format(", D: {}[{}, {}]", type, w.outputs(), filters);
    result += " + float32(D[x, m])";
  } else if (with == 3) {
    arguments += fmt::format(", D: {}[{}]", type, shape);
    result += " + float32(D[b, y, x, m])";
  }
  if (random.chance(0.5)) result = fmt::format("max({}, 0.0)", result);
  if (random.chance(0.5)) {
    output_type = type;
    result = fmt::format("{}({})", type, result);
  }
  drawn.text = fmt::format(
      "kernel k({0}) -> (Y: {1}[{2}]) {{\n{3}"
      "  S: float32[{2}]\n"
      "  S[b, y, x, m] = sum[r < {4}, s < {5}, c < {6}]({7} * {10}(F[{8}]))\n"
      "  Y[b, y, x, m] = {9}\n}}\n",
      arguments, output_type, shape, stage, h.window, w.window, channels, factor,
      are_filters_last ? "r, s, c, m" : "m, r, s, c", result, wide);
  return drawn;
}

language::Kernel drawn_kernel(uint64_t seed, std::vector<int64_t>* sizes = nullptr) {
  Random random(seed);
  Drawn drawn = drawn_convolution(random);
  if (sizes != nullptr) *sizes = std::move(drawn.sizes);
  SCOPED_TRACE(drawn.text);
  return kernel_of(drawn.text).kernel;
}

/// Sums in another order than that of the definition: exact where all terms are small integers.
std::vector<HostTensor> small_integers(const std::vector<HostTensor>& inputs, Random& random) {
  std::vector<HostTensor> result = inputs;
  for (HostTensor& tensor : result) {
    const auto count =
        static_cast<int64_t>(tensor.bytes.size() / static_cast<size_t>(size_of(tensor.type)));
    for (int64_t i = 0; i < count; ++i) {
      const language::Scalar number =
          language::Scalar::of_float(tensor.type, static_cast<double>(random.between(-3, 3)));
      language::write_element(tensor, i, number);
    }
  }
  return result;
}

TEST(TileConvolution, OfAnySizeStridePaddingAndEpilogueIsTheDefinition) {
  const uint64_t first = fuzz_seed(0);
  const uint64_t end = first + static_cast<uint64_t>(fuzz_rounds(60));
  for (uint64_t seed = first; seed < end && !HasFailure(); ++seed) {
    std::vector<int64_t> sizes;
    const language::Kernel kernel = drawn_kernel(seed, &sizes);
    const tile::Program program = tile::contraction(kernel, tile::block_shape(kernel));
    SCOPED_TRACE(fmt::format("to repeat: KILN_FUZZ_SEED={}\n{}", seed, tile::print(program)));
    Random random(seed);
    const std::vector<HostTensor> inputs = random_inputs(kernel, sizes, random);
    expect_definition(program, kernel, sizes, small_integers(inputs, random));
  }
}

class AssembledConvolution : public WithTileiras {};

TEST_F(AssembledConvolution, OfAnySizeStridePaddingAndEpilogue) {
  for (uint64_t seed = 0; seed < 16 && !HasFailure(); ++seed)
    expect_assembled(drawn_kernel(seed));
}

TEST(TileConvolution, TheStageThatPadsIsPartOfTheWindow) {
  const language::Kernel kernel =
      kernel_of(R"(kernel k(X: float16[n, 9, 9, 32], F: float16[3, 3, 32, 64], D: float32[64])
    -> (Y: float16[n, 5, 5, 64]) {
  P: float16[n, 11, 11, 32]
  S: float32[n, 5, 5, 64]
  P[b, i, j, c] = if_then_else(i >= 1 && i < 10 && j >= 1 && j < 10, X[b, i - 1, j - 1, c], 0)
  S[b, y, x, m] = sum[r < 3, s < 3, c < 32](
    float32(P[b, y*2 + r, x*2 + s, c]) * float32(F[r, s, c, m]))
  Y[b, y, x, m] = float16(max(S[b, y, x, m] + D[m], 0.0))
})")
          .kernel;
  EXPECT_EQ(
      tile::print(tile::contraction(kernel, {64, 64, 32, 0})),
      R"(tile k[n](X: float16[n, 9, 9, 32], F: float16[3, 3, 32, 64], D: float32[64], Y: float16[n, 5, 5, 64] output) {
  blocks b: n by 1, y: 5 by 8, x: 5 by 8, m: 64 by 64
  view v0 = F[1, 1, 32, 64]
  view v1 = D[64]
  view v2 = Y[1, 8, 8, 64]
  t0 = constant float32[64, 64] 0
  t1 = for r: 3 by 1, s: 3 by 1, c: 32 by 32 with t2 = t0 {
    t3 = window X[b, y*2 + r - 1, x*2 + s - 1, c] over b, y, x by c
    t4 = load v0[r, s, c, m]
    t5 = reshape [32, 64] t4
    t6 = mma t3, t5, t2
    yield t6
  }
  t7 = load v1[m]
  t8 = reshape [1, 64] t7
  t9 = broadcast [64, 64] t8
  t10 = add t1, t9
  t11 = constant float32[64, 64] 0
  t12 = max t10, t11
  t13 = cast float16 t12
  t14 = reshape [1, 8, 8, 64] t13
  store v2[b, y, x, m] = t14
}
)");
}

TEST(TileConvolution, ABlockHasAsManyPlacesOfEachAxisAsLeaveFewBeyondItsEnd) {
  const auto blocks_of = [](std::string_view images, int height, int width) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(X: float16[{0}, {1}, {2}, 64], F: float16[1, 1, 64, 256]) "
                              "-> (Y: float32[{0}, {1}, {2}, 256]) {{ Y[b, y, x, m] = sum[r < 1, s "
                              "< 1, c < 64](float32(X[b, y + r, x + s, c]) * "
                              "float32(F[r, s, c, m])) }}",
                              images, height, width))
            .kernel;
    const std::string text = tile::print(tile::contraction(kernel, {128, 256, 64, 8}));
    const size_t begin = text.find("blocks ");
    return text.substr(begin, text.find(", m:") - begin);
  };
  EXPECT_EQ(blocks_of("32", 56, 56), "blocks b: 32 by 2, y: 56 by 8, x: 56 by 8");
  EXPECT_EQ(blocks_of("1", 64, 64), "blocks b: 1 by 1, y: 64 by 2, x: 64 by 64");
  EXPECT_EQ(blocks_of("n", 7, 7), "blocks b: n by 2, y: 7 by 8, x: 7 by 8");
}

TEST(TileConvolution, ChannelsAreCutWhereTheyEnd) {
  const auto steps_of = [](int channels) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k(X: float16[9, 30, 30, {0}], F: float16[3, 3, {0}, 256]) -> "
                              "(Y: float32[9, 28, 28, 256]) {{ Y[b, y, x, m] = sum[r < 3, s < 3, c "
                              "< {0}](float32(X[b, y + r, x + s, c]) * "
                              "float32(F[r, s, c, m])) }}",
                              channels))
            .kernel;
    return tile::block_shape(kernel).steps;
  };
  EXPECT_EQ(steps_of(256), 64);
  EXPECT_EQ(steps_of(96), 32);
  EXPECT_EQ(steps_of(64), 32);  // a longer loop
  EXPECT_EQ(steps_of(72), 64);  // beyond its end are zeros
}

struct Refused {
  std::string_view arguments;
  std::string_view element;
  std::string_view reason;
};

/// What is summed, and why it is no window.
constexpr Refused kRefused[] = {
    {"X: float16[2, 8, 8, 16]", "if_then_else(c >= 2, X[b, y + r, x + s, c], 0)",
     "a factor is 0 elsewhere than around a tensor"},
    {"X: float16[2, 8, 8, 16]", "if_then_else(y + r >= 1, X[b, y + r, x + s, c], 0)",
     "a factor is 0 elsewhere than around a tensor"},
    {"X: float16[2, 8, 8, 16]", "if_then_else(y + r >= 1, X[b, y + r - 1, x + s - 1, c], 0)",
     "a window of it may leave a tensor"},
    {"X: float16[2, n, 8, 16]", "X[b, y + r, x + s, c]", "the call says how large an image is"},
    {"X: float16[2, 10, n, 16]", "X[b, y + r + s, x, c]", "the call says how large an image is"},
    {"X: float16[2, 16, 8, 8]", "X[b, c, y + r, x + s]",
     "a window of it is not summed over all of its last dimension"},
    {"X: float16[2, 8, 8, 17]", "X[b, y + r, x + s, c]",
     "a window of it is not summed over all of its last dimension"},
    {"X: float16[2, 40, 8, 16]", "X[b, y + r + c, x + s, c]", "what it reads has one axis twice"},
    {"X: float16[2, 8, 8, 16]", "X[b, (y + r) // 2, x + s, c]",
     "an index of what it reads is more than an axis"},
    {"X: float16[2, 8, 8, 16]", "if_then_else(y >= 1, X[b, y + r, x + s, c], 1)",
     "an index of what it reads is more than an axis"},
    {"X: float16[2, 8, 8, 16]", "if_then_else(y != 1, X[b, y + r, x + s, c], 0)",
     "an index of what it reads is more than an axis"},
    {"X: float16[2, 8, 8, 16]", "float16(bfloat16(X[b, y + r, x + s, c]))",
     "an index of what it reads is more than an axis"},
};

TEST(TileConvolution, SaysWhyAFactorIsNoWindow) {
  for (const Refused& refused : kRefused) {
    const language::Kernel kernel =
        kernel_of(fmt::format("kernel k({}, F: float16[3, 3, 16, 8]) -> (Y: float32[2, 6, 6, 8]) {{"
                              " Y[b, y, x, m] = sum[r < 3, s < 3, c < 16](float32({}) * "
                              "float32(F[r, s, c, m])) }}",
                              refused.arguments, refused.element))
            .kernel;
    SCOPED_TRACE(refused.element);
    expect_no_form(kernel, refused.reason);
  }
}

TEST(TileConvolution, ASumOfTwoWindowsIsNone) {
  const language::Kernel kernel =
      kernel_of(
          "kernel k(X: float16[2, 8, 16], Z: float16[3, 8, 16]) -> (Y: float32[2, 3, 6]) {"
          " Y[b, m, y] = sum[r < 3, c < 16](float32(X[b, y + r, c]) * float32(Z[m, y + r, c])) }")
          .kernel;
  expect_no_form(kernel, "both of its factors are windows");
}

TEST(TileConvolution, ChannelsBeforePlacesAreNoneWithoutACopy) {
  const language::Kernel kernel =
      kernel_of(
          "kernel k(X: float16[2, 16, 8, 8], F: float16[4, 16, 3, 3]) -> (Y: float32[2, 4, 6, 6]) {"
          " Y[b, m, y, x] = sum[c < 16, r < 3, s < 3](float32(X[b, c, y + r, x + s]) * "
          "float32(F[m, c, r, s])) }")
          .kernel;
  expect_no_form(kernel, "a window of it is not summed over all of its last dimension");
}

}  // namespace
}  // namespace kiln::testing
