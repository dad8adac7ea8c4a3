// Layouts against all of their numbers, one by one: what they are by definition.
#include "compiler/analysis/linear_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "tests/support/layouts.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

using analysis::LinearLayout;

int below_bits(Random& random, int bits) { return random.below(1 << bits); }

/// Up to three inputs and coordinates, of up to three bits each.
LinearLayout random_layout(Random& random) {
  std::vector<LinearLayout::Output> outputs;
  int64_t stride = 1;
  for (int i = 0, count = random.between(1, 3); i < count; ++i) {
    const int bits = random.between(1, 3);
    outputs.push_back({.name = "out" + std::to_string(i), .bits = bits, .stride = stride});
    // Side by side, further apart, padded, or all over one another.
    const int64_t after = stride << bits;
    stride = random.pick(std::vector<int64_t>{after, after, after * 2, after + 1, after + 4, 1});
  }
  std::vector<LinearLayout::Input> inputs;
  for (int i = 0, count = random.between(1, 3); i < count; ++i) {
    LinearLayout::Input input{.name = "in" + std::to_string(i), .bits = {}};
    for (int bit = random.between(0, 3); bit > 0; --bit) {
      std::vector<int64_t>& flips = input.bits.emplace_back();
      for (const LinearLayout::Output& output : outputs)
        flips.push_back(random.chance(0.6) ? below_bits(random, output.bits) : 0);
    }
    inputs.push_back(std::move(input));
  }
  return {std::move(inputs), std::move(outputs)};
}

/// The identity of a few bits, whose rows are added to one another and change places.
LinearLayout random_bijection(Random& random) {
  const int bits = random.between(1, 6);
  std::vector<int64_t> columns;
  for (int i = 0; i < bits; ++i)
    columns.push_back(int64_t{1} << i);
  for (int i = 0; i < 20 && bits > 1; ++i) {
    const int from = random.below(bits);
    const int to = random.below(bits);
    if (from != to) columns[static_cast<size_t>(to)] ^= columns[static_cast<size_t>(from)];
  }
  random.shuffle(columns);
  const int cut = random.below(bits);
  const auto coordinates = [&](int64_t column) {
    return std::vector<int64_t>{column & ((int64_t{1} << cut) - 1), column >> cut};
  };
  const int first = random.below(bits + 1);
  std::vector<LinearLayout::Input> inputs = {{.name = "a", .bits = {}}, {.name = "b", .bits = {}}};
  for (int i = 0; i < bits; ++i)
    inputs[i < first ? 0 : 1].bits.push_back(coordinates(columns[static_cast<size_t>(i)]));
  return {std::move(inputs), {{.name = "low", .bits = cut}, {.name = "high", .bits = bits - cut}}};
}

std::vector<LinearLayout> layouts() {
  std::vector<LinearLayout> all = layouts_of_templates();
  Random random(fuzz_seed(11));
  for (int round = fuzz_rounds(300); round > 0; --round)
    all.push_back(random_layout(random));
  for (int round = fuzz_rounds(100); round > 0; --round)
    all.push_back(random_bijection(random));
  return all;
}

TEST(LinearLayout, IsLinear) {
  for (const LinearLayout& layout : layouts()) {
    for (int64_t i = 0; i < layout.size(); i += 3) {
      const auto a = layout.coordinates(layout.numbers_at(i));
      const auto b = layout.coordinates(layout.numbers_at(layout.size() - 1 - i));
      std::vector<int64_t> both = layout.numbers_at(i ^ (layout.size() - 1 - i));
      for (size_t o = 0; o < a.size(); ++o)
        ASSERT_EQ(layout.coordinates(both)[o], a[o] ^ b[o]);
    }
  }
}

