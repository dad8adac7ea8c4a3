// Two loops of which the second one does what the first one does, and masks, are told apart from
// others.
#include "compiler/tile/masked_loops.h"

#include <gtest/gtest.h>

#include "compiler/tile/attention.h"
#include "compiler/tile/text.h"
#include "tests/support/kernels.h"
#include "tests/tile/attentions.h"

namespace kiln::testing {
namespace {

/// A causal attention, whose parts of keys that all queries see come first.
std::string causal() {
  Attention written;
  written.score = "select(j <= i, T * 0.25, -inf)";
  return tile::print(tile::attention(kernel_of(written.text()).kernel, {32, 32, 0}));
}

std::optional<tile::Masks> masks_of(const std::string& text) {
  SCOPED_TRACE(text);
  const tile::Program program = tile::parse(text);
  for (size_t i = 0; i + 1 < program.body.size(); ++i)
    if (std::holds_alternative<tile::For>(program.body[i].what))
      return tile::masks_of_second(program, program.body[i], program.body[i + 1]);
  ADD_FAILURE() << "no loop";
  return std::nullopt;
}

/// With a part of the second loop replaced, where it stands first.
std::string with(const std::string& part, const std::string& other) {
  std::string text = causal();
  const size_t second = text.find("for ", text.find("for ") + 1);
  const size_t at = text.find(part, second);
  EXPECT_NE(at, std::string::npos) << part << text;
  return text.replace(at, part.size(), other);
}

/// By the query's place, and by the end of the keys: 70 are not in parts of 32.
TEST(MaskedLoops, MaskWhatTheFirstOneTakesAsItIs) {
  const std::optional<tile::Masks> masks = masks_of(causal());
  ASSERT_TRUE(masks);
  ASSERT_EQ(masks->size(), 2U);
  // Both choices are made for the same scores.
  EXPECT_EQ(masks->begin()->second, masks->rbegin()->second);
  EXPECT_LT(masks->begin()->second, masks->begin()->first);
}

TEST(MaskedLoops, DoTheSame) {
  EXPECT_FALSE(masks_of(with(" 0.25", " 0.5")));
  EXPECT_FALSE(masks_of(with("reduce max", "reduce sum")));
  EXPECT_FALSE(masks_of(with("exp2 ", "negative ")));
}

TEST(MaskedLoops, BeginWhereTheFirstOneEnds) {
  const std::string text = causal();
  const size_t from = text.find(" from ");
  ASSERT_NE(from, std::string::npos);
  const size_t until = text.find(" until ", from);
  std::string other = text;
  other.erase(from, until - from);
  EXPECT_FALSE(masks_of(other));
}

}  // namespace
}  // namespace kiln::testing
