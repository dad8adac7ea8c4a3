// The type of what cache_padded makes a stage of, which is that of what is computed there.
#include <gtest/gtest.h>
#include <kiln/client.h>

namespace kiln::test {
namespace {

constexpr int kSize = 32;

/// The stage that a product gets of its first factor.
template <typename Factor>
Tensor padded_of(DType type, const Factor& factor, bool is_copied = false) {
  const Tensor A = placeholder({kSize, kSize}, type, "A");
  const Tensor B = placeholder({kSize, kSize}, float32, "B");
  const ReduceAxis k = reduce_axis(kSize, "k");
  const Tensor C =
      compute({kSize, kSize},
              [&](Expr i, Expr j) { return sum(cast(factor(A, i, k), float32) * B(k, j), k); },
              {"C", {"i", "j"}});
  const Schedule s = create_schedule(C);
  return s.cache_padded(is_copied ? s.cache_read(A, "global", {C}) : A, C);
}

TEST(PaddedStage, HasTheTypeOfWhatIsComputed) {
  const auto rounded = [](const Tensor& A, Expr i, Expr k) {
    return cast(A(i, k) * 2.0F, float16);
  };
  EXPECT_EQ(padded_of(float32, rounded).dtype(), float16);
  EXPECT_EQ(padded_of(float32, rounded, true).dtype(), float16);
  const auto scaled = [](const Tensor& A, Expr i, Expr k) { return cast(A(i, k), float32) * 0.5F; };
  EXPECT_EQ(padded_of(int8, scaled).dtype(), float32);
  // What stands at the element's place belongs to it.
  const auto placed = [](const Tensor& A, Expr i, Expr k) {
    return cast(A(i, k), float64) + cast(k, float64) + cast(A(i, k), float64);
  };
  EXPECT_EQ(padded_of(float16, placed).dtype(), float32);
}

TEST(PaddedStage, HasNoCastsThatKeepEachValue) {
  const auto positive = [](const Tensor& A, Expr i, Expr k) {
    return max(A(i, k), cast(0, A.dtype()));
  };
  EXPECT_EQ(padded_of(float16, positive).dtype(), float16);
  EXPECT_EQ(padded_of(int8, positive).dtype(), float32);
}

TEST(PaddedStage, HasTheTypeOfAChoice) {
  const auto inside = [](const Tensor& A, Expr i, Expr k) {
    return if_then_else(k >= 1, cast(A(i, k - 1), float32), 0.0F);
  };
  EXPECT_EQ(padded_of(float16, inside).dtype(), float32);
}

}  // namespace
}  // namespace kiln::test
