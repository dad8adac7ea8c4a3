#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "tests/passes/pass_test.h"

namespace kiln::testing {
namespace {

PassFunction* const fill_tiles = pass_named("fill_tiles").run;

TEST(FillTiles, FetchesTheLastElementForThoseBeyondTheEnd) {
  expect_becomes(fill_tiles,
                 R"(fn f(A: float32[n], C: float32[n]) {
                   for b in 0..floordiv(n + 63, 64) bind(blockIdx.x) {
                     allocate s: float32[64] scope(shared)
                     for t in 0..64 bind(threadIdx.x) {
                       if likely(b*64 + t < n) { s[t] = A[b*64 + t] }
                       if likely(b*64 + t < n) { C[b*64 + t] = s[t] } } } })",
                 R"(fn f(A: float32[n], C: float32[n]) {
                   for b in 0..floordiv(n + 63, 64) bind(blockIdx.x) {
                     allocate s: float32[64] scope(shared)
                     for t in 0..64 bind(threadIdx.x) {
                       if likely(0 < n) { s[t] = A[min(b*64 + t, n - 1)] }
                       if likely(b*64 + t < n) { C[b*64 + t] = s[t] } } } })",
                 kCuda);
}

TEST(FillTiles, AddsUpWhatNobodyNeedsAndKeepsTheGuardOfTheSum) {
  expect_becomes(fill_tiles,
                 R"(fn f(A: float32[100], C: float32[100]) {
                   for b in 0..13 bind(blockIdx.x) {
                     allocate c: float32[2, 4] scope(local)
                     allocate s: float32[16] scope(shared)
                     for g in 0..2 { for i in 0..4 {
                       if likely(b*8 + g*4 + i < 100) { c[g, i] = 0.0 } } }
                     for k in 0..7 {
                       for t in 0..16 { if likely(k*16 + t < 100) { s[t] = A[k*16 + t] } }
                       for j in 0..16 { if likely(k*16 + j < 100) {
                         for g in 0..2 { for i in 0..4 {
                           if likely(b*8 + g*4 + i < 100) { c[g, i] = c[g, i] + s[j] } } } } } }
                     for g in 0..2 { for i in 0..4 {
                       if likely(b*8 + g*4 + i < 100) { C[b*8 + g*4 + i] = c[g, i] } } } } })",
                 R"(fn f(A: float32[100], C: float32[100]) {
                   for b in 0..13 bind(blockIdx.x) {
                     allocate c: float32[2, 4] scope(local)
                     allocate s: float32[16] scope(shared)
                     for g in 0..2 { for i in 0..4 { c[g, i] = 0.0 } }
                     for k in 0..7 {
                       for t in 0..16 { if likely(k*16 + t < 100) { s[t] = A[k*16 + t] } }
                       for j in 0..16 { if likely(k*16 + j < 100) {
                         for g in 0..2 { for i in 0..4 { c[g, i] = c[g, i] + s[j] } } } } }
                     for g in 0..2 { for i in 0..4 {
                       if likely(b*8 + g*4 + i < 100) { C[b*8 + g*4 + i] = c[g, i] } } } } })",
                 kCuda);
}

