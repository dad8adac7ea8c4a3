#include <gtest/gtest.h>

#include "tests/analysis/scene.h"

namespace kiln::testing {
namespace {

struct Row {
  const char* around;
  const char* condition;
  bool proved;
};

void expect_rows(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    const Scene scene(row.around, row.condition, "bool");
    EXPECT_EQ(analysis::can_prove(scene.expr, scene.facts), row.proved)
        << row.condition << "  in  " << row.around;
  }
}

TEST(CanProve, WhatRangesSay) {
  expect_rows({
      {"i < n", "i < n", true},
      {"i < n", "0 <= i && i <= n - 1", true},
      {"i < n", "1 <= n", true},
      {"i < n", "i < n - 1", false},
      {"", "0 <= n", true},
      {"", "0 <= a", false},
      {"", "1 <= n", false},
      {"i < n; j < i", "j < n - 1", true},
      {"i < n; j < i", "j < n - 2", false},
      {"i < n", "i != n", true},
      {"i < n", "i == 0", false},
      {"i < 1", "i == 0", true},
      {"", "m + n >= m", true},
      {"i < min(m, n)", "i < m && i < n", true},
      {"i < max(m, n)", "i < m || i < n", false},
      {"i < max(m, n)", "i < m + n", true},
  });
}

TEST(CanProve, WhatQuotientsRoundedSay) {
  expect_rows({
      {"i < 64; k < 64; if i < 49; if k < 36", "floordiv(i, 7) + floordiv(k, 12) < 9", true},
      {"i < 64; k < 64; if i < 49; if k < 37", "floordiv(i, 7) + floordiv(k, 12) < 9", false},
      {"if 5 <= a; if 8 <= m", "floordiv(a, 5) + floordiv(m, 4) >= 3", true},
      {"if 4 <= a; if 8 <= m", "floordiv(a, 5) + floordiv(m, 4) >= 3", false},
      {"o < 3; f < 4; z < 4; y < 8; x < 4; v < 8; "
       "if f*16 + z*4 + floordiv(y*32 + x*8 + v, 64) < 49; "
       "if o*64 + floormod(y*2 + floordiv(x*8 + v, 16), 4)*16 + floormod(x*8 + v, 16) < 144",
       "floordiv(f*16 + z*4 + floordiv(y*32 + x*8 + v, 64), 7) + "
       "floordiv(o*64 + floormod(y*2 + floordiv(x*8 + v, 16), 4)*16 + floormod(x*8 + v, 16), 48) < "
       "9",
       true},
      {"o < 3; f < 4; z < 4; y < 8; x < 4; v < 8; "
       "if o*64 + floormod(y*2 + floordiv(x*8 + v, 16), 4)*16 + floormod(x*8 + v, 16) < 144; "
       "if f*16 + z*4 + floordiv(y*32 + x*8 + v, 64) < 49",
       "floordiv(f*16 + z*4 + floordiv(y*32 + x*8 + v, 64), 7) + "
       "floordiv(o*64 + floormod(y*2 + floordiv(x*8 + v, 16), 4)*16 + floormod(x*8 + v, 16), 48) < "
       "9",
       true},
  });
}

TEST(CanProve, WhatTilesSay) {
  expect_rows({
      {"i < floordiv(n + 31, 32); j < 32", "i*32 + j < n", false},
      {"i < floordiv(n + 31, 32); j < 32", "i*32 < n", true},
      {"i < floordiv(n + 31, 32); j < 32", "i*32 + j < n + 31", true},
      {"i < floordiv(n + 31, 32); j < 32; if i*32 + j < n", "i*32 + j <= n - 1", true},
      {"i < floordiv(n, 32); j < 32", "i*32 + j < n", true},
      {"i < floordiv(n, 32); j < 32", "i*32 + j + 1 < n", false},
      {"i < floordiv(n, 32); j < 8; k < 4", "i*32 + j*4 + k < n", true},
      {"", "floordiv(n, 32) <= floordiv(n + 31, 32)", true},
      {"", "floordiv(n + 31, 32) <= floordiv(n, 32) + 1", true},
      {"", "floordiv(n + 31, 32) - floordiv(n, 32) <= 1", true},
      {"", "floordiv(n + 32, 32) <= floordiv(n, 32)", false},
      {"", "floordiv(n, 32)*32 <= n", true},
      {"", "n < floordiv(n, 32)*32 + 32", true},
      {"", "floormod(a, 8) < 8 && 0 <= floormod(a, 8)", true},
      {"", "floormod(n, 8) <= n", true},
      {"i < min(32, n - 5)", "i + 5 < n", true},
  });
}

TEST(CanProve, WhatFusedAxesSay) {
  expect_rows({
      {"f < m*n", "floordiv(f, n) < m", true},
      {"f < m*n", "0 <= floordiv(f, n)", true},
      {"f < m*n", "floormod(f, n) < n", true},
      {"f < m*n", "0 <= floormod(f, n)", true},
      {"f < m*n", "1 <= n", true},
      {"f < m*n", "floordiv(f, n) < m - 1", false},
      {"f < m*n*l", "floordiv(floordiv(f, l), n) < m", true},
      {"f < m*n*l", "floormod(floordiv(f, l), n) < n", true},
      {"i < m; j < n", "i*n + j < m*n", true},
      {"i < m; j < n", "i*n + j < m*n - 1", false},
      {"i < m; j < n; k < l", "(i*n + j)*l + k < m*n*l", true},
      {"f < floordiv(m + 3, 4)*n", "floordiv(f, n)*4 < m", true},
      // Dividing by zero gives zero, and that is not less than zero.
      {"", "floormod(m, n) < n", false},
      {"if 0 < n", "floormod(m, n) < n", true},
  });
}

TEST(CanProve, WhatAxesFusedOfSumsSay) {
  expect_rows({
      // A product that is not empty has no factor that is 0.
      {"if 0 <= m + l - 1; if 0 <= n - 1 + m; f < (m + l - 1)*(n - 1 + m)", "1 <= n - 1 + m", true},
      {"f < m*(n + l - 1)", "1 <= n + l - 1", true},
      {"if 0 <= m + l; f < (m + l)*(n - 1)", "0 < n - 1", true},
      {"f < (m + l - 1)*(n - 1)", "0 < n - 1", false},  // both may be below 0
      {"if 0 <= m + l - 1; f < (m + l - 1)*(n - 1)", "1 < n - 1", false},
      // However a division by a constant is written.
      {"if 0 < n + floordiv(m - 1, 2)", "0 <= n + floordiv(m + 1, 2) - 2", true},
      {"if 0 < n + floordiv(m - 1, 2)", "0 <= n + floordiv(m + 1, 2) - 3", false},
      {"if 0 <= floordiv(m + 2*n - l, 2)", "0 <= n + floordiv(m - l, 2)", true},
      {"if 0 <= floordiv(m + 2*n - l, 2)", "1 <= n + floordiv(m - l, 2)", false},
      {"", "0 <= a - 1 - 4*floordiv(a + 3, 4) + 4", true},
      {"", "1 <= a - 1 - 4*floordiv(a + 3, 4) + 4", false},
  });
}

TEST(CanProve, WhatConditionsSay) {
  expect_rows({
      {"i < m; if i < n", "i < n", true},
      {"i < m; if i < n && 4 <= i", "0 <= i - 4", true},
      {"i < m; if i == n - 1", "i + 1 == n", true},
      {"i < m; if !(i < n)", "n <= i", true},
      {"if m <= n; if n <= l", "m <= l", true},
      {"if m <= n", "n <= m", false},
      {"i < m; if F[i] < 1.0 && i < n", "F[i] < 1.0", true},
      {"i < m; if 0 <= A[i] && A[i] < n", "A[i] < n && 0 <= A[i]", true},
      {"i < m; if A[i] < n", "A[i] + 1 <= n", false},  // the sum may wrap
      {"i < m", "0 <= int64(U[i]) && int64(U[i]) <= 255", true},
      {"i < m", "min(max(A[i], 0), n) <= n && 0 <= min(max(A[i], 0), n)", true},
  });
}

TEST(CanProve, WhatChoicesSay) {
  expect_rows({
      {"i < n", "select(i < m, i, m) <= m", true},
      {"i < n", "select(i < m, i, 0) < n", true},
      {"i < n", "if_then_else(i < 4, 0, i - 4) < n", true},
      {"i < n", "0 <= if_then_else(i < 4, 0, i - 4)", true},
      {"i < n", "0 <= if_then_else(i < 4, 0, i - 5)", false},
      {"i < n", "max(i - 1, 0) < n", true},
      {"i < n", "min(i + 1, n - 1) < n", true},
      {"i < n", "0 <= min(i + 1, n - 1)", true},
  });
}

TEST(CanProve, ForgetsWhatWasPopped) {
  Scene scene("i < n; if i < m", "i < m", "bool");
  EXPECT_TRUE(analysis::can_prove(scene.expr, scene.facts));
  scene.facts.pop();
  EXPECT_FALSE(analysis::can_prove(scene.expr, scene.facts));
  scene.facts.push_condition(scene.expr);
  EXPECT_TRUE(analysis::can_prove(scene.expr, scene.facts));
}

TEST(CanProve, ForgetsWhatWasPoppedThoughLaterAnswersHoldWithoutIt) {
  // The second question has nothing to do with the condition that answers the first. No size tried
  // as an example leaves j a value, so that only a proof can tell.
  Scene scene("i < n; j < n - 2000; k < l; if i < m", "i < m && floormod(k*k, 4) <= 1", "bool");
  EXPECT_FALSE(analysis::can_prove(scene.expr, scene.facts));
  scene.facts.pop();
  EXPECT_FALSE(analysis::can_prove(ir::as<ir::Binary>(scene.expr)->a, scene.facts));
}

TEST(CanProve, GivesUpInBoundedWork) {
  // A sum of many products with nothing that bounds it.
  std::string around;
  std::string sum = "0";
  for (int i = 0; i < 12; ++i) {
    const std::string var = "i" + std::to_string(i);
    around += var + " < min(floordiv(n + " + std::to_string(i) + ", 3), max(m, l)*2); ";
    sum += " + " + var + "*floordiv(m, " + std::to_string(i + 2) + ")";
  }
  const Scene scene(around, sum + " < n*m", "bool");
  EXPECT_FALSE(analysis::can_prove(scene.expr, scene.facts));
}

}  // namespace
}  // namespace kiln::testing
