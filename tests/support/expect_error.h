#pragma once

#include <string_view>

#include <gtest/gtest.h>

#include "runtime/core/error.h"

namespace kiln::testing {

/// Fails the test unless `body` throws an Error of this kind with exactly this message. Returns the
/// error, so that a test can look at its reason and notes.
template <typename Body>
Error expect_error(Body&& body, ErrorKind kind, std::string_view message) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.kind()), name_of(kind)) << error.message();
    EXPECT_EQ(error.message(), message);
    return error;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << message;
  return Error(ErrorKind::Internal, "NOTHING_THROWN", "");
}

}  // namespace kiln::testing
