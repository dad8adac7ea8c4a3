#include "runtime/core/gpu_name.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kiln::testing {
namespace {

constexpr GpuFigures kL40s = {
    .multiprocessors = 142, .gigabytes = 864, .l2_mebibytes = 96, .megahertz = 2520};

TEST(GpuName, IsWrittenAndReadBack) {
  const std::string name = with_figures("sm_89", kL40s);
  EXPECT_EQ(name, "sm_89+sms142+gbs864+l2mib96+mhz2520");
  EXPECT_EQ(without_figures(name), "sm_89");
  EXPECT_EQ(figures_of(name), kL40s);
}

TEST(GpuName, MayBeThatOfACard) {
  EXPECT_EQ(figures_of("sm_89+l40s"), kL40s);
  EXPECT_EQ(figures_of("sm_90a+h200")->gigabytes, 4800);
  EXPECT_EQ(figures_of("sm_90+h200+mhz1500")->megahertz, 1500);
}

TEST(GpuName, MaySayNothing) {
  EXPECT_EQ(figures_of("sm_90"), std::nullopt);
  EXPECT_EQ(figures_of(""), std::nullopt);
  // Of a CPU.
  EXPECT_EQ(without_figures("znver4+avx512vnni+cores64"), "znver4+avx512vnni+cores64");
  EXPECT_EQ(figures_of("znver4+cores64"), std::nullopt);
}

TEST(GpuName, SaysWhatIsNoFigure) {
  const std::pair<const char*, const char*> wrong[] = {{"sm_89+sms", "sms"},
                                                       {"sm_89+sms0", "sms0"},
                                                       {"sm_89+gbs864x", "gbs864x"},
                                                       {"sm_89+", ""},
                                                       {"sm_89+mhz99999999", "mhz99999999"},
                                                       {"sm_89+cores4", "cores4"}};
  for (const auto& each : wrong) {
    expect_error([&] { figures_of(each.first); }, ErrorKind::InvalidArgument,
                 fmt::format("{} says {} of a GPU, which is no figure of it; write "
                             "sm_89+sms142+gbs864+l2mib96+mhz2520 (multiprocessors, GB/s from "
                             "memory, MiB of L2, MHz), or its name: a100-80gb, l40s, h100-pcie, "
                             "h200, rtx4090",
                             each.first, each.second)
                     .c_str());
  }
}

}  // namespace
}  // namespace kiln::testing
