#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/language/text/text.h"
#include "runtime/core/error.h"

namespace kiln::testing {

/// Kernel `name` of a text, or its only one.
inline language::TextKernel kernel_of(std::string_view text, std::string_view name = "") {
  for (language::TextKernel& kernel : language::parse_text(text, "test.kiln")) {
    if (name.empty() || kernel.kernel.names.kernel == name) return std::move(kernel);
  }
  fail(ErrorKind::NotFound, "NO_KERNEL", "the text has no kernel {}", name);
}

/// The text of tests/kernels/FILE.kiln: cumsum, two_stage_scan, two_state_scan, fibonacci, matmul,
/// softmax, conv2d, elementwise.
inline std::string kernel_file(std::string_view file) {
  const std::string path = std::string(KILN_TEST_KERNELS) + "/" + std::string(file) + ".kiln";
  std::ifstream stream(path);
  if (!stream) fail(ErrorKind::NotFound, "NO_FILE", "{} cannot be read", path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The names of all files in tests/kernels, sorted.
inline std::vector<std::string> kernel_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_TEST_KERNELS)) {
    if (entry.path().extension() == ".kiln") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Kernel `name` of tests/kernels/FILE.kiln.
inline language::TextKernel test_kernel(std::string_view file, std::string_view name = "") {
  return kernel_of(kernel_file(file), name);
}

}  // namespace kiln::testing
