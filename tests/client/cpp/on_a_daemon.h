#pragma once

#include <gtest/gtest.h>

#include "tests/support/daemon.h"

namespace kiln::test {

/// A real daemon, which all tests of a suite share.
class OnADaemon : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { daemon_ = new testing::Daemon({.program = KILND}); }
  static void TearDownTestSuite() {
    delete daemon_;
    daemon_ = nullptr;
  }

  static inline testing::Daemon* daemon_ = nullptr;
};

}  // namespace kiln::test
