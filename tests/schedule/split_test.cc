#include <gtest/gtest.h>

#include "tests/schedule/kernels.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

TEST(Split, GuardsTheLastTile) {
  AddOne k;
  k.te.split(k.B, "j", 32);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i in 0..n {
    for j.outer in 0..floordiv(m + 31, 32) {
      for j.inner in 0..32 {
        if likely(j.outer*32 + j.inner < m) {
          B[i, j.outer*32 + j.inner] = A[i, j.outer*32 + j.inner] + 1.0
        }
      }
    }
  }
}
)");
}

TEST(Split, NeedsNoGuardWhenTheFactorDivides) {
  Matmul k(64, 64, 64);
  k.te.split(k.C, "j", 16);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[64, 64], B: float32[64, 64], C: float32[64, 64]) {
  for i in 0..64 {
    for j.outer in 0..4 {
      for j.inner in 0..16 {
        C[i, j.outer*16 + j.inner] = 0.0
        for k in 0..64 {
          C[i, j.outer*16 + j.inner] = C[i, j.outer*16 + j.inner] + A[i, k]*B[k, j.outer*16 + j.inner]
        }
      }
    }
  }
}
)");
}

TEST(Split, TakesTheNumberOfParts) {
  AddOne k;
  k.te.split_parts(k.B, "i", 4);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i.outer in 0..4 {
    for i.inner in 0..floordiv(n + 3, 4) {
      if likely(i.outer*floordiv(n + 3, 4) + i.inner < n) {
        for j in 0..m {
          B[i.outer*floordiv(n + 3, 4) + i.inner, j] = A[i.outer*floordiv(n + 3, 4) + i.inner, j] + 1.0
        }
      }
    }
  }
}
)");
}

TEST(Split, GuardsAReductionAxisInTheUpdateOnly) {
  RowSum k;
  k.te.split(k.B, "k", 4);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n]) {
  for i in 0..n {
    B[i] = 0.0
    for k.outer in 0..floordiv(m + 3, 4) {
      for k.inner in 0..4 {
        if likely(k.outer*4 + k.inner < m) {
          B[i] = B[i] + A[i, k.outer*4 + k.inner]
        }
      }
    }
  }
}
)");
}

TEST(Split, NeedsOneGuardForASplitOfAnOuterPart) {
  AddOne k;
  k.te.split(k.B, "j", 32);
  k.te.split(k.B, "j.outer", 8);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i in 0..n {
    for j.outer.outer in 0..floordiv(m + 255, 256) {
      for j.outer.inner in 0..8 {
        for j.inner in 0..32 {
          if likely(j.outer.outer*256 + j.outer.inner*32 + j.inner < m) {
            B[i, j.outer.outer*256 + j.outer.inner*32 + j.inner] = A[i, j.outer.outer*256 + j.outer.inner*32 + j.inner] + 1.0
          }
        }
      }
    }
  }
}
)");
}

TEST(Split, GuardsAnInnerPartOfItsOwn) {
  AddOne k;
  k.te.split(k.B, "j", 32);
  k.te.split(k.B, "j.inner", 5);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[n, m], B: float32[n, m]) {
  for i in 0..n {
    for j.outer in 0..floordiv(m + 31, 32) {
      for j.inner.outer in 0..7 {
        for j.inner.inner in 0..5 {
          if likely(j.outer*32 + j.inner.outer*5 + j.inner.inner < m) {
            if likely(j.inner.outer*5 + j.inner.inner < 32) {
              B[i, j.outer*32 + j.inner.outer*5 + j.inner.inner] = A[i, j.outer*32 + j.inner.outer*5 + j.inner.inner] + 1.0
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(Split, MayBeLargerThanTheAxis) {
  Matmul k(3, 4, 5);
  k.te.split(k.C, "i", 8);
  EXPECT_EQ(k.te.lowered(), R"(fn k(A: float32[3, 5], B: float32[5, 4], C: float32[3, 4]) {
  for i.inner in 0..8 {
    if likely(i.inner < 3) {
      for j in 0..4 {
        C[i.inner, j] = 0.0
        for k in 0..5 {
          C[i.inner, j] = C[i.inner, j] + A[i.inner, k]*B[k, j]
        }
      }
    }
  }
}
)");
}

TEST(Split, RejectsAFactorOfZero) {
  RowSum k;
  k.te.split(k.B, "k", 0);
  const Error error = expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
                                   "split(k, factor=0): the factor must be at least 1");
  EXPECT_EQ(error.reason(), "SPLIT_FACTOR");
  EXPECT_EQ(error.notes(), std::vector<std::string>{"at step 1: split(k, factor=0)"});
  EXPECT_EQ(error.location().file, "kernel.py");
  EXPECT_EQ(error.location().line, 10);
}

TEST(Split, RejectsAnAxisThatIsGone) {
  AddOne k;
  k.te.split(k.B, "i", 4);
  k.te.schedule.steps.push_back(k.te.schedule.steps[0]);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "axis i was split into i.outer, i.inner at line 10");
}

TEST(Split, RejectsALoopThatRunsInASpecialWay) {
  AddOne k;
  k.te.parallel(k.B, "i");
  k.te.split(k.B, "i", 4);
  expect_error([&] { k.te.build(); }, ErrorKind::InvalidArgument,
               "axis i was made parallel at line 10; split it before that");
}

}  // namespace
}  // namespace kiln::testing
