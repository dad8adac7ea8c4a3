/// Automatic schedules of what walks down columns, and of what turns them into rows.

#include <gtest/gtest.h>

#include "compiler/autoschedule/choose/choose_schedule.h"
#include "compiler/language/text/text.h"
#include "compiler/lower.h"
#include "tests/schedule/kernels.h"

namespace kiln::testing {
namespace {

TEST(ChooseSchedule, SumsColumnsSideBySide) {
  Te te;
  const TeExpr n = te.var("n");
  const TeExpr m = te.var("m");
  const TeTensor A = te.placeholder("A", {n, m});
  const TeExpr k = te.reduce_axis("k", te.integer(0), n);
  const TeTensor B = te.compute("B", "j", {m}, [&](auto v) { return te.sum(A(k, v[0]), {k}); });
  te.arguments({A, B});
  EXPECT_EQ(te.automatic(), R"(fn k(A: float32[n, m], B: float32[m]) {
  for j.outer in 0..floordiv(m + 511, 512) parallel {
    for j.inner.outer in 0..16 {
      for j.inner.inner in 0..32 vectorize {
        if likely(j.outer*512 + j.inner.outer*32 + j.inner.inner < m) {
          B[j.outer*512 + j.inner.outer*32 + j.inner.inner] = 0.0
        }
      }
    }
    for k in 0..n {
      for j.inner.outer_1 in 0..16 {
        for j.inner.inner_1 in 0..32 vectorize {
          if likely(j.outer*512 + j.inner.outer_1*32 + j.inner.inner_1 < m) {
            B[j.outer*512 + j.inner.outer_1*32 + j.inner.inner_1] = B[j.outer*512 + j.inner.outer_1*32 + j.inner.inner_1] + A[k, j.outer*512 + j.inner.outer_1*32 + j.inner.inner_1]
          }
        }
      }
    }
  }
}
)");
}

/// Every other element is still gathered faster than sums wait for each other.
TEST(ChooseSchedule, SumsElementsAFewApartInVectors) {
  const auto loops_of_sum = [](int64_t apart) {
    Te te;
    const TeTensor A = te.placeholder("A", {te.integer(48), te.integer(640)});
    const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(128));
    const TeTensor B = te.compute("B", "i", {te.integer(48)},
                                  [&](auto v) { return te.sum(A(v[0], k * apart), {k}); });
    te.arguments({A, B});
    return te.automatic();
  };
  EXPECT_NE(loops_of_sum(2).find("in 0..32 vectorize"), std::string::npos) << loops_of_sum(2);
  EXPECT_NE(loops_of_sum(4).find("in 0..32 vectorize"), std::string::npos) << loops_of_sum(4);
  EXPECT_EQ(loops_of_sum(5).find("vectorize"), std::string::npos) << loops_of_sum(5);
}

/// Whether a product of 784 rows that lie side by side has its rows in vectors, and is transposed.
bool has_rows_last(int64_t columns) {
  Te te;
  const TeTensor A = te.placeholder("A", {te.integer(1000), te.integer(784)});
  const TeTensor B = te.placeholder("B", {te.integer(1000), te.integer(columns)});
  const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(1000));
  const TeTensor C = te.compute("C", "i", {te.integer(784), te.integer(columns)},
                                [&](auto v) { return te.sum(A(k, v[0]) * B(k, v[1]), {k}); });
  te.arguments({A, B, C});
  return te.automatic().find("allocate C.global") != std::string::npos;
}

TEST(ChooseSchedule, TransposesAProductOfFewColumns) {
  EXPECT_TRUE(has_rows_last(10));
  EXPECT_FALSE(has_rows_last(32));
  EXPECT_FALSE(has_rows_last(256));
}

