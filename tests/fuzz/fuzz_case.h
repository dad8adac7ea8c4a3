#pragma once

#include <ctime>

#include <gtest/gtest.h>

#include "runtime/core/error.h"

namespace kiln::testing {

/// Processor time of this thread, which other work on the machine does not lengthen.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Sanitizers make code several times slower.
#if defined(__SANITIZE_ADDRESS__)
constexpr double kSecondsOfACase = 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr double kSecondsOfACase = 20;
#else
constexpr double kSecondsOfACase = 1;
#endif
#else
constexpr double kSecondsOfACase = 1;
#endif

/// Runs one case. It may be refused, as a mistake of the user; anything else (a bug of ours,
/// another exception, work beyond the limit) fails the test. Returns whether it was accepted.
template <typename Body>
bool runs_or_is_refused(Body&& body, double limit = kSecondsOfACase) {
  const double start = thread_seconds();
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
  EXPECT_LT(thread_seconds() - start, limit) << "seconds";
  return accepted;
}

}  // namespace kiln::testing
