#pragma once

#include <unordered_map>
#include <utility>

#include "runtime/core/error.h"

namespace kiln::passes {

/// Runs `body`; an Error that leaves it has the line of a loop's variable or of a buffer, where the
/// kernel knows one.
template <typename Node, typename Body>
decltype(auto) at_line(const std::unordered_map<Node, SourceLocation>& lines, const Node& of,
                       Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    const auto line = lines.find(of);
    if (line != lines.end()) error.set_location(line->second);
    throw;
  }
}

}  // namespace kiln::passes