/// What waits in registers of a thread, whose neighbours are in one row.
TEST(FillTiles, FetchesRowsThroughRegisters) {
  const auto text = [](std::string_view first, std::string_view second) {
    return fmt::format(R"(fn f(A: float32[100, 32], C: float32[100]) {{
                   for b in 0..2 bind(blockIdx.x) {{
                     allocate s: float32[64, 32] scope(shared)
                     for t in 0..32 bind(threadIdx.x) {{
                       allocate next: float32[16, 4] scope(local)
                       for o in 0..16 {{ for v in 0..4 vectorize {{ {} }} }}
                       for p in 0..16 {{ for w in 0..4 vectorize {{ {} }} }}
                       if likely(b*64 + t < 100) {{ C[b*64 + t] = s[t, 0] }} }} }} }})",
                       first, second);
  };
  constexpr std::string_view kStored =
      "s[p*4 + floordiv(t*4 + w, 32), floormod(t*4 + w, 32)] = next[p, w]";
  expect_becomes(
      fill_tiles,
      text("if likely(b*64 + o*4 + floordiv(t*4 + v, 32) < 100) {"
           " next[o, v] = A[b*64 + o*4 + floordiv(t*4 + v, 32), floormod(t*4 + v, 32)] }",
           fmt::format("if likely(b*64 + p*4 + floordiv(t*4 + w, 32) < 100) {{ {} }}", kStored)),
      text("next[o, v] = A[min(b*64 + o*4 + floordiv(t*4 + v, 32), 99), floormod(t*4 + v, 32)]",
           kStored),
      kCuda);
}

/// Two images of 7 x 7: 98 places.
TEST(FillTiles, FetchesTheLastElementOfAPlaceOfSeveralAxes) {
  expect_becomes(fill_tiles,
                 R"(fn f(X: float32[2, 7, 7]) { for b in 0..2 bind(blockIdx.x) {
                   allocate s: float32[16, 4] scope(shared)
                   for t in 0..16 bind(threadIdx.x) { for i in 0..4 {
                     if likely(b*64 + t*4 + i < 98) {
                       s[t, i] = X[floordiv(b*64 + t*4 + i, 49), floormod(floordiv(b*64 + t*4 + i, 7), 7),
                                   floormod(b*64 + t*4 + i, 7)] } } } } })",
                 R"(fn f(X: float32[2, 7, 7]) { for b in 0..2 bind(blockIdx.x) {
                   allocate s: float32[16, 4] scope(shared)
                   for t in 0..16 bind(threadIdx.x) { for i in 0..4 {
                     s[t, i] = X[floordiv(min(b*64 + t*4 + i, 97), 49),
                                 floormod(floordiv(min(b*64 + t*4 + i, 97), 7), 7),
                                 floormod(min(b*64 + t*4 + i, 97), 7)] } } } })",
                 kCuda);
}

/// The condition says which elements are there, so that it must be that of the place.
TEST(FillTiles, FetchesPaddingBeyondTheEnd) {
  expect_becomes(fill_tiles,
                 R"(fn f(X: float32[2, 7]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) { if likely(b*32 + t < 18) {
                     s[t] = if_then_else(floormod(b*32 + t, 9) >= 1 && floormod(b*32 + t, 9) < 8,
                                         X[floordiv(b*32 + t, 9), floormod(b*32 + t, 9) - 1], 0.0) } } } })",
                 R"(fn f(X: float32[2, 7]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[32] scope(shared)
                   for t in 0..32 bind(threadIdx.x) {
                     s[t] = if_then_else(floormod(min(b*32 + t, 17), 9) >= 1
                                         && floormod(min(b*32 + t, 17), 9) < 8,
                                         X[floordiv(min(b*32 + t, 17), 9),
                                           floormod(min(b*32 + t, 17), 9) - 1], 0.0) } } })",
                 kCuda);
}

/// What the guard of s is about is not seen, so that what reads s keeps the guard with that limit.
TEST(FillTiles, KeepsTheGuardOfWhatReadsATileThatIsNotFilled) {
  expect_becomes(fill_tiles,
                 R"(fn f(C: float32[n]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[16] scope(shared)
                   allocate c: float32[16] scope(local)
                   for t in 0..16 bind(threadIdx.x) {
                     if likely(t < n) { c[t] = 0.0 }
                     if likely(floormod(t*5, 16) < n) { s[t] = 1.0 }
                     if likely(t < n) { c[t] = c[t] + s[t] } } } })",
                 R"(fn f(C: float32[n]) { for b in 0..1 bind(blockIdx.x) {
                   allocate s: float32[16] scope(shared)
                   allocate c: float32[16] scope(local)
                   for t in 0..16 bind(threadIdx.x) {
                     c[t] = 0.0
                     if likely(floormod(t*5, 16) < n) { s[t] = 1.0 }
                     if likely(t < n) { c[t] = c[t] + s[t] } } } })",
                 kCuda);
}

