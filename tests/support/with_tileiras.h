#pragma once

#include <gtest/gtest.h>

#include "compiler/codegen/tileiras.h"
#include "runtime/core/error.h"

namespace kiln::testing {

/// Skips its tests, saying why, where there is no assembler of tiles.
class WithTileiras : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      codegen::find_tileiras();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
  }
};

}  // namespace kiln::testing
