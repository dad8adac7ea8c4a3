#include "compiler/analysis/affine.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/parse.h"

namespace kiln::testing {
namespace {

using analysis::Touch;

/// What is said of the accesses of C in the loops of this body, for different values of `vars`.
std::string answer(const std::string& body, const std::vector<std::string>& vars) {
  const ir::Kernel kernel = ir::parse(
      "fn f[m, n, l](C: float32[n], D: float32[n, n], E: float32[n, n, n], I: int64[n]) {" + body +
      "}");
  analysis::Facts facts;
  for (const ir::VarRef& size : kernel.sizes)
    facts.push_range(size, ir::index(0), nullptr);
  std::vector<analysis::Place> places;
  std::vector<ir::VarRef> asked;
  std::string buffer;
  for (const analysis::Access& access : analysis::accesses_of(kernel.body)) {
    if (access.buffer->name == "I") continue;
    buffer = access.buffer->name;
    std::vector<analysis::LoopRange> loops;
    for (const ir::For* loop : access.loops) {
      loops.push_back({loop->var, loop->extent});
      const bool is_asked = std::ranges::find(vars, loop->var->name) != vars.end();
      if (is_asked && std::ranges::find(asked, loop->var) == asked.end())
        asked.push_back(loop->var);
    }
    places.push_back(analysis::place_of(access, std::move(loops)));
  }
  const analysis::Overlap overlap = analysis::overlap_of(places, asked, facts);
  if (overlap.touch == Touch::Never) return "never";
  return (overlap.touch == Touch::May ? "may: " : "always: ") +
         analysis::in_words(buffer, places[overlap.first], places[overlap.second]);
}

std::string fused(const std::string& guard, const std::string& store) {
  return "for b in 0..floordiv(" + guard +
         " + 255, 256) { for t in 0..256 { if likely(b*256 + t < " + guard + ") {" + store +
         "} } }";
}

TEST(Affine, ProvesAVariableThatIsAnIndex) {
  EXPECT_EQ(answer("for i in 0..n { C[i] = 0.0 C[i] = C[i] + 1.0 }", {"i"}), "never");
}

TEST(Affine, ProvesSlotsOfARing) {
  EXPECT_EQ(
      answer("for i in 0..n { D[floormod(m + 1, 2), i] = D[floormod(m, 2), n - 1 - i] }", {"i"}),
      "never");
  EXPECT_EQ(answer("for i in 0..n { D[floormod(m + 1, 2), i] = D[m, n - 1 - i] }", {"i"}), "never");
  EXPECT_EQ(answer("for i in 0..n { D[m, i] = D[floormod(m + 4, 3), n - 1 - i] }", {"i"}), "never");
}

TEST(Affine, ProvesNothingOfSlotsThatMayBeOne) {
  EXPECT_EQ(answer("for i in 0..n { D[floormod(m + 2, 2), i] = D[m, n - 1 - i] }", {"i"}),
            "may: D[m, n - 1 - i] and D[floormod(m + 2, 2), i]");
  EXPECT_EQ(
      answer("for i in 0..n { D[floormod(m + 1, 3), i] = D[floormod(m, 2), n - 1 - i] }", {"i"}),
      "may: D[floormod(m, 2), n - 1 - i] and D[floormod(m + 1, 3), i]");
  EXPECT_EQ(answer("for i in 0..n { D[floormod(i + 1, 2), i] = D[i, n - 1 - i] }", {"i"}),
            "may: D[i, n - 1 - i] and D[floormod(i + 1, 2), i]");
}

TEST(Affine, ProvesTheDigitsOfATile) {
  EXPECT_EQ(answer("for i in 0..n { for j in 0..8 { C[i*8 + j] = 0.0 } }", {"i", "j"}), "never");
  EXPECT_EQ(answer("for i in 0..n { for j in 0..8 { C[i*8 + j] = 0.0 } for k in 0..8 { "
                   "C[i*8 + k] = 1.0 } }",
                   {"i"}),
            "never");
  EXPECT_EQ(answer("for a in 0..m { for i in 0..4 { for j in 0..8 { C[a*32 + i*8 + j] = 0.0 } } }",
                   {"i"}),
            "never");
}

TEST(Affine, ProvesTheDigitsOfASymbolicRow) {
  EXPECT_EQ(answer("for i in 0..m { for j in 0..n { C[i*n + j] = 0.0 } }", {"i", "j"}), "never");
  EXPECT_EQ(answer("for i in 0..m { for j in 0..n { C[i*n + (n - 1 - j)] = 0.0 } }", {"i", "j"}),
            "never");
  EXPECT_EQ(answer("for i in 0..m { for j in 0..n { for k in 0..8 { C[(i*n + j)*8 + k] = 0.0 } } }",
                   {"i", "j", "k"}),
            "never");
}

TEST(Affine, ProvesAFusedIndexTakenApart) {
  const char* store = "D[floordiv(b*256 + t, n), floormod(b*256 + t, n)] = 0.0";
  EXPECT_EQ(answer(fused("m*n", store), {"b", "t"}), "never");
  EXPECT_EQ(answer(fused("m*n", store), {"b"}), "never");
  EXPECT_EQ(answer(fused("m*500", "D[floordiv(b*256 + t, 500), floormod(b*256 + t, 500)] = 0.0"),
                   {"b", "t"}),
            "never");
  EXPECT_EQ(answer("for f in 0..m*n { D[floordiv(f, n), floormod(f, n)] = 0.0 }", {"f"}), "never");
}

TEST(Affine, ProvesAnIndexFusedOfThree) {
  EXPECT_EQ(answer(fused("m*n*l",
                         "E[floordiv(floordiv(b*256 + t, l), n), "
                         "floormod(floordiv(b*256 + t, l), n), "
                         "floormod(b*256 + t, l)] = 0.0"),
                   {"b", "t"}),
            "never");
  // As simplified for constants: the digit in the middle has other coefficients.
  EXPECT_EQ(answer("for b in 0..2048 { for t in 0..256 { E[floordiv(b*256 + t, 16384), "
                   "floormod(b*2 + floordiv(t, 128), 128), floormod(t, 128)] = 0.0 } }",
                   {"b", "t"}),
            "never");
}

/// What a copy of a tile, whose lines are parts of warps' parts, is taken apart to.
TEST(Affine, ProvesAFusionOfManySplits) {
  for (const char* const first :
       {"floordiv(a*1024 + z*256 + y*32 + x*8 + v, 2048)", "floordiv(a, 2)"}) {
    for (const char* const second : {"floormod(a, 2)*8 + z*2 + floordiv(y*32 + x*8 + v, 128)",
                                     "floormod(a*8 + z*2 + floordiv(y*32 + x*8 + v, 128), 16)"}) {
      EXPECT_EQ(answer(fmt::format(
                           "for a in 0..8 {{ for z in 0..4 {{ for y in 0..8 {{ for x in 0..4 {{ "
                           "for v in 0..8 {{ D[{}, {}, floormod(floordiv(y*32 + x*8 + v, 64), 2), "
                           "floormod(y*4 + x, 8), floordiv(v, 2), floormod(v, 2)] = 0.0 "
                           "}} }} }} }} }}",
                           first, second),
                       {"a", "z", "y", "x", "v"}),
                "never")
          << first << second;
    }
  }
}

TEST(Affine, ProvesASplitOfAFusionOfSplits) {
  EXPECT_EQ(answer("for o in 0..floordiv(m*n + 31, 32) { for r in 0..32 { for i in 0..8 { "
                   "for j in 0..4 { if likely(o*32 + r < m*n) { "
                   "D[floordiv(o*32 + r, n)*8 + i, floormod(o*32 + r, n)*4 + j] = 0.0 } } } } }",
                   {"o", "r"}),
            "never");
}

TEST(Affine, ProvesWhatAnotherDimensionTells) {
  EXPECT_EQ(answer("for i in 0..n { for j in 0..12 { D[i*8 + j, j] = 0.0 } }", {"i"}), "never");
  EXPECT_EQ(answer("for i in 0..n { for j in 0..12 { D[i*8 + j, j] = 0.0 } "
                   "for k in 0..12 { D[i*8 + k, k] = 1.0 } }",
                   {"i"}),
            "never");
}

TEST(Affine, ProvesDisjointElements) {
  EXPECT_EQ(answer("for i in 0..n { C[i*2] = C[i*2 + 1] }", {"i"}), "never");
  EXPECT_EQ(answer("for i in 0..n { for k in 0..n { C[i*4] = C[k*6 + 1] } }", {"i"}), "never");
  EXPECT_EQ(answer("for t in 0..32 { if t < 8 { C[t] = C[t] + C[t + 8] } }", {"t"}), "never");
}

TEST(Affine, ProvesAnIterationThatConditionsLeaveAlone) {
  EXPECT_EQ(answer("for t in 0..32 { if t < 1 { C[0] = C[0] + 1.0 } }", {"t"}), "never");
  // Another one than the first.
  EXPECT_EQ(answer("for t in 0..32 { if 2 < t { if t < 4 { C[t*64] = 0.0 } } }", {"t"}), "never");
  EXPECT_EQ(answer("for t in 0..32 { if 2 < t { if t < 4 { C[0] = 0.0 } } }", {"t"}), "never");
  // What is next to it is another iteration's.
  EXPECT_EQ(answer("for t in 0..32 { if t < 2 { if 0 < t { C[t*64] = 0.0 } if t < 1 {"
                   "for i in 0..63 { C[t*64 + i + 1] = C[t*64 + i] } } } }",
                   {"t"}),
            "never");
  EXPECT_EQ(answer("for t in 0..32 { if t < 2 { if 0 < t { C[63] = 0.0 } if t < 1 {"
                   "for i in 0..63 { C[t*64 + i + 1] = C[t*64 + i] } } } }",
                   {"t"}),
            "may: C[63] and C[t*64 + i + 1]");
}

TEST(Affine, NamesNeighbours) {
  EXPECT_EQ(answer("for i in 0..n { for j in 0..4 { C[i*4 + j] = C[i*4 + j + 1] } }", {"i"}),
            "may: C[i*4 + j + 1] and C[i*4 + j]");
  EXPECT_EQ(answer("for i in 0..n { C[i + 1] = C[i] }", {"i"}), "may: C[i] and C[i + 1]");
}

TEST(Affine, NamesOnePlaceOfSeveralIterations) {
  EXPECT_EQ(answer("for i in 0..8 { C[3] = 0.0 }", {"i"}), "always: C[3] and C[3]");
  EXPECT_EQ(answer("for i in 0..n { C[3] = 0.0 }", {"i"}), "may: C[3] and C[3]");
  EXPECT_EQ(answer("for i in 0..1 { C[3] = 0.0 }", {"i"}), "never");
}

TEST(Affine, DoesNotClaimDigitsThatOverlap) {
  EXPECT_EQ(answer("for i in 0..n { for j in 0..9 { C[i*8 + j] = 0.0 } }", {"i"}),
            "may: C[i*8 + j] and C[i*8 + j]");
  EXPECT_EQ(answer("for i in 0..m { for j in 0..n + 1 { C[i*n + j] = 0.0 } }", {"i"}),
            "may: C[i*n + j] and C[i*n + j]");
}

TEST(Affine, DoesNotClaimHalfOfAFusedIndex) {
  EXPECT_EQ(answer("for f in 0..m*n { C[floordiv(f, n)] = 0.0 }", {"f"}),
            "may: C[floordiv(f, n)] and C[floordiv(f, n)]");
  EXPECT_EQ(answer("for f in 0..m*n { D[floordiv(f, n), floormod(f, m)] = 0.0 }", {"f"}),
            "may: D[floordiv(f, n), floormod(f, m)] and D[floordiv(f, n), floormod(f, m)]");
}

/// A size of zero makes all rows one.
TEST(Affine, DoesNotClaimRowsThatMayBeEmpty) {
  EXPECT_EQ(answer("for i in 0..m { C[i*n] = 0.0 }", {"i"}), "may: C[i*n] and C[i*n]");
  EXPECT_EQ(answer("for f in 0..m { D[floordiv(f, n), floormod(f, n)] = 0.0 }", {"f"}),
            "may: D[floordiv(f, n), floormod(f, n)] and D[floordiv(f, n), floormod(f, n)]");
}

/// Places that never run say nothing about those that do.
TEST(Affine, DoesNotReasonFromLoopsThatDoNotRun) {
  EXPECT_EQ(answer("for i in 0..8 { C[0] = 0.0 for k in 0..0 { C[i + k] = 1.0 } }", {"i"}),
            "always: C[0] and C[0]");
}

TEST(Affine, DoesNotTrustAnIndexThatIsStoredTo) {
  const std::string loops = "for i in 0..n { I[0] = I[1] C[i + I[0]] = C[i + I[0]] + 1.0 }";
  EXPECT_EQ(answer(loops, {"i"}).substr(0, 3), "may");
}

TEST(Affine, DoesNotClaimDataToBeDistinct) {
  EXPECT_EQ(answer("for i in 0..n { C[I[i]] = 0.0 }", {"i"}), "may: C[I[i]] and C[I[i]]");
}

}  // namespace
}  // namespace kiln::testing
