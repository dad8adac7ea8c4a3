#pragma once

#include <string_view>
#include <vector>

namespace kiln::cli {

/// A wrong program of docs/errors.md.
struct ErrorPage {
  std::string_view reason;
  std::string_view title;
  std::string_view text;  // the sentence, what to write instead, and the program
};

/// All of them, in the order of the page.
const std::vector<ErrorPage>& error_pages();

}  // namespace kiln::cli
