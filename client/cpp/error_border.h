#pragma once

#include <string>
#include <vector>

namespace kiln::border {

/// What an error of the language carries, for the client's own classes.
struct ErrorValues {
  int kind = 0;
  std::string reason;
  std::string message;
  std::vector<std::string> notes;
  std::string file;
  int line = 0;
};

/// Throws it as the client's exception class of that kind.
[[noreturn]] void throw_as_client_error(ErrorValues values);

}  // namespace kiln::border
