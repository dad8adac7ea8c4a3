#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "compiler/ir/equal.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"

namespace kiln::testing {

/// The kernel `fn f(PARAMETERS) { BODY }` of the lowered text.
inline ir::Kernel parse_kernel(std::string_view parameters, std::string_view body) {
  return ir::parse("fn f(" + std::string(parameters) + ") {\n" + std::string(body) + "\n}");
}

/// Fails the test unless both kernels are the same but for what they bind; shows both as text.
inline void expect_same(const ir::Kernel& actual, const ir::Kernel& expected) {
  EXPECT_TRUE(ir::equal_kernels(actual, expected)) << "is:\n"
                                                   << ir::print(actual) << "should be:\n"
                                                   << ir::print(expected);
}

}  // namespace kiln::testing