/// Rows and steps of a sum may be as many by chance; the sum is in parts here, and so has a guard
/// of its own.
TEST(FillTiles, TellsRowsFromStepsOfTheSameNumber) {
  const auto loops = [](std::string_view rows, std::string_view row) {
    const std::string open = rows.empty() ? "" : fmt::format("if likely({}) {{ ", rows);
    const std::string close = rows.empty() ? "" : " }";
    return fmt::format(R"(fn f(A: float32[100, 100], C: float32[2, 100]) {{
        for p in 0..2 bind(blockIdx.y) {{ for b in 0..2 bind(blockIdx.x) {{
          allocate s: float32[64, 8] scope(shared)
          for t in 0..64 bind(threadIdx.x) {{
            allocate c: float32[1] scope(local)
            {0}c[0] = 0.0{1}
            for k in 0..7 {{
              for e in 0..8 {{ {0}if likely(p*50 + k*8 + e < 100) {{
                s[t, e] = A[{2}, p*50 + k*8 + e] }}{1} }}
              for e_1 in 0..8 {{ if likely(k*8 + e_1 < 50) {{
                {0}c[0] = c[0] + s[t, e_1]{1} }} }} }}
            if likely(b*64 + t < 100) {{ C[p, b*64 + t] = c[0] }} }} }} }} }})",
                       open, close, row);
  };
  expect_becomes(fill_tiles, loops("b*64 + t < 100", "b*64 + t"), loops("", "min(b*64 + t, 99)"),
                 kCuda);
}

TEST(FillTiles, KeepsVectorsWhole) {
  expect_becomes(fill_tiles,
                 R"(fn f(A: float32[100]) { for b in 0..2 bind(blockIdx.x) {
                   allocate s: float32[64] scope(shared)
                   for t in 0..16 bind(threadIdx.x) { for v in 0..4 vectorize {
                     if likely(b*64 + t*4 + v < 100) { s[t*4 + v] = A[b*64 + t*4 + v] } } } } })",
                 R"(fn f(A: float32[100]) { for b in 0..2 bind(blockIdx.x) {
                   allocate s: float32[64] scope(shared)
                   for t in 0..16 bind(threadIdx.x) { for v in 0..4 vectorize {
                     s[t*4 + v] = A[min(b*64 + t*4, 96) + v] } } } })",
                 kCuda);
}

TEST(FillTiles, KeepsVectorsOfSeveralLinesWhole) {
  expect_becomes(fill_tiles,
                 R"(fn f(A: float32[8, 100]) { for b in 0..2 bind(blockIdx.x) {
                   allocate s: float32[8, 64] scope(shared)
                   for t in 0..128 bind(threadIdx.x) { for v in 0..4 vectorize {
                     if likely(b*64 + floormod(t*4 + v, 64) < 100) {
                       s[floordiv(t*4 + v, 64), floormod(t*4 + v, 64)] =
                         A[floordiv(t*4 + v, 64), b*64 + floormod(t*4 + v, 64)] } } } } })",
                 R"(fn f(A: float32[8, 100]) { for b in 0..2 bind(blockIdx.x) {
                   allocate s: float32[8, 64] scope(shared)
                   for t in 0..128 bind(threadIdx.x) { for v in 0..4 vectorize {
                     s[floordiv(t*4 + v, 64), floormod(t*4 + v, 64)] =
                       A[floordiv(t*4 + v, 64), min(b*64 + floormod(t, 16)*4, 96) + v] } } } })",
                 kCuda);
}

