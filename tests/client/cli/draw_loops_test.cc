#include "client/cli/draw_loops.h"

#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

constexpr const char* kLoops =
    "fn f(A: float32[n]) {\n"
    "  for i in 0..n parallel {\n"
    "    if likely(i < 3) {\n"
    "      for j in 0..4 {\n"
    "        A[i] = A[i] & j\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

TEST(DrawLoops, HasABoxForEachLoopInTheColourOfItsKind) {
  const std::string picture = draw_loops(kLoops);
  EXPECT_EQ(count(picture, "<rect "), 2U);
  EXPECT_EQ(count(picture, "<text "), 5U);
  EXPECT_NE(picture.find("height=\"76\" rx=\"4\" fill=\"#cfe3f6\""), std::string::npos);
  EXPECT_NE(picture.find("height=\"37\" rx=\"4\" fill=\"#f4f4f4\""), std::string::npos);
  EXPECT_NE(picture.find(">i in 0..n parallel<title>"), std::string::npos);
}

TEST(DrawLoops, WritesMarkupOfStatementsAsText) {
  const std::string picture = draw_loops(kLoops);
  EXPECT_NE(picture.find(">A[i] = A[i] &amp; j<"), std::string::npos);
  EXPECT_NE(picture.find(">if likely(i &lt; 3)<"), std::string::npos);
}

TEST(DrawLoops, CutsLongLinesAndKeepsThemWhole) {
  const std::string longer(150, 'x');
  const std::string picture = draw_loops("fn f() {\n  A[0] = " + longer + "\n}\n");
  EXPECT_NE(picture.find("…<title>A[0] = " + longer + "</title>"), std::string::npos);
}

TEST(DrawLoops, OfNothingIsAnEmptyPicture) { EXPECT_EQ(count(draw_loops(""), "<text"), 0U); }

}  // namespace
}  // namespace kiln::cli
