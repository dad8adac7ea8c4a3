#include <fmt/format.h>

#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const shift_last_tiles = pass_named("shift_last_tiles").run;

void expect_left_alone(std::string_view text) { expect_unchanged(shift_last_tiles, text); }

TEST(ShiftLastTiles, TheLastTileOfAProductEndsWhereTheRowsEnd) {
  expect_becomes(shift_last_tiles,
                 R"(fn f(A: float32[1000, 64], B: float32[64, 16], C: float32[1000, 16]) {
                   for i in 0..112 {
                     for r in 0..9 unroll { if likely(i*9 + r < 1000) {
                       for j in 0..16 vectorize { C[i*9 + r, j] = 0.0 } } }
                     for k in 0..64 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
                       for j in 0..16 vectorize {
                         C[i*9 + r, j] = C[i*9 + r, j] + A[i*9 + r, k]*B[k, j] } } } } } })",
                 R"(fn f(A: float32[1000, 64], B: float32[64, 16], C: float32[1000, 16]) {
                   for i in 0..112 {
                     for r in 0..9 unroll {
                       for j in 0..16 vectorize { C[min(i*9, 991) + r, j] = 0.0 } }
                     for k in 0..64 { for r in 0..9 unroll {
                       for j in 0..16 vectorize {
                         C[min(i*9, 991) + r, j] = C[min(i*9, 991) + r, j]
                           + A[min(i*9, 991) + r, k]*B[k, j] } } } } })");
}

TEST(ShiftLastTiles, ATileMayHaveWhatItKeepsForItself) {
  expect_becomes(shift_last_tiles,
                 R"(fn f(A: float32[1000], C: float32[1000]) {
                   for i in 0..112 {
                     allocate T: float32[9] scope(local)
                     for r in 0..9 unroll { if likely(i*9 + r < 1000) { T[r] = A[i*9 + r] } }
                     for r in 0..9 unroll { if likely(i*9 + r < 1000) {
                       C[i*9 + r] = max(T[r], 0.0) } } } })",
                 R"(fn f(A: float32[1000], C: float32[1000]) {
                   for i in 0..112 {
                     allocate T: float32[9] scope(local)
                     for r in 0..9 unroll { T[r] = A[min(i*9, 991) + r] }
                     for r in 0..9 unroll { C[min(i*9, 991) + r] = max(T[r], 0.0) } } })");
}

TEST(ShiftLastTiles, OtherGuardsStay) {
  expect_becomes(shift_last_tiles,
                 R"(fn f(A: float32[1000, 50], C: float32[1000, 50]) {
                   for o in 0..4 parallel { for i in 0..112 { for r in 0..9 unroll {
                     for j in 0..16 vectorize { if likely(i*9 + r < 1000 && o*16 + j < 50) {
                       C[i*9 + r, o*16 + j] = A[i*9 + r, o*16 + j]*2.0 } } } } } })",
                 R"(fn f(A: float32[1000, 50], C: float32[1000, 50]) {
                   for o in 0..4 parallel { for i in 0..112 { for r in 0..9 unroll {
                     for j in 0..16 vectorize { if likely(o*16 + j < 50) {
                       C[min(i*9, 991) + r, o*16 + j] = A[min(i*9, 991) + r, o*16 + j]*2.0 } } } } } })");
}

TEST(ShiftLastTiles, IndicesMayGrowFasterThanTheTiles) {
  expect_becomes(shift_last_tiles,
                 R"(fn f(A: float32[1999], C: float32[1000]) {
                   for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
                     C[i*9 + r] = A[i*18 + r*2] } } } })",
                 R"(fn f(A: float32[1999], C: float32[1000]) {
                   for i in 0..112 { for r in 0..9 unroll {
                     C[min(i*9, 991) + r] = A[min(i*9, 991)*2 + r*2] } } })");
}

/// Their elements were added to before.
TEST(ShiftLastTiles, LeavesSumsAloneThatBeganElsewhere) {
  expect_left_alone(R"(fn f(A: float32[1000, 64], C: float32[1000]) {
    for i in 0..1000 { C[i] = 0.0 }
    for k in 0..64 { for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = C[i*9 + r] + A[i*9 + r, k] } } } } })");
  // The loop over k starts again only after both.
  expect_left_alone(R"(fn f(A: float32[1000, 64], C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      for k in 0..64 { C[i*9 + r] = C[i*9 + r] + A[i*9 + r, k] }
      C[i*9 + r] = 0.0 } } } })");
  // Only every other element starts.
  expect_left_alone(R"(fn f(A: float32[1000, 64], C: float32[1000, 4]) {
    for i in 0..112 {
      for r in 0..9 unroll { if likely(i*9 + r < 1000) {
        for j in 0..2 { C[i*9 + r, j*2] = 0.0 } } }
      for k in 0..64 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
        for j in 0..2 { C[i*9 + r, j] = C[i*9 + r, j] + A[i*9 + r, k] } } } } } })");
}

TEST(ShiftLastTiles, LeavesStepsThatNeedTheOneBeforeAlone) {
  expect_left_alone(R"(fn f(C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = C[max(i*9 + r - 1, 0)] + 1.0 } } } })");
}

/// (998, 1) would be stored after (999, 0), of the next tile, where both may be one element.
TEST(ShiftLastTiles, LeavesScattersAlone) {
  expect_left_alone(R"(fn f(I: int64[1000, 2], A: float32[1000, 2], C: float32[64]) {
    for i in 0..112 { for j in 0..2 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[I[i*9 + r, j]] = A[i*9 + r, j] } } } } })");
}

