#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/text/text.h"
#include "tests/support/random.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

const Target kHost = {TargetKind::Llvm, ""};

/// A convolution that says inside of its product what stands around the image.
struct Convolution {
  int images = 0;
  int groups = 0;
  int channels = 0;  // of a group
  int filters = 0;   // likewise
  int lines = 0;
  int columns = 0;
  int window = 0;
  int stride = 0;
  int dilation = 0;
  int padding = 0;
  bool is_last = false;       // channels last
  bool is_first = false;      // the image is the left factor
  bool is_refusal = false;    // the condition says what is outside
  bool has_epilogue = false;  // in the same expression
  bool has_sizes = false;     // lines and images are any number

  int extent(int size) const {
    return (size + 2 * padding - dilation * (window - 1) - 1) / stride + 1;
  }
};

Convolution random_convolution(Random& random) {
  Convolution c{.images = random.between(1, 3), .groups = random.chance(0.2) ? 2 : 1};
  c.channels = random.between(1, 5);
  c.filters = random.between(c.groups == 1 ? 8 : 4, 19);
  c.lines = random.between(5, 14);
  c.columns = random.between(5, 21);
  c.window = random.between(1, 3);
  c.stride = random.between(1, 2);
  c.dilation = random.between(1, 2);
  c.padding = random.between(1, 3);
  c.is_last = random.chance(0.3);
  c.is_first = random.chance(0.5);
  c.is_refusal = random.chance(0.3);
  c.has_epilogue = random.chance(0.3);
  c.has_sizes = random.chance(0.2);
  return c;
}

/// The places of n, c, y and x in the order of the image.
std::string at(const Convolution& c, std::string_view channel, std::string_view line,
               std::string_view column) {
  return c.is_last ? fmt::format("n, {}, {}, {}", line, column, channel)
                   : fmt::format("n, {}, {}, {}", channel, line, column);
}

std::string shape_of(const Convolution& c, int channels, std::string_view lines, int columns) {
  const std::string images = c.has_sizes ? "b" : fmt::format("{}", c.images);
  return c.is_last ? fmt::format("{}, {}, {}, {}", images, lines, columns, channels)
                   : fmt::format("{}, {}, {}, {}", images, channels, lines, columns);
}

std::string text_of(const Convolution& c) {
  const std::string row = fmt::format("y*{} + r*{} - {}", c.stride, c.dilation, c.padding);
  const std::string column = fmt::format("x*{} + s*{} - {}", c.stride, c.dilation, c.padding);
  const std::string lines = c.has_sizes ? "h" : fmt::format("{}", c.lines);
  const std::string inside =
      fmt::format("0 <= {0} && {0} < {1} && 0 <= {2} && {2} < {3}", row, lines, column, c.columns);
  const std::string channel =
      c.groups == 1 ? "q" : fmt::format("floordiv(f, {})*{} + q", c.filters, c.channels);
  const std::string element = fmt::format("X[{}]", at(c, channel, row, column));
  const std::string image = c.is_refusal
                                ? fmt::format("if_then_else(!({}), 0, {})", inside, element)
                                : fmt::format("if_then_else({}, {}, 0)", inside, element);
  const std::string weight = "W[f, q, r, s]";
  const std::string sum =
      fmt::format("sum[q < {}, r < {}, s < {}]({} * {})", c.channels, c.window, c.window,
                  c.is_first ? image : weight, c.is_first ? weight : image);
  const std::string out_lines =
      c.has_sizes ? fmt::format("floordiv(h + {}, {}) + 1",
                                2 * c.padding - c.dilation * (c.window - 1) - 1, c.stride)
                  : fmt::format("{}", c.extent(c.lines));
  return fmt::format(
      "kernel k(X: float32[{}], W: float32[{}, {}, {}, {}]{}) -> (Y: float32[{}]) "
      "{{\n  Y[{}] = {}\n}}\n",
      shape_of(c, c.channels * c.groups, lines, c.columns), c.filters * c.groups, c.channels,
      c.window, c.window,
      c.has_epilogue ? fmt::format(", B: float32[{}]", c.filters * c.groups) : "",
      shape_of(c, c.filters * c.groups, out_lines, c.extent(c.columns)), at(c, "f", "y", "x"),
      c.has_epilogue ? fmt::format("max({} + B[f], 0)", sum) : sum);
}

HostTensor whole_numbers(std::vector<int64_t> shape, Random& random) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& value : values)
    value = static_cast<float>(random.between(-4, 4));
  return tensor_of(std::move(shape), values);
}

struct Inputs {
  std::vector<int64_t> sizes;
  std::vector<HostTensor> tensors;
};

