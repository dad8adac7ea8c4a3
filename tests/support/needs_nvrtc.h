#pragma once

#include <gtest/gtest.h>

#include "compiler/codegen/nvrtc.h"
#include "runtime/core/error.h"

namespace kiln::testing {

/// A fixture that skips its tests, saying why, where NVRTC is not installed.
template <typename Base = ::testing::Test>
class NeedsNvrtc : public Base {
 protected:
  void SetUp() override {
    try {
      codegen::describe_nvrtc();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unavailable) throw;
      GTEST_SKIP() << error.what();
    }
  }
};

}  // namespace kiln::testing
