// Sums of products, multiplied and divided again.
#include "compiler/analysis/linear.h"

#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

using analysis::Linear;

/// A sum of a few products of at most `degree` of four variables.
Linear drawn_sum(Random& random, int degree) {
  Linear sum = analysis::linear_constant(random.between(-3, 3));
  const int terms = random.between(1, 4);
  for (int i = 0; i < terms; ++i) {
    analysis::Product product(random.below(4));
    for (int k = random.between(1, degree); k > 1; --k)
      product = *product.times(analysis::Product(random.below(4)));
    const int coefficient = random.between(1, 3) * (random.chance(0.3) ? -1 : 1);
    sum = *analysis::add(sum, Linear{{{coefficient, product}}, 0});
  }
  return sum;
}

TEST(ExactQuotient, IsTheOtherFactorOfAProduct) {
  const uint64_t first = fuzz_seed();
  const int rounds = fuzz_rounds(20000);
  for (uint64_t seed = first; seed < first + rounds; ++seed) {
    Random random(seed);
    const Linear a = drawn_sum(random, 3);
    const Linear b = drawn_sum(random, 2);
    const std::optional<Linear> product = analysis::multiplied(a, b);
    ASSERT_TRUE(product.has_value());
    if (b.is_constant()) continue;  // where terms cancelled
    const std::optional<Linear> quotient = analysis::exact_quotient(*product, b);
    ASSERT_TRUE(quotient.has_value()) << "to repeat: KILN_FUZZ_SEED=" << seed;
    EXPECT_TRUE(*quotient == a) << "to repeat: KILN_FUZZ_SEED=" << seed;
    // Whatever it says of other sums multiplies back.
    const Linear other = drawn_sum(random, 3);
    if (const std::optional<Linear> whole = analysis::exact_quotient(other, b)) {
      EXPECT_TRUE(*analysis::multiplied(*whole, b) == other) << "seed " << seed;
    }
    const Linear more = *analysis::add(*product, analysis::linear_constant(1));
    EXPECT_FALSE(analysis::exact_quotient(more, b).has_value()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace kiln::testing
