#include <gtest/gtest.h>

#include "runtime/core/error.h"
#include "tests/support/parse_ir.h"
#include "tests/support/random.h"

namespace kiln::testing {
namespace {

const std::vector<std::string> kTexts = {
    "fn f[n, m](A: float32[m, n] strides[s, t], B: float16[n] output) { workspace w: int8[n] at 64 "
    "per_thread workspace bytes n*4, 128 per_thread for i in 0..floordiv(n + 31, 32) parallel { if "
    "likely(i*32 < n && !(i == m)) { A[i, 0] = A[i, 1]*2.0 + -1e-05 } else { check i < n #0 } } } "
    "#0: stage 1, tensor 0, dimension -1",
    "fn g(A: int64[n], B: bool[n], C: float64[n]) { for blockIdx.x in 0..n bind { for threadIdx.x "
    "in "
    "0..8 bind { allocate s: float32[8] scope(shared) s[threadIdx.x] = select(B[0], 1.0, inf) "
    "barrier C[ramp(0, 1, 8) where ramp(0, 1, 8) < broadcast(n, 8)] = broadcast(float64(s[0]), 8) "
    "C[0] = reduce_sum(0.0, C[ramp(0, 2, 4)], reassociate) { A[0] = ~7 ^ (n << 3) } } } }",
};

/// A few characters or words of the text are changed, dropped or doubled.
std::string damaged(std::string text, Random& random) {
  static const std::vector<std::string> kPieces = {
      "(",     ")",   "[", "]", "{",    "}",    "..", "0",    "-", "9999999999999999999",
      "1.5",   "for", "n", "A", "bind", "if",   ":",  "int8", ",", "where",
      "ramp(", "=",   "<", "#", "\n",   "\xff", "$"};
  for (int edits = random.between(1, 3); edits > 0; --edits) {
    const size_t at = static_cast<size_t>(random.below(static_cast<int>(text.size())));
    const size_t length = static_cast<size_t>(random.below(8));
    switch (random.below(3)) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, random.pick(kPieces)); break;
      default: text.insert(at, text.substr(at, length)); break;
    }
    if (text.empty()) text = "fn";
  }
  return text;
}

TEST(ParseFuzz, ReadsOrRefusesAnyText) {
  const uint64_t first = fuzz_seed();
  const int rounds = fuzz_rounds(3000);
  int accepted = 0;
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    const std::string text = damaged(random.pick(kTexts), random);
    SCOPED_TRACE("to repeat: KILN_FUZZ_ROUNDS=1 KILN_FUZZ_SEED=" + std::to_string(seed) + "\n" +
                 text);
    try {
      const ir::Kernel kernel = ir::parse(text);
      ++accepted;
      const std::string printed = ir::print(kernel);
      expect_same(ir::parse(printed), kernel);
      EXPECT_EQ(ir::print(ir::parse(printed)), printed);
    } catch (const Error& error) {
      EXPECT_EQ(error.reason(), "SYNTAX") << error.message();
    }
  }
  if (rounds < 1000) return;
  EXPECT_GT(accepted, rounds / 40);
  EXPECT_LT(accepted, rounds * 39 / 40);
}

}  // namespace
}  // namespace kiln::testing