TEST(ChooseSchedule, ReadsSeveralLargeRowsAtOnce) {
  Te te;
  const TeExpr n = te.integer(1024);
  const TeTensor A = te.placeholder("A", {n, te.integer(4096)});
  const TeExpr k = te.reduce_axis("k", te.integer(0), te.integer(4096));
  const TeTensor B = te.compute("B", "i", {n}, [&](auto v) { return te.sum(A(v[0], k), {k}); });
  te.arguments({A, B});
  EXPECT_EQ(te.automatic(), R"(fn k(A: float32[1024, 4096], B: float32[1024]) {
  for i.outer in 0..256 parallel {
    for i.inner in 0..4 unroll {
      B[i.outer*4 + i.inner] = 0.0
    }
    for k.outer in 0..64 {
      for i.inner_1 in 0..4 unroll {
        for k.inner in 0..64 vectorize {
          B[i.outer*4 + i.inner_1] = B[i.outer*4 + i.inner_1] + A[i.outer*4 + i.inner_1, k.outer*64 + k.inner]
        }
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, GivesEachCoreColumnsOfAScan) {
  Cumsum k;
  EXPECT_EQ(k.te.automatic(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i.outer in 0..floordiv(n + 511, 512) parallel {
    for i.inner.outer in 0..8 {
      for i.inner.inner in 0..64 vectorize {
        if likely(i.outer*512 + i.inner.outer*64 + i.inner.inner < n) {
          scan[0, i.outer*512 + i.inner.outer*64 + i.inner.inner] = X[0, i.outer*512 + i.inner.outer*64 + i.inner.inner]
        }
      }
    }
    for scan.idx in 0..m - 1 {
      for i.inner.outer_1 in 0..8 {
        for i.inner.inner_1 in 0..64 vectorize {
          if likely(i.outer*512 + i.inner.outer_1*64 + i.inner.inner_1 < n) {
            scan[scan.idx + 1, i.outer*512 + i.inner.outer_1*64 + i.inner.inner_1] = scan[scan.idx, i.outer*512 + i.inner.outer_1*64 + i.inner.inner_1] + X[scan.idx + 1, i.outer*512 + i.inner.outer_1*64 + i.inner.inner_1]
          }
        }
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, GivesEachCoreItsPartOfACell) {
  TwoStageScan k;
  EXPECT_EQ(k.te.automatic(), R"(fn k(X: float32[m, n], scan: float32[m, n]) {
  for i.outer in 0..floordiv(n + 511, 512) parallel {
    for i.inner.outer in 0..8 {
      for i.inner.inner in 0..64 vectorize {
        if likely(i.outer*512 + i.inner.outer*64 + i.inner.inner < n) {
          scan[0, i.outer*512 + i.inner.outer*64 + i.inner.inner] = X[0, i.outer*512 + i.inner.outer*64 + i.inner.inner]
        }
      }
    }
    for scan.idx in 0..m - 1 {
      allocate s1: float32[1, 512] scope(global)
      for i.inner.outer_1 in 0..8 {
        for i.inner.inner_1 in 0..64 vectorize {
          if likely(i.outer*512 + i.inner.outer_1*64 + i.inner.inner_1 < n) {
            s1[0, i.inner.outer_1*64 + i.inner.inner_1] = scan[scan.idx, i.outer*512 + i.inner.outer_1*64 + i.inner.inner_1]*2.0
          }
        }
      }
      for i.inner.outer_2 in 0..8 {
        for i.inner.inner_2 in 0..64 vectorize {
          if likely(i.outer*512 + i.inner.outer_2*64 + i.inner.inner_2 < n) {
            scan[scan.idx + 1, i.outer*512 + i.inner.outer_2*64 + i.inner.inner_2] = s1[0, i.inner.outer_2*64 + i.inner.inner_2] + X[scan.idx + 1, i.outer*512 + i.inner.outer_2*64 + i.inner.inner_2]
          }
        }
      }
    }
  }
}
)");
}

TEST(ChooseSchedule, TurnsBlocksOfWhatIsReadInAnotherOrderOfAxes) {
  Te te;
  const TeTensor A = te.placeholder("A", {te.integer(176), te.integer(146), te.integer(32)});
  const TeTensor B = te.placeholder("B", {te.integer(32), te.integer(176), te.integer(145)});
  const TeTensor C =
      te.compute("C", "i j k", {te.integer(32), te.integer(176), te.integer(145)}, [&](auto v) {
        return te.op(Operator::Mul, {A(v[1], v[2], v[0]), B(v[0], v[1], v[2])});
      });
  te.arguments({A, B, C});
  EXPECT_EQ(te.automatic(),
            R"(fn k(A: float32[176, 146, 32], B: float32[32, 176, 145], C: float32[32, 176, 145]) {
  for j in 0..176 parallel {
    for k.outer in 0..10 {
      for i.outer in 0..2 {
        allocate A.local: float32[1, 1, 1, 16, 16] scope(local)
        for k.inner.inner in 0..16 unroll {
          if likely(k.outer*16 + k.inner.inner < 145) {
            for i.inner.inner in 0..16 vectorize {
              A.local[0, 0, 0, i.inner.inner, k.inner.inner] = A[j, k.outer*16 + k.inner.inner, i.outer*16 + i.inner.inner]
            }
          }
        }
        for i.inner in 0..16 {
          for k.inner in 0..16 vectorize {
            if likely(k.outer*16 + k.inner < 145) {
              C[i.outer*16 + i.inner, j, k.outer*16 + k.inner] = A.local[0, 0, 0, i.inner, k.inner]*B[i.outer*16 + i.inner, j, k.outer*16 + k.inner]
            }
          }
        }
      }
    }
  }
}
)");
}

/// Of axes that go on into each other, as lines of an image, whose pixels are one line of it.
TEST(ChooseSchedule, TurnsBlocksOfAnImageAsOfOneLine) {
  const auto turned = [](int64_t width, int64_t channels) {
    Te te;
    const TeTensor X = te.placeholder(
        "X", {te.integer(8), te.integer(30), te.integer(width), te.integer(channels)});
    const TeTensor Y = te.compute(
        "Y", "n c h w", {te.integer(8), te.integer(channels), te.integer(30), te.integer(30)},
        [&](auto v) { return X(v[0], v[2], v[3], v[1]); });
    te.arguments({X, Y});
    return te.automatic();
  };
  const auto has = [](const std::string& loops, std::string_view part) {
    return loops.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(turned(30, 64), "for h.w.fused.outer in")) << turned(30, 64);
  EXPECT_TRUE(has(turned(30, 64), "allocate X.local")) << turned(30, 64);
  // Lines that have more pixels are apart, and colours do not fill a square.
  EXPECT_FALSE(has(turned(31, 64), "h.w.fused")) << turned(31, 64);
  EXPECT_FALSE(has(turned(30, 3), "allocate X.local")) << turned(30, 3);
}

TEST(ChooseSchedule, TurnsBlocksOfATranspose) {
  Te te;
  const TeTensor A = te.placeholder("A", {te.integer(320), te.integer(160)});
  const TeTensor B = te.compute("B", "i j", {te.integer(160), te.integer(320)},
                                [&](auto v) { return A(v[1], v[0]); });
  te.arguments({A, B});
  EXPECT_EQ(te.automatic(), R"(fn k(A: float32[320, 160], B: float32[160, 320]) {
  for j.outer in 0..5 parallel {
    for i.outer in 0..10 parallel {
      allocate A.local: float32[1, 1, 16, 64] scope(local)
      for j.inner.outer in 0..4 {
        for j.inner.inner in 0..16 unroll {
          for i.inner.inner in 0..16 vectorize {
            A.local[0, 0, i.inner.inner, j.inner.outer*16 + j.inner.inner] = A[j.outer*64 + j.inner.outer*16 + j.inner.inner, i.outer*16 + i.inner.inner]
          }
        }
      }
      for i.inner in 0..16 {
        for j.inner in 0..64 vectorize {
          B[i.outer*16 + i.inner, j.outer*64 + j.inner] = A.local[0, 0, i.inner, j.inner]
        }
      }
    }
  }
}
)");
}

/// A copy in the order of loops has one place, which each iteration reads.
TEST(ChooseSchedule, TurnsWhatIsReadAtOnePlaceAlone) {
  const auto loops = [](std::string_view body) {
    const std::string text =
        "kernel k(X: float32[300, 300]) -> (Y: float32[300, 299]) { Y[i, j] = " +
        std::string(body) + " }";
    const language::Kernel kernel = language::parse_text(text, "test.kiln").at(0).kernel;
    const Target target{.kind = TargetKind::Llvm};
    return lowered_text(kernel, choose_schedule(kernel, {}, target, {}), target, {}, "");
  };
  EXPECT_NE(loops("X[j, i] * 2.0").find("X.local"), std::string::npos);
  EXPECT_NE(loops("X[j, i] * X[j, i]").find("X.local"), std::string::npos);
  for (const char* body : {"X[i, j] + X[j, i]", "X[j, i] + X[j + 1, i]", "X[j, i] * X[j, j]",
                           "if_then_else(i > 0, X[j, i], 0.0)"})
    EXPECT_EQ(loops(body).find("X.local"), std::string::npos) << body;
}

TEST(ChooseSchedule, RunsSeveralRowsOfAScanAlongThem) {
  Te te;
  const TeExpr n = te.integer(64);
  const TeExpr m = te.integer(1024);
  const TeTensor X = te.placeholder("X", {n, m});
  const TeTensor state = te.placeholder("state", {n, m});
  const TeTensor init =
      te.compute("init", "i t", {n, te.integer(1)}, [&](auto v) { return X(v[0], te.integer(0)); });
  const TeTensor update = te.compute("update", "i t", {n, m}, [&](auto v) {
    return state(v[0], v[1] - te.integer(1)) + X(v[0], v[1]);
  });
  const auto scan = te.scan("scan", {init}, {update}, {state}, m, Te::Time{.dimension = 1});
  te.arguments({X, scan[0]});
  EXPECT_EQ(te.automatic(), R"(fn k(X: float32[64, 1024], scan: float32[64, 1024]) {
  for i.outer in 0..16 parallel {
    for i.inner in 0..4 unroll {
      scan[i.outer*4 + i.inner, 0] = X[i.outer*4 + i.inner, 0]
    }
    for scan.idx in 0..1023 {
      for i.inner_1 in 0..4 unroll {
        scan[i.outer*4 + i.inner_1, scan.idx + 1] = scan[i.outer*4 + i.inner_1, scan.idx] + X[i.outer*4 + i.inner_1, scan.idx + 1]
      }
    }
  }
}
)");
}

}  // namespace
}  // namespace kiln::testing