TEST(FillTilesLeaves, WhatIsThereBeforeOneStoreAlone) {
  expect_unchanged(fill_tiles, R"(fn f(A: float32[100], C: float32[128]) {
    for b in 0..2 bind(blockIdx.x) {
      allocate s: float32[64] scope(local)
      for t in 0..64 { s[t] = 1.0 }
      for t in 0..64 { if likely(b*64 + t < 100) { s[t] = A[b*64 + t] } }
      for t in 0..64 { C[b*64 + t] = s[t] } } })");
}

/// Rows of ten numbers in twelve places, and a copy of parts of one.
constexpr std::string_view kRows = R"(fn f(A: float32[5, 10], C: float32[8]) {{
    allocate R: float32[5, 3, 4] scope(global)
    for b in 0..2 bind(blockIdx.x) {{ for i in 0..4 bind(threadIdx.x) {{
      if likely(b*4 + i < 5) {{ for l in 0..3 {{ for p in 0..4 {{
        {0} }} }} }} }} }}
    for c in 0..1 bind(blockIdx.x) {{
      allocate s: float32[2, 4] scope(shared)
      for k in 0..2 {{
        for t in 0..4 {{ {1} }}
        {2} }} {3} }} }})";
constexpr std::string_view kGuarded =
    "if likely(l*4 + p < 10) { R[b*4 + i, l, p] = A[b*4 + i, l*4 + p] }";
constexpr std::string_view kFilled = "R[b*4 + i, l, p] = A[b*4 + i, min(l*4 + p, 9)]";
constexpr std::string_view kRead = "for t in 0..4 { C[k*4 + t] = s[floormod(k, 2), t] }";

std::string copy_of(std::string_view place, int end) {
  return fmt::format("if likely({} < {}) {{ s[floormod(k + 1, 2), t] = R[0, k + 1, t] }}", place,
                     end);
}

TEST(FillTiles, FillsRowsThatAreLongerThanWhatIsInThem) {
  expect_becomes(
      fill_tiles, fmt::format(kRows, kGuarded, copy_of("k*4 + t", 6), kRead, ""),
      fmt::format(kRows, kFilled, "s[floormod(k + 1, 2), t] = R[0, k + 1, t]", kRead, ""), kCuda);
}

/// Parts of a row are whole vectors then.
TEST(FillTiles, ReadsFilledRowsAsTheyLie) {
  const std::string_view kernel = R"(fn f(A: float32[5, 3], C: float32[8]) {{
    allocate R: float32[5, 4] scope(global)
    for b in 0..5 bind(blockIdx.x) {{ for p in 0..4 {{ {0} }} }}
    for c in 0..5 bind(blockIdx.x) {{
      allocate s: float32[4] scope(shared)
      for t in 0..4 {{ {1} }}
      for t in 0..3 {{ C[t] = s[t] }} }} }})";
  expect_becomes(fill_tiles,
                 fmt::format(fmt::runtime(kernel), "if likely(p < 3) { R[b, p] = A[b, p] }",
                             "if likely(t < 3) { s[t] = R[c, t] }"),
                 fmt::format(fmt::runtime(kernel), "R[b, p] = A[b, min(p, 2)]", "s[t] = R[c, t]"),
                 kCuda);
}

/// Another condition is none of the row's end; and what is read in a later iteration may be what an
/// earlier one has stored.
TEST(FillTilesLeaves, CopiesThatNeedTheirConditions) {
  const std::string_view behind = "for t in 0..4 { C[t] = s[0, t] }";
  for (const auto& [copy, inside, outside] :
       {std::tuple(copy_of("k*4 + t", 5), kRead, std::string_view()),
        std::tuple(copy_of("k*4 + t", 6), std::string_view(), behind)})
    expect_becomes(fill_tiles, fmt::format(kRows, kGuarded, copy, inside, outside),
                   fmt::format(kRows, kFilled, copy, inside, outside), kCuda);
}

