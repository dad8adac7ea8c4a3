#pragma once

#include <string>

#include <gtest/gtest.h>
#include <kiln/error.h>

namespace kiln::test {

/// `body` throws a client error of this kind, of the class for it, with exactly this message.
template <typename Body>
void expect_client_error(Body&& body, ErrorKind kind, const std::string& reason,
                         const std::string& message) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.kind()), name_of(kind));
    EXPECT_EQ(error.reason(), reason);
    EXPECT_EQ(error.message(), message);
  }
}

}  // namespace kiln::test
