#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace kiln::testing {

/// Fails unless `text` is what tests/golden/NAME holds. With KILN_UPDATE_GOLDEN=1 in the
/// environment the file is written instead.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(KILN_GOLDEN_DIR) + "/" + name;
  if (std::getenv("KILN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path << " is missing; KILN_UPDATE_GOLDEN=1 writes it";
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, golden) << "from " << path << "; KILN_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace kiln::testing
