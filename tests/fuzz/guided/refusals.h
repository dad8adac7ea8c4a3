#pragma once

#include <stdexcept>
#include <string>

#include "runtime/core/error.h"

namespace kiln::testing {

/// Runs what may be refused as a mistake of the sender; false when it was. Anything else that is
/// thrown is a mistake of ours.
template <typename Body>
bool runs_or_refuses(Body&& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    const bool is_refusal = error.kind() == ErrorKind::InvalidArgument ||
                            error.kind() == ErrorKind::Unsupported ||
                            error.kind() == ErrorKind::ResourceExhausted;
    if (is_refusal && !error.message().empty()) return false;
    std::string text = std::string(name_of(error.kind())) + ": " + error.message();
    for (const std::string& note : error.notes())
      text += "\n  " + note;
    throw std::logic_error(text);
  }
}

/// Of two results that cannot differ.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Runs what cannot be refused any more.
template <typename Body>
decltype(auto) must_run(const char* what, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw std::logic_error(std::string(what) + ": " + error.message());
  }
}

}  // namespace kiln::testing