Inputs inputs_of(const language::Kernel& kernel, const Convolution& c, Random& random) {
  const language::Definition& definition = kernel.definition;
  Inputs inputs;
  for (const std::string& name : kernel.names.variables)
    inputs.sizes.push_back(name == "b" ? c.images : c.lines);
  for (const language::TensorId parameter : definition.parameters) {
    if (definition.is_output(parameter)) continue;
    std::vector<int64_t> shape;
    for (const language::ExprId extent : definition.shape_of(parameter))
      shape.push_back(language::evaluate_size(definition, extent, inputs.sizes));
    inputs.tensors.push_back(whole_numbers(std::move(shape), random));
  }
  return inputs;
}

bool has_padded_copy(const language::Schedule& schedule) {
  return std::ranges::any_of(schedule.steps, [](const language::Step& step) {
    return step.kind == language::StepKind::CachePadded;
  });
}

TEST(PaddedConvolutions, AreWhatTheDefinitionSays) {
  int copied = 0;
  const int rounds = fuzz_rounds(60);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t seed = fuzz_seed() + static_cast<uint64_t>(round);
    Random random(seed);
    const Convolution convolution = random_convolution(random);
    if (convolution.extent(convolution.lines) < 1 || convolution.extent(convolution.columns) < 1)
      continue;
    const std::string text = text_of(convolution);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    const language::Kernel kernel = language::parse_text(text, "test")[0].kernel;
    const Inputs inputs = inputs_of(kernel, convolution, random);
    const language::Schedule schedule = choose_schedule(kernel, {}, kHost, {});
    copied += has_padded_copy(schedule) ? 1 : 0;
    const std::vector<HostTensor> expected =
        language::evaluate(kernel.definition, kernel.names, inputs.sizes, inputs.tensors);
    const std::vector<HostTensor> actual =
        run_on_cpu(kernel, schedule, inputs.sizes, inputs.tensors);
    ASSERT_EQ(actual[0].bytes, expected[0].bytes);
  }
  if (rounds < 20) return;
  EXPECT_GE(copied * 3, rounds) << "too few have a padded copy";
}

TEST(PaddedConvolutions, MultiplyWhatStandsAroundTheImage) {
  const language::Kernel kernel =
      language::parse_text(
          "kernel k(X: float32[6, 20], W: float32[16, 6, 3]) -> (Y: float32[16, 20]) {"
          " Y[f, x] = sum[q < 6, r < 3]("
          "if_then_else(x + r >= 1 && x + r <= 20, X[q, x + r - 1], 0) * W[f, q, r]) }",
          "test")[0]
          .kernel;
  Random random(1);
  std::vector<HostTensor> inputs = {whole_numbers({6, 20}, random),
                                    whole_numbers({16, 6, 3}, random)};
  std::vector<float> weights = values_of<float>(inputs[1]);
  weights[0] = std::numeric_limits<float>::infinity();
  weights[2 * 18 + 2] = std::numeric_limits<float>::quiet_NaN();
  inputs[1] = tensor_of({16, 6, 3}, weights);
  const language::Schedule schedule = choose_schedule(kernel, {}, kHost, {});
  ASSERT_TRUE(has_padded_copy(schedule));
  const std::vector<float> expected =
      values_of<float>(language::evaluate(kernel.definition, kernel.names, {}, inputs)[0]);
  const std::vector<float> actual = values_of<float>(run_on_cpu(kernel, schedule, {}, inputs)[0]);
  EXPECT_TRUE(std::isnan(expected[0])) << "0 times infinity";
  EXPECT_TRUE(std::isnan(expected[2 * 20 + 19])) << "0 times nan";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << "element " << i;
    } else {
      EXPECT_EQ(actual[i], expected[i]) << "element " << i;
    }
  }
}

/// The last vector of channels is filled, of which 14 of 16 are there.
TEST(PaddedConvolutions, HaveChannelsThatFillNoVector) {
  const language::Kernel kernel =
      language::parse_text(
          "kernel k(X: float32[64, 30, 30], W: float32[46, 64, 3, 3]) -> (Y: float32[46, 28, 28]) {"
          " Y[f, y, x] = sum[q < 64, r < 3, s < 3](X[q, y + r, x + s] * W[f, q, r, s]) }",
          "test")[0]
          .kernel;
  Random random(1);
  const std::vector<HostTensor> inputs = {whole_numbers({64, 30, 30}, random),
                                          whole_numbers({46, 64, 3, 3}, random)};
  const Target planned = {TargetKind::Llvm, "znver3"};
  const language::Schedule schedule = choose_schedule(kernel, {}, planned, {});
  const std::string steps = language::print_schedule(kernel, "cpu", schedule);
  ASSERT_NE(steps.find("split(Y.f, factor=16)"), std::string::npos) << steps;
  EXPECT_EQ(run_on_cpu(kernel, schedule, {}, inputs)[0].bytes,
            language::evaluate(kernel.definition, kernel.names, {}, inputs)[0].bytes);
}

}  // namespace
}  // namespace kiln::testing
