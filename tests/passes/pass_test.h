#pragma once

#include <string_view>

#include <gtest/gtest.h>

#include "compiler/ir/equal.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/passes/passes.h"
#include "tests/support/expect_error.h"

namespace kiln::testing {

using Pass = ir::Kernel (*)(ir::Kernel, const PassContext&);

/// What a pass is run with.
struct PassSetting {
  TargetKind target = TargetKind::Llvm;
  Layout layout = Layout::Compact;
  CompileOptions options;
};

/// The kernel of this text after the pass, verified.
inline ir::Kernel run_pass(Pass pass, std::string_view text, const PassSetting& setting = {}) {
  const Target target{setting.target, ""};
  ir::Kernel result = pass(ir::parse(text), PassContext{target, setting.options, setting.layout});
  ir::verify(result);
  return result;
}

/// Fails unless the pass makes `after` of `before`; names of what is bound inside do not count.
inline ir::Kernel expect_becomes(Pass pass, std::string_view before, std::string_view after,
                                 const PassSetting& setting = {}) {
  ir::Kernel result = run_pass(pass, before, setting);
  EXPECT_TRUE(ir::equal_kernels(result, ir::parse(after))) << "got\n"
                                                           << ir::print(result) << "expected\n"
                                                           << after;
  return result;
}

/// Fails unless the pass gives back the very same body.
inline void expect_unchanged(Pass pass, std::string_view text, const PassSetting& setting = {}) {
  const ir::Kernel kernel = ir::parse(text);
  const Target target{setting.target, ""};
  const ir::Kernel result = pass(kernel, PassContext{target, setting.options, setting.layout});
  EXPECT_TRUE(result.body == kernel.body) << "got\n" << ir::print(result);
}

inline const PassSetting kCuda = {TargetKind::Cuda, Layout::Compact, {}};

}  // namespace kiln::testing
