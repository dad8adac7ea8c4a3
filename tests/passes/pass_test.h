#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "compiler/ir/equal.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/lower.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {

/// What a pass is run with.
struct PassSetting {
  TargetKind target = TargetKind::Llvm;
  Layout layout = Layout::Compact;
  CompileOptions options;
  std::string arch;
};

/// The kernel after the pass, verified.
inline ir::Kernel run_pass(PassFunction* pass, const ir::Kernel& kernel,
                           const PassSetting& setting = {}) {
  const Target target{setting.target, setting.arch};
  ir::Kernel result = pass(kernel, PassContext{target, setting.options, setting.layout});
  ir::verify(result);
  return result;
}

/// The kernel of this text after the pass, verified.
inline ir::Kernel run_pass(PassFunction* pass, std::string_view text,
                           const PassSetting& setting = {}) {
  return run_pass(pass, ir::parse(text), setting);
}

/// Fails unless the pass makes `after` of `before`; names of what is bound inside do not count.
inline ir::Kernel expect_becomes(PassFunction* pass, std::string_view before,
                                 std::string_view after, const PassSetting& setting = {}) {
  ir::Kernel result = run_pass(pass, before, setting);
  EXPECT_TRUE(ir::equal_kernels(result, ir::parse(after))) << "got\n"
                                                           << ir::print(result) << "expected\n"
                                                           << after;
  return result;
}

/// Fails unless the pass gives back the very same body.
inline void expect_unchanged(PassFunction* pass, std::string_view text,
                             const PassSetting& setting = {}) {
  const ir::Kernel kernel = ir::parse(text);
  const Target target{setting.target, setting.arch};
  const ir::Kernel result = pass(kernel, PassContext{target, setting.options, setting.layout});
  EXPECT_TRUE(result.body == kernel.body) << "got\n" << ir::print(result);
}

inline const PassSetting kCuda = {TargetKind::Cuda, Layout::Compact, {}, ""};

}  // namespace kiln::testing
