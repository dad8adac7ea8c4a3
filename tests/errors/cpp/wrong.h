#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/client.h>

namespace kiln::test {

/// The wrong programs of this executable, by name, in the order of their lines.
inline std::vector<std::pair<std::string, std::function<void()>>>& wrong_programs() {
  static std::vector<std::pair<std::string, std::function<void()>>> programs;
  return programs;
}

struct WrongProgram {
  WrongProgram(const char* name, std::function<void()> program) {
    wrong_programs().emplace_back(name, std::move(program));
  }
};

}  // namespace kiln::test

/// A program that the catalogue (tests/errors/catalogue/cpp_*.py) has a row for. The line that its
/// error names ends with `// <-`.
#define WRONG(name)                                                \
  static void name();                                              \
  static const kiln::test::WrongProgram name##_entry(#name, name); \
  static void name()
