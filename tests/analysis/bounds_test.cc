#include <gtest/gtest.h>

#include "compiler/ir/print.h"
#include "tests/analysis/scene.h"

namespace kiln::testing {
namespace {

struct Row {
  const char* around;
  int inner;  // how many of the loops, from the innermost, run
  const char* expr;
  const char* min;
  const char* max;
};

void expect_rows(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    const Scene scene(row.around, row.expr);
    const std::vector<analysis::Facts::Range> inner(scene.ranges.end() - row.inner,
                                                    scene.ranges.end());
    analysis::Facts outer = scene.facts;
    for (int i = 0; i < row.inner; ++i)
      outer.pop();
    const analysis::Interval bounds = analysis::bounds_of(scene.expr, inner, outer);
    const auto text = [](const ir::Expr& end) { return end ? ir::print(end) : "none"; };
    EXPECT_EQ(text(bounds.min), row.min) << row.expr << "  in  " << row.around;
    EXPECT_EQ(text(bounds.max), row.max) << row.expr << "  in  " << row.around;
  }
}

TEST(BoundsOf, LinearForms) {
  expect_rows({
      {"i < n", 1, "i", "0", "n - 1"},
      {"i < n", 1, "n - i", "1", "n"},
      {"i < n", 1, "m", "m", "m"},
      {"i < m; j < 32", 1, "i*32 + j", "i*32", "i*32 + 31"},
      {"i < m; j < 32", 2, "i*32 + j", "0", "m*32 - 1"},
      {"i < m; j < n", 2, "i*n + j", "0", "m*n - 1"},
      {"i < m; j < n", 2, "i - j", "1 - n", "m - 1"},
      {"i < n; j < i", 2, "j", "0", "n - 2"},
      {"i < n", 1, "i*a", "min(0, (n - 1)*a)", "max(0, (n - 1)*a)"},
      {"i < n", 1, "i*i", "none", "none"},
      {"i < 4; j < 3", 2, "i*2 + j", "0", "8"},
  });
}

TEST(BoundsOf, Divisions) {
  expect_rows({
      {"i < n", 1, "floordiv(i, 4)", "0", "floordiv(n - 1, 4)"},
      {"i < n", 1, "floormod(i, 4)", "0", "3"},
      {"i < 4", 1, "floormod(i + 4, 8)", "4", "7"},
      {"i < 4", 1, "floormod(i*2, 16)", "0", "6"},
      {"i < m; j < 32", 2, "floordiv(i*32 + j, 32)", "0", "m - 1"},
      {"i < m; j < 32", 1, "floormod(i*32 + j, 32)", "0", "31"},
      {"f < m*n", 1, "floordiv(f, n)", "0", "m - 1"},
      {"f < m*n", 1, "floormod(f, n)", "0", "n - 1"},
      {"i < m; j < 2", 1, "floordiv(i + j, 2)", "floordiv(i, 2)", "floordiv(i + 1, 2)"},
  });
}

TEST(BoundsOf, Choices) {
  expect_rows({
      {"i < n", 1, "min(i, m)", "0", "min(n - 1, m)"},
      {"i < n", 1, "max(i - 1, 0)", "0", "max(n - 2, 0)"},
      {"i < n", 1, "select(i < m, i, 0)", "0", "n - 1"},
      {"i < m", 1, "int64(U[i])", "0", "255"},
      {"i < m", 1, "A[i]", "none", "none"},
      {"i < m; j < min(32, n - i*32)", 1, "i*32 + j", "i*32", "min(i*32 + 31, n - 1)"},
  });
}

}  // namespace
}  // namespace kiln::testing
