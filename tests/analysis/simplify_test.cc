#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "tests/analysis/scene.h"

namespace kiln::testing {
namespace {

struct Row {
  const char* around;
  const char* before;
  const char* after;
  const char* type = "int64";
};

void expect_rows(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    const Scene scene(row.around, row.before, row.type);
    EXPECT_EQ(ir::print(analysis::simplify(scene.expr, scene.facts)), row.after)
        << row.before << "  in  " << row.around;
  }
}

TEST(Simplify, CancelsAndGathersTerms) {
  expect_rows({
      {"", "m + n - m", "n"},
      {"", "n - 1 - (n - 1) + m", "m"},
      {"", "m - 2 + 1", "m - 1"},
      {"", "1 + m", "m + 1"},
      {"", "n*2 + m + n", "n*3 + m"},
      {"", "2*n", "n*2"},
      {"", "m*n - n*m", "0"},
      {"", "-(m - n)", "n - m"},
      {"", "-m - n", "-m - n"},
      {"", "3 - m", "3 - m"},
      {"", "(m + 1)*(n + 1) - m*n - m - n", "1"},
      {"i < n", "n - 1 - i", "n - i - 1"},
  });
}

TEST(Simplify, KeepsTheOrderOfFirstAppearance) {
  expect_rows({
      {"b < n; t < 256", "b*256 + t", "b*256 + t"},
      {"b < n; t < 256", "t + b*256", "t + b*256"},
      {"t < m", "t + 1", "t + 1"},
      {"i < m; j < n", "(i + 1)*n + j", "(i + 1)*n + j"},
      {"i < m; j < n", "i*n + n + j", "(i + 1)*n + j"},
      {"i < m; j < 4; k < n", "i*4*n + j*n + k", "(i*4 + j)*n + k"},
  });
}

TEST(Simplify, GivesTheSameNodeWhenThereIsNothingToDo) {
  for (const char* text : {"b*256 + t", "floordiv(n + 31, 32)", "min(m, n)", "A[b] + 1",
                           "select(b < t, m, n)", "int64(D[b])*4 + 1"}) {
    const Scene scene("b < m; t < 256", text);
    EXPECT_EQ(analysis::simplify(scene.expr, scene.facts), scene.expr) << text;
  }
}

TEST(Simplify, DividesByConstants) {
  expect_rows({
      {"", "floordiv(n*32, 32)", "n"},
      {"", "floordiv(n*32 + 5, 32)", "n"},
      {"", "floordiv(n*64 + 32, 32)", "n*2 + 1"},
      {"", "floordiv(n + 256, 256)", "floordiv(n, 256) + 1"},
      {"", "floordiv(n + 255, 256)", "floordiv(n + 255, 256)"},
      {"", "floordiv(n + 31, 32) - 1", "floordiv(n - 1, 32)"},
      {"", "floordiv(n*4 + 2, 8)", "floordiv(n, 2)"},
      {"", "floordiv(floordiv(n, 4), 8)", "floordiv(n, 32)"},
      {"", "floordiv(floordiv(n + 1, 4) + 2, 8)", "floordiv(n + 9, 32)"},
      {"i < m; j < 32", "floordiv(i*32 + j, 32)", "i"},
      {"i < m; j < 32", "floormod(i*32 + j, 32)", "j"},
      {"j < 32", "floordiv(j + 32, 32)", "1"},
      {"j < 32", "floormod(j + 32, 32)", "j"},
      {"i < 8", "floordiv(i, 4)", "floordiv(i, 4)"},
      {"", "floormod(n*4 + 2, 8)", "floormod(n, 2)*4 + 2"},
      {"", "floormod(floormod(n, 64), 32)", "floormod(n, 32)"},
      {"", "floordiv(-7, 2)", "-4"},
      {"", "floormod(-7, 2)", "1"},
      {"", "floordiv(n, 0)", "floordiv(n, 0)"},
      {"", "floordiv(n, 4)*4 + floormod(n, 4)", "n"},
      {"", "floordiv(n + m, 4)*8 + floormod(n + m, 4)*2 + 1", "n*2 + m*2 + 1"},
      {"", "floordiv(n, 9)*18 + floormod(floordiv(n, 3), 3)*6 + floormod(n, 3)*2", "n*2"},
      {"", "floordiv(floormod(n, 12)*4 + m, 3)*3 + floormod(floormod(n, 12)*4 + m, 3)",
       "floormod(n, 12)*4 + m"},
      {"", "floordiv(n, 12)*4 + floordiv(floormod(n, 12), 3)", "floordiv(n, 3)"},
      {"", "floordiv(n, 12)*8 + floordiv(floormod(n, 12), 3)*2 + m", "floordiv(n, 3)*2 + m"},
      {"i < m; j < 16", "floordiv(i*16 + j, 48)*3 + floormod(i, 3)", "i"},
      {"i < m; j < 16", "floordiv(i*16 + j, 48)*48 + floormod(i, 3)*16 + j", "i*16 + j"},
      {"", "floordiv(n*32 + m, 48)*3 + floormod(n*2 + floordiv(m, 16), 3)",
       "n*2 + floordiv(m, 16)"},
      {"", "floordiv(n*32 + m, 48)*48 + floormod(n*2 + floordiv(m, 16), 3)*16 + floormod(m, 16)",
       "n*32 + m"},
      {"i < m; j < 17", "floordiv(i*16 + j, 48)*3 + floormod(i, 3)",
       "floordiv(i*16 + j, 48)*3 + floormod(i, 3)"},
      {"", "floordiv(n, 12)*3 + floordiv(floormod(n, 12), 3)",
       "floordiv(n, 12)*3 + floordiv(floormod(n, 12), 3)"},
      {"i < 8", "truncdiv(i, 2)", "floordiv(i, 2)"},
      {"i < 8", "truncmod(i, 2)", "floormod(i, 2)"},
      {"", "truncdiv(a, 2)", "truncdiv(a, 2)"},
  });
}

/// What a pass that comes last asks for: divisions in as large units as can be.
TEST(Simplify, DividesInLargerUnits) {
  const auto coarser = [](const char* division) {
    const Scene scene("i < m; j < 32", division);
    const ir::Expr result =
        analysis::coarser_division(*ir::as<ir::Binary>(scene.expr), scene.facts);
    return result ? ir::print(result) : std::string("none");
  };
  EXPECT_EQ(coarser("floordiv(i*32 + j, 192)"), "floordiv(i, 6)");
  EXPECT_EQ(coarser("floormod(i*32 + j, 192)"), "floormod(i, 6)*32 + j");
  EXPECT_EQ(coarser("floormod(i*32 + j, 48)"), "none");
  EXPECT_EQ(coarser("floordiv(i*16 + j, 192)"), "none");
  EXPECT_EQ(coarser("floordiv(i, 192)"), "none");
  EXPECT_EQ(coarser("floordiv(i*32 + j, m)"), "none");
}

TEST(Simplify, DividesBySizes) {
  expect_rows({
      {"i < m; j < n", "floordiv(i*n + j, n)", "i"},
      {"i < m; j < n", "floormod(i*n + j, n)", "j"},
      {"f < m*n", "floordiv(f, n)*n + floormod(f, n)", "f"},
      {"f < m*n", "floordiv(f, m*n)", "0"},
      {"i < m; j < n; k < l", "floordiv(i*n*l + j*l + k, l)", "i*n + j"},
      {"i < m; j < n; k < l", "floormod(floordiv((i*n + j)*l + k, l), n)", "j"},
      // With n = 0 a division gives 0, so nothing may be taken out of it.
      {"", "floordiv(m*n, n)", "floordiv(m*n, n)"},
      {"if 0 < n", "floordiv(m*n, n)", "m"},
      {"", "floordiv(m, n)*n + floormod(m, n)", "floordiv(m, n)*n + floormod(m, n)"},
  });
}

TEST(Simplify, ChoosesMinimaAndMaxima) {
  expect_rows({
      {"", "min(n, n - 1)", "n - 1"},
      {"", "max(n, 0)", "n"},
      {"", "max(a, 0)", "max(a, 0)"},
      {"", "min(min(m, n), m + 1)", "min(m, n)"},
      {"", "min(max(m, n), m)", "m"},
      {"i < n", "min(i, n - 1)", "i"},
      {"i < floordiv(n, 32)", "min(i*32 + 32, n)", "i*32 + 32"},
      {"i < floordiv(n + 31, 32)", "min(i*32 + 32, n) - i*32", "min(32, n - i*32)"},
      {"", "max(min(5, 3), 2)", "3"},
  });
}

TEST(Simplify, DecidesConditions) {
  expect_rows({
      {"i < n", "i < n", "true", "bool"},
      {"i < n", "i < n + 1 && 0 <= i", "true", "bool"},
      {"i < n", "n <= i", "false", "bool"},
      {"i < n", "i == n || i > m", "i > m", "bool"},
      {"i < n", "i + 1 < m + 1", "i < m", "bool"},
      {"i < n", "i + 3 < m + 1", "i + 2 < m", "bool"},
      {"i < m; j < 32", "i*32 + j < n", "i*32 + j < n", "bool"},
      {"i < floordiv(n, 32); j < 32", "i*32 + j < n", "true", "bool"},
      {"i < m", "i < 5 && i < 10", "i < 5", "bool"},
      {"i < m", "i < 10 && i < 5", "i < 5", "bool"},
      {"i < m", "!(i < n)", "i >= n", "bool"},
      {"i < m", "!(F[i] < 1.0)", "!(F[i] < 1.0)", "bool"},
      {"i < m; if F[i] < 1.0", "F[i] < 1.0", "true", "bool"},
      {"i < m; if F[i] == 1.0", "F[i] != 1.0", "false", "bool"},
  });
}

TEST(Simplify, ChoosesBranches) {
  expect_rows({
      {"i < n", "select(i < n, i, 0)", "i"},
      {"i < n", "if_then_else(i < m, min(i, m - 1), 0)", "if_then_else(i < m, i, 0)"},
      {"i < n", "select(i < m, n, n)", "n"},
      // Both branches of a select are computed, so the index must stay right in either case.
      {"i < n", "select(i < m, A[min(i, m - 1)], 0)", "select(i < m, A[min(i, m - 1)], 0)"},
      {"i < n", "if_then_else(i < m, A[min(i, m - 1)], 0)", "if_then_else(i < m, A[i], 0)"},
      {"i < n", "i < m && A[min(i, m - 1)] == 0", "i < m && A[min(i, m - 1)] == 0", "bool"},
  });
}

TEST(Simplify, WrapsIntegersAndLeavesFloatsAlone) {
  expect_rows({
      {"i < m", "D[i] + 1 - 1", "D[i] + 1 - 1", "int32"},
      {"", "2147483647 + 1", "-2147483648:int32", "int32"},
      {"i < m", "D[i] * 1 + 0", "D[i]", "int32"},
      {"", "200 + 100", "44:uint8", "uint8"},
      {"i < m", "F[i] + 0.0", "F[i] + 0.0", "float32"},
      {"i < m", "F[i]*1.0 - F[i]*1.0", "F[i]*1.0 - F[i]*1.0", "float32"},
      {"i < m", "float32(2)", "2.0", "float32"},
      {"i < m", "int32(300)", "300:int32", "int32"},
      // Any int64 may be in memory: what is computed from it may wrap.
      {"i < m", "A[i] + 1 - A[i]", "A[i] + 1 - A[i]"},
      {"i < m", "A[i] + 1 > A[i]", "A[i] + 1 > A[i]", "bool"},
      {"i < m", "floordiv(A[i]*4, 4)", "floordiv(A[i]*4, 4)"},
      {"i < m", "int64(D[i])*4 - int64(D[i])*3", "int64(D[i])"},
      {"i < m", "int64(U[i]) < 256", "true", "bool"},
  });
}

TEST(Simplify, TakesTimeThatGrowsWithTheExpression) {
  // Each level simplified twice would take 2^60 steps.
  std::string condition = "i < m";
  std::string number = "i";
  for (int depth = 0; depth < 60; ++depth) {
    condition = fmt::format("(({}) && D[{}] < 3 || i < n)", condition, depth);
    number = fmt::format("select({} < m && i < n, i, {})", number, depth);
  }
  const Scene conditions("i < l", condition, "bool");
  EXPECT_TRUE(analysis::simplify(conditions.expr, conditions.facts));
  const Scene numbers("i < l", number);
  EXPECT_TRUE(analysis::simplify(numbers.expr, numbers.facts));
}

TEST(Simplify, ComputesWithRampsAndBroadcasts) {
  const auto simplified = [](const char* index) {
    const ir::Kernel kernel = ir::parse("fn f(A: float32[n]) { for i in 0..n { A[" +
                                        std::string(index) + "] = broadcast(0.0, 8) } }");
    const ir::Stmt store = ir::as<ir::For>(kernel.body)->body;
    return ir::print(analysis::simplify(ir::as<ir::Store>(store)->indices[0]));
  };
  EXPECT_EQ(simplified("broadcast(i*8, 8) + ramp(0, 1, 8)"), "ramp(i*8, 1, 8)");
  EXPECT_EQ(simplified("ramp(i, 1, 8)*broadcast(n, 8)"), "ramp(i*n, n, 8)");
  EXPECT_EQ(simplified("broadcast(i, 8)*broadcast(2, 8) - ramp(0, 1, 8)"), "ramp(i*2, -1, 8)");
}

}  // namespace
}  // namespace kiln::testing