TEST(LinearLayout, ComposesAsItsNumbersDo) {
  Random random(fuzz_seed(12));
  for (int round = fuzz_rounds(300); round > 0; --round) {
    const LinearLayout first = random_layout(random);
    std::vector<LinearLayout::Input> inputs;
    std::vector<LinearLayout::Output> outputs = {{.name = "x", .bits = 4, .stride = 3},
                                                 {.name = "y", .bits = 2, .stride = 50}};
    for (const LinearLayout::Output& output : first.outputs()) {
      LinearLayout::Input input{.name = output.name, .bits = {}};
      for (int bit = 0; bit < output.bits + random.below(2); ++bit)
        input.bits.push_back({below_bits(random, 4), below_bits(random, 2)});
      inputs.push_back(std::move(input));
    }
    const LinearLayout next(inputs, outputs);
    const LinearLayout both = first.compose(next);
    for (int64_t i = 0; i < first.size(); ++i) {
      const std::vector<int64_t> numbers = first.numbers_at(i);
      ASSERT_EQ(both.place(numbers), next.place(first.coordinates(numbers)));
    }
  }
}

TEST(LinearLayout, HasAnInverseWhereEachCoordinateBelongsToOneNumber) {
  int found = 0;
  int missing = 0;
  for (const LinearLayout& layout : layouts()) {
    std::set<std::vector<int64_t>> reached;
    for (int64_t i = 0; i < layout.size(); ++i)
      reached.insert(layout.coordinates(layout.numbers_at(i)));
    int bits = 0;
    for (const LinearLayout::Output& output : layout.outputs())
      bits += output.bits;
    const auto size = static_cast<int64_t>(reached.size());
    EXPECT_EQ(int64_t{1} << layout.rank(), size);
    const bool is_bijection = size == layout.size() && size == int64_t{1} << bits;
    const auto inverse = layout.inverse();
    ASSERT_EQ(inverse.has_value(), is_bijection);
    ++(is_bijection ? found : missing);
    if (!inverse) continue;
    for (int64_t i = 0; i < layout.size(); ++i) {
      const std::vector<int64_t> numbers = layout.numbers_at(i);
      ASSERT_EQ(inverse->coordinates(layout.coordinates(numbers)), numbers);
    }
  }
  // A fifth at least, of however many are drawn.
  EXPECT_GT(5 * found, missing + found);
  EXPECT_GT(5 * missing, missing + found);
}

std::string text_of(const LinearLayout& layout) {
  std::string text;
  for (const LinearLayout::Output& output : layout.outputs())
    text += fmt::format("{}: {} bits, stride {}\n", output.name, output.bits, output.stride);
  for (const LinearLayout::Input& input : layout.inputs())
    text += fmt::format("{}: {}\n", input.name, input.bits);
  return text;
}

/// The longest groups of neighbours that lie side by side wherever the other numbers are.
int64_t neighbours(const LinearLayout& layout, size_t along) {
  const auto bits = layout.inputs()[along].bits.size();
  int64_t best = 1;
  for (int64_t group = 2; group <= int64_t{1} << bits; group *= 2) {
    for (int64_t i = 0; i < layout.size(); ++i) {
      std::vector<int64_t> numbers = layout.numbers_at(i);
      const int64_t own = numbers[along] % group;
      const int64_t place = layout.place(numbers);
      numbers[along] -= own;
      const int64_t first = layout.place(numbers);
      if (place != first + own || first % group != 0) return best;
    }
    best = group;
  }
  return best;
}

TEST(LinearLayout, SaysHowManyNeighboursLieSideBySide) {
  std::map<int64_t, int> seen;
  for (const LinearLayout& layout : layouts()) {
    for (size_t i = 0; i < layout.inputs().size(); ++i) {
      const int64_t said = layout.contiguous(layout.inputs()[i].name);
      ASSERT_EQ(said, neighbours(layout, i)) << text_of(layout) << layout.inputs()[i].name;
      ++seen[said];
    }
  }
  EXPECT_GE(seen.size(), 3u);
}

