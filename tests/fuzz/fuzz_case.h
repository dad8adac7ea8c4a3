#pragma once

#include <chrono>

#include <gtest/gtest.h>

#include "runtime/core/error.h"

namespace kiln::testing {

/// Runs one case. It may be refused, as a mistake of the user; anything else (a bug of ours,
/// another exception, more than a second) fails the test. Returns whether it was accepted.
template <typename Body>
bool runs_or_is_refused(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  bool accepted = false;
  try {
    body();
    accepted = true;
  } catch (const Error& error) {
    const bool is_refusal = error.kind() == ErrorKind::InvalidArgument ||
                            error.kind() == ErrorKind::Unsupported ||
                            error.kind() == ErrorKind::ResourceExhausted;
    EXPECT_TRUE(is_refusal) << name_of(error.kind()) << ": " << error.message();
    EXPECT_FALSE(error.message().empty());
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 1.0) << "seconds";
  return accepted;
}

}  // namespace kiln::testing
