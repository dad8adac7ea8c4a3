#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "compiler/codegen/tileiras.h"
#include "runtime/core/error.h"

namespace kiln::testing {

/// The cubin of one module, on however busy a host. Rows that begin anywhere, as Kiln leaves them
/// to the CUDA C, take tileiras its time.
inline std::string assembled(const std::string& module, std::string_view arch) {
  constexpr codegen::RunLimits kPatient = {.processor = std::chrono::seconds(60),
                                           .clock = std::chrono::minutes(10)};
  return codegen::Tileiras(kPatient).assemble({&module, 1}, arch).at(0);
}

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
