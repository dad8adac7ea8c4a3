#include <gtest/gtest.h>

#include "compiler/language/text/text.h"
#include "compiler/language/wire/canonical.h"
#include "tests/fuzz/fuzz_case.h"
#include "tests/support/kernels.h"
#include "tests/support/random.h"

namespace kiln::language {
namespace {

using testing::Random;

const std::vector<std::string> kPieces = {"[",       "]",
                                          "(",       ")",
                                          "{",       "}",
                                          ",",       ":",
                                          "=",       "<",
                                          "<=",      "+",
                                          "-",       "*",
                                          "/",       "//",
                                          "%",       "**",
                                          "!",       "~",
                                          "0",       "1",
                                          "0.5",     "1e400",
                                          "t",       "i",
                                          "k",       "n",
                                          "S",       "A",
                                          "X",       "C",
                                          "sum",     "max",
                                          "scan",    "kernel",
                                          "var q",   "size q",
                                          "\n",      "#",
                                          "exp",     "inf",
                                          "nan",     "true",
                                          "out ",    "state ",
                                          "float32", "int8",
                                          "->",      "==",
                                          "&&",      "any",
                                          "select",  "split",
                                          "factor",  ".i",
                                          ".outer",  "99999999999999999999",
                                          "\xff",    "\x01"};

/// Removes, doubles, replaces or inserts a piece of the text.
void mutate(std::string& text, const std::vector<std::string>& files, Random& random) {
  const auto at = static_cast<size_t>(random.below(static_cast<int>(text.size()) + 1));
  const size_t length = std::min<size_t>(text.size() - at, static_cast<size_t>(random.below(8)));
  switch (random.below(6)) {
    case 0: text.erase(at, length); return;
    case 1: text.insert(at, random.pick(kPieces)); return;
    case 2: text.replace(at, length, random.pick(kPieces)); return;
    case 3: text.insert(at, text.substr(at, length)); return;
    case 4: {
      const std::string& other = random.pick(files);
      const auto from = static_cast<size_t>(random.below(static_cast<int>(other.size())));
      text.insert(at, other.substr(from, static_cast<size_t>(random.below(60))));
      return;
    }
    default:
      if (at < text.size()) text[at] = static_cast<char>(random.between(32, 126));
  }
}

/// A new layout says the same, and stays what it is.
void expect_formatted(const std::string& text, const std::vector<TextKernel>& kernels) {
  const std::string formatted = format_text(text, "mutated.kiln");
  EXPECT_EQ(format_text(formatted, "formatted.kiln"), formatted);
  const std::vector<TextKernel> again = parse_text(formatted, "formatted.kiln");
  ASSERT_EQ(again.size(), kernels.size());
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(print_text(again[i]), print_text(kernels[i]));
  }
}

TEST(TextFuzz, RefusesOrUnderstandsMutatedFiles) {
  std::vector<std::string> files;
  for (const char* file : {"cumsum", "two_stage_scan", "two_state_scan", "fibonacci", "matmul",
                           "softmax", "conv2d", "elementwise"}) {
    files.push_back(testing::kernel_file(file));
  }
  const uint64_t first = testing::fuzz_seed();
  int accepted = 0;
  const int rounds = testing::fuzz_rounds(2'000);
  for (uint64_t seed = first; seed < first + rounds && !HasFailure(); ++seed) {
    Random random(seed);
    std::string text = random.pick(files);
    for (int i = random.between(1, 4); i > 0; --i) {
      mutate(text, files, random);
    }
    SCOPED_TRACE("to repeat: KILN_FUZZ_SEED=" + std::to_string(seed) + " KILN_FUZZ_ROUNDS=1\n" +
                 text);
    std::vector<TextKernel> kernels;
    accepted += testing::runs_or_is_refused([&] { kernels = parse_text(text, "mutated.kiln"); });
    if (!kernels.empty()) expect_formatted(text, kernels);
    for (const TextKernel& kernel : kernels) {
      const std::string printed = print_text(kernel);
      SCOPED_TRACE(printed);
      EXPECT_TRUE(testing::runs_or_is_refused([&] {
        try {
          const std::vector<TextKernel> again = parse_text(printed, "printed.kiln");
          EXPECT_EQ(canonical_form(again[0].kernel.definition),
                    canonical_form(kernel.kernel.definition));
        } catch (const Error& error) {
          ADD_FAILURE() << error.message();
        }
      }));
    }
  }
  std::printf("%d of %d accepted\n", accepted, rounds);
}

/// Long and deep texts, which a mutation does not reach.
TEST(TextFuzz, LimitsHold) {
  const auto kernel = [](const std::string& body) {
    return "kernel k(A: float32[n]) -> (B: float32[n]) { B[i] = " + body + " }";
  };
  const auto repeated = [](const std::string& piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) {
      text += piece;
    }
    return text;
  };
  for (const std::string& text :
       {kernel(repeated("(", 100'000)), kernel(repeated("-", 100'000) + "A[i]"),
        kernel(repeated("A[i] + ", 100'000) + "1"), kernel(repeated("A[", 100'000)),
        kernel(repeated("exp(", 100'000)), kernel(repeated("2 ** ", 100'000) + "2"),
        kernel(repeated("sum[k < ", 100'000)), repeated("kernel ", 100'000),
        kernel("A[i]") + repeated("schedule cpu {", 50'000),
        "kernel k(" + repeated("A: float32[n], ", 50'000) + ")"}) {
    SCOPED_TRACE(text.substr(0, 100));
    EXPECT_FALSE(testing::runs_or_is_refused([&] { parse_text(text, "long.kiln"); }));
  }
}

}  // namespace
}  // namespace kiln::language
