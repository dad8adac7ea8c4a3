#include "compiler/executable_id.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

// This executable is linked without a build id.
TEST(ExecutableId, IsThereWithoutTheLinkersNote) {
  const std::string id = executable_id();
  EXPECT_EQ(id.size(), 32u) << id;
  EXPECT_TRUE(std::ranges::all_of(id, [](unsigned char c) { return std::isxdigit(c) != 0; })) << id;
  EXPECT_EQ(executable_id(), id);
}

}  // namespace
}  // namespace kiln::testing
