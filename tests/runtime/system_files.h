#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln::testing {

/// A test with a folder of its own that looks like one of the kernel's file systems, whose files
/// are a line each.
class SystemFiles : public ::testing::Test {
 protected:
  SystemFiles()
      : root_(std::filesystem::temp_directory_path() /
              ("kiln-system-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(root_);
  }
  ~SystemFiles() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }

  const std::filesystem::path root_;
};

}  // namespace kiln::testing