/// By what each bank has to give in each cycle, thread by thread.
LinearLayout::Access counted(const LinearLayout& layout, size_t lanes, int64_t element,
                             int64_t at_once) {
  const int64_t threads = int64_t{1} << layout.inputs()[lanes].bits.size();
  const int64_t together = 128 / std::max<int64_t>(at_once, 4);
  LinearLayout::Access result;
  for (int64_t begin = 0; begin < threads; begin += together) {
    std::array<std::set<int64_t>, 32> words;
    std::set<int64_t> all;
    for (int64_t thread = begin; thread < std::min(threads, begin + together); ++thread) {
      std::vector<int64_t> numbers(layout.inputs().size(), 0);
      numbers[lanes] = thread;
      for (int64_t byte = 0; byte < at_once; ++byte) {
        const int64_t word = (layout.place(numbers) * element + byte) / 4;
        words[static_cast<size_t>(word % 32)].insert(word);
        all.insert(word);
      }
    }
    size_t most = 0;
    for (const std::set<int64_t>& each : words)
      most = std::max(most, each.size());
    result.wavefronts += static_cast<int64_t>(most);
    result.fewest += (static_cast<int64_t>(all.size()) + 31) / 32;
  }
  return result;
}

TEST(LinearLayout, CountsBankConflictsByRank) {
  std::map<int64_t, int> seen;
  for (const LinearLayout& layout : layouts()) {
    for (size_t i = 0; i < layout.inputs().size(); ++i) {
      if (layout.inputs()[i].bits.size() > 5) continue;
      const std::string& name = layout.inputs()[i].name;
      for (const int64_t element : {1, 2, 4, 8}) {
        for (int64_t at_once = element; at_once <= 16; at_once *= 2) {
          const LinearLayout::Access said = layout.access(name, element, at_once);
          const LinearLayout::Access is = counted(layout, i, element, at_once);
          ASSERT_EQ(said.wavefronts, is.wavefronts);
          ASSERT_EQ(said.fewest, is.fewest);
          ++seen[layout.conflicts(name, element, at_once)];
        }
      }
    }
  }
  EXPECT_GE(seen.size(), 3u);
}

/// Of constants, which the short spellings fold already.
int64_t value_of(const ir::Expr& expr) {
  if (const auto number = ir::as_const_int(expr)) return *number;
  const auto* node = ir::as<ir::Binary>(expr);
  EXPECT_NE(node, nullptr);
  const int64_t a = value_of(node->a);
  const int64_t b = value_of(node->b);
  switch (node->op) {
    case ir::Operator::Add: return a + b;
    case ir::Operator::Mul: return a * b;
    case ir::Operator::TruncDiv: return a / b;
    case ir::Operator::TruncMod: return a % b;
    case ir::Operator::BitXor: return a ^ b;
    default: ADD_FAILURE(); return 0;
  }
}

TEST(LinearLayout, IsAnExpressionOfItsInputs) {
  for (const LinearLayout& layout : layouts()) {
    for (int64_t i = 0; i<layout.size(); i += layout.size()> 256 ? 7 : 1) {
      const std::vector<int64_t> numbers = layout.numbers_at(i);
      std::vector<ir::Expr> exprs;
      for (const int64_t number : numbers)
        exprs.push_back(ir::index(number));
      ASSERT_EQ(value_of(layout.to_expr(exprs)), layout.place(numbers));
    }
  }
}

/// Lanes read down a column of a tile whose rows are 32 words.
TEST(LinearLayout, KnowsPaddingAndSwizzlesFromOneAnother) {
  const auto tile = [](int64_t stride, bool is_swizzled) {
    LinearLayout::Input rows{.name = "row", .bits = {}};
    for (int bit = 0; bit < 5; ++bit)
      rows.bits.push_back({int64_t{1} << bit, is_swizzled ? int64_t{1} << bit : 0});
    return LinearLayout({rows}, {{"line", 5, stride}, {"word", 5, 1}});
  };
  EXPECT_EQ(tile(32, false).conflicts("row", 4, 4), 32);
  EXPECT_EQ(tile(33, false).conflicts("row", 4, 4), 1);
  EXPECT_EQ(tile(32, true).conflicts("row", 4, 4), 1);
}

}  // namespace
}  // namespace kiln::testing