TEST(FillTilesLeaves, CopiesOfRowsThatAreNotFilled) {
  const std::string_view other =
      "if likely(l*4 + p < 10) { R[b*4 + i, l, p] = exp(A[b*4 + i, l*4 + p]) }";
  expect_unchanged(fill_tiles, fmt::format(kRows, other, copy_of("k*4 + t", 6), kRead, ""), kCuda);
}

TEST(FillTilesLeaves, WhatAnEarlierIterationMayHaveStored) {
  expect_unchanged(fill_tiles, R"(fn f(A: float32[100], C: float32[64]) {
    for b in 0..1 bind(blockIdx.x) {
      allocate s: float32[64] scope(local)
      for k in 0..2 { for t in 0..64 { if likely(k*64 + t < 100) { s[t] = A[k*64 + t] } } }
      for t in 0..64 { C[t] = s[t] } } })");
}

TEST(FillTilesLeaves, WhatCannotBeComputedOfAnyValue) {
  expect_unchanged(fill_tiles, R"(fn f(A: int32[100], C: int32[100]) {
    for b in 0..2 bind(blockIdx.x) {
      allocate s: int32[64] scope(local)
      for t in 0..64 { if likely(b*64 + t < 100) { s[t] = floordiv(int32(7), A[b*64 + t]) } }
      for t in 0..64 { if likely(b*64 + t < 100) { C[b*64 + t] = s[t] } } } })");
  // Of a table that knows no end of its own.
  expect_unchanged(fill_tiles, R"(fn f(A: float32[100], I: int64[100], C: float32[100]) {
    for b in 0..2 bind(blockIdx.x) {
      allocate s: float32[64] scope(local)
      for t in 0..64 { if likely(b*64 + t < 100) { s[t] = A[I[b*64 + t]] } }
      for t in 0..64 { if likely(b*64 + t < 100) { C[b*64 + t] = s[t] } } } })");
  // Beyond the end of what was allocated.
  expect_unchanged(fill_tiles, R"(fn f(A: float32[100], C: float32[100]) {
    for b in 0..1 bind(blockIdx.x) {
      allocate s: float32[100] scope(local)
      for t in 0..128 { if likely(t < 100) { s[t] = A[t] } }
      for t in 0..100 { C[t] = s[t] } } })");
}

TEST(FillTilesLeaves, WhatOtherThreadsMayBeStoring) {
  expect_unchanged(fill_tiles, R"(fn f(A: float32[9, 100], S: float32[9, 100]) {
    for b in 0..2 bind(blockIdx.x) {
      allocate s: float32[1] scope(local)
      for i in 0..64 bind(threadIdx.x) { for t in 0..8 {
        if likely(b*64 + i < 100) { s[0] = S[t, b*64 + i] }
        if likely(b*64 + i < 100) { S[t + 1, b*64 + i] = s[0] + A[t, b*64 + i] } } } } })");
}

TEST(FillTilesLeaves, WhatReadsTilesThatKeepTheirGuards) {
  expect_unchanged(fill_tiles, R"(fn f(A: int32[100], C: int32[100]) {
    for b in 0..2 bind(blockIdx.x) {
      allocate s: int32[64] scope(local)
      allocate r: int32[64] scope(local)
      for t in 0..64 { if likely(b*64 + t < 100) { s[t] = floordiv(int32(7), A[b*64 + t]) } }
      for t in 0..64 { if likely(b*64 + t < 100) { r[t] = s[t] + int32(1) } }
      for t in 0..64 { if likely(b*64 + t < 100) { C[b*64 + t] = r[t] } } } })");
}

TEST(FillTilesLeaves, GuardsOfMoreThanStores) {
  expect_unchanged(fill_tiles, R"(fn f(A: float32[100], C: float32[100]) {
    for b in 0..2 bind(blockIdx.x) {
      allocate s: float32[64] scope(local)
      for t in 0..64 { if likely(b*64 + t < 100) { s[t] = A[b*64 + t]  C[b*64 + t] = s[t] } } } })");
}

}  // namespace
}  // namespace kiln::testing
