#include "client/cli/draw_plan.h"

#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

const ProgramPlan kPlan = {
    .program = "halving",
    .kernels = {{"h", {"h"}, 4096, 4096}, {"y_and_1", {"a&b", "y"}, 8192, 20 << 20}},
    .values = {{"w", float32, {1024}, -1, "", "", 0, 1},
               {"h", float32, {1024}, 0, "w", "", 0, 1},
               {"a&b", float32, {8}, 4096, "", "", 0, 0},
               {"y", float32, {8}, 4096, "", "a&b", 1, 1}},
    .arena_bytes = 4160,
    .live_bytes = 4128,
    .separate_bytes = 4224};

TEST(PrintPlan, NamesKernelsBytesAndPlaces) {
  EXPECT_EQ(print_plan(kPlan),
            "halving: 2 kernels a step, 20.0 MiB moved\n"
            "  h: reads 4096 bytes, writes 4096 bytes (h)\n"
            "  y_and_1: reads 8192 bytes, writes 20.0 MiB (a&b, y)\n"
            "memory: 4160 bytes, of which 4128 bytes are alive at a time (4224 bytes without "
            "reuse)\n"
            "           0  h: float32[1024], becomes w\n"
            "        4096  a&b: float32[8]\n"
            "        4096  y: float32[8], where a&b was\n");
}

TEST(DrawPlan, HasABoxForEachValueOfTheArenaAndTheBytesOfEachKernel) {
  const std::string picture = draw_plan(kPlan);
  size_t boxes = 0;
  for (size_t at = 0; (at = picture.find("<rect ", at)) != std::string::npos; ++at)
    ++boxes;
  EXPECT_EQ(boxes, 3U);
  // All of the step; then beside each other in the same rows.
  EXPECT_NE(picture.find("x=\"20.0\" y=\"35.5\" width=\"920.0\""), std::string::npos) << picture;
  EXPECT_NE(picture.find("x=\"20.0\" y=\"32.8\" width=\"460.0\""), std::string::npos) << picture;
  EXPECT_NE(picture.find("x=\"480.0\" y=\"32.8\" width=\"460.0\""), std::string::npos) << picture;
  EXPECT_NE(picture.find("<title>y: float32[8], where a&amp;b was</title>"), std::string::npos);
  EXPECT_NE(picture.find(">y_and_1: 20.0 MiB<"), std::string::npos);
}

}  // namespace
}  // namespace kiln::cli
