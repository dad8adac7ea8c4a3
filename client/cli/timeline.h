#pragma once

#include <string>
#include <vector>

#include <kiln/connection.h>

namespace kiln::cli {

/// One HTML file that needs nothing beside it: for each track of each process a lane with what it
/// did, along one axis of time, once from the first span to the last and once for `call` alone,
/// and a table, whose first row is its heading.
std::string timeline_page(const std::string& title, const std::vector<Span>& spans,
                          const Span& call, const std::vector<std::vector<std::string>>& table);

}  // namespace kiln::cli
