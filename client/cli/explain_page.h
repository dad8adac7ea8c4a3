#pragma once

#include <string>
#include <vector>

#include "client/cli/aligned.h"

namespace kiln::cli {

/// What the page says above the code: a table, whose first row is its heading, and notes. A cell
/// that ends in " %" is drawn as a bar, too.
struct Explanation {
  std::string title;
  std::vector<std::string> notes;
  std::vector<std::vector<std::string>> table;
  AlignedCode code;
};

/// One HTML file that needs nothing beside it: the table, and loops and code side by side, where
/// the line under the pointer is marked in every column.
std::string explain_page(const Explanation& explanation);

}  // namespace kiln::cli