/// C[e] = A[e/9*9] and the like: the tile that an element belongs to is part of what it is.
TEST(ShiftLastTiles, LeavesAloneWhatDependsOnWhereTheTileBegins) {
  expect_left_alone(R"(fn f(A: float32[1008], C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = A[i*9] } } } })");
  expect_left_alone(R"(fn f(A: float32[9], C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = A[r] } } } })");
  expect_left_alone(R"(fn f(A: float32[1000], C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = if_then_else(r < 3, A[i*9 + r], 0.0) } } } })");
  expect_left_alone(R"(fn f(C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = float32(r) } } } })");
  expect_left_alone(R"(fn f(A: float32[112, 9], C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = A[i, r] } } } })");
}

/// A tile inside of a tile: both ends are guarded.
TEST(ShiftLastTiles, LeavesAloneWhatOtherGuardsCutToo) {
  expect_left_alone(R"(fn f(A: float32[n], C: float32[n]) {
    for i in 0..112 { for r in 0..9 unroll { for o in 0..floordiv(n + 999, 1000) {
      if likely(i*9 + r < 1000 && o*1000 + i*9 + r < n) {
        C[o*1000 + i*9 + r] = A[o*1000 + i*9 + r] } } } } })");
}

/// What was floormod(i*8 + r + k, 8): tiles began at multiples of 8.
TEST(ShiftLastTiles, LeavesAloneWhatWasSimplifiedByWhereTilesBegin) {
  expect_left_alone(R"(fn f(A: float32[8, 4], C: float32[1003, 4]) {
    for i in 0..126 { for r in 0..8 unroll { if likely(i*8 + r < 1003) {
      for k in 0..4 { C[i*8 + r, k] = A[floormod(r + k, 8), k] } } } } })");
}

TEST(ShiftLastTiles, LeavesAloneWhatElementsOfATileShare) {
  expect_left_alone(R"(fn f(A: float32[1000], C: float32[1000]) {
    for i in 0..112 {
      allocate T: float32[9] scope(local)
      for r in 0..9 unroll { if likely(i*9 + r < 1000) { T[r] = A[i*9 + r] } }
      for r in 0..9 unroll { if likely(i*9 + r < 1000) { C[i*9 + r] = T[0] } } } })");
  expect_left_alone(R"(fn f(A: float32[1000], C: float32[1000]) {
    for i in 0..112 {
      allocate T: float32[1] scope(local)
      for r in 0..9 unroll { if likely(i*9 + r < 1000) { T[0] = A[i*9 + r] } }
      for r in 0..9 unroll { if likely(i*9 + r < 1000) { C[i*9 + r] = T[0] } } } })");
  expect_left_alone(R"(fn f(A: float32[1000], C: float32[1000]) {
    for i in 0..112 {
      allocate T: float32[9, 9] scope(local)
      for r in 0..9 unroll { if likely(i*9 + r < 1000) { T[r, 0] = A[i*9 + r] } }
      for r in 0..9 unroll { if likely(i*9 + r < 1000) { C[i*9 + r] = T[0, r] } } } })");
}

/// Outside of the guard, the last tile has elements that there are not.
TEST(ShiftLastTiles, LeavesAloneWhatNoGuardCuts) {
  expect_left_alone(R"(fn f(A: float32[1008], T: float32[1008], C: float32[1000]) {
    for i in 0..112 {
      for r in 0..9 unroll { T[i*9 + r] = A[i*9 + r] }
      for r in 0..9 unroll { if likely(i*9 + r < 1000) { C[i*9 + r] = A[i*9 + r] } } } })");
  expect_left_alone(R"(fn f(A: float32[1008], C: float32[1000]) {
    for i in 0..112 { for r in 0..9 unroll {
      if likely(i*9 + r < 1000) { C[i*9 + r] = 1.0 } else { C[0] = 2.0 } } } })");
  expect_left_alone(R"(fn f(A: float32[1000], C: float32[1000]) {
    for i in 0..112 { for r in 0..10 unroll { if likely(i*9 + r < 1000) {
      C[i*9 + r] = A[i*9 + r] } } } })");
}

TEST(ShiftLastTiles, LeavesAloneWhatGainsNothing) {
  const auto copy = [](std::string_view loop, std::string_view kind, int count) {
    return fmt::format(R"(fn f(A: float32[{2}], C: float32[{2}]) {{
      for i in 0..{0} {{ for r in 0..9 {1} {{ if likely(i*9 + r < {2}) {{
        C[i*9 + r] = A[i*9 + r] }} }} }} }})",
                       loop, kind, count);
  };
  expect_left_alone(copy("112 parallel", "unroll", 1000));  // two threads, the same elements
  expect_left_alone(copy("112", "vectorize", 1000));        // little code
  expect_left_alone(copy("47", "unroll", 416));             // 7 of 416 twice are more than a 64th
  expect_left_alone(copy("1", "unroll", 7));                // no tile is full
  expect_left_alone(copy("111", "unroll", 999));            // all are
  const ir::Kernel kernel = run_pass(shift_last_tiles, copy("112", "unroll", 1000));
  EXPECT_NE(ir::print(kernel).find("min"), std::string::npos);
}

}  // namespace
}  // namespace kiln::testing
