#pragma once

#include "compiler/target.h"

namespace kiln {

/// How the arguments lie in memory: compact and row-major, or with strides given at the call. A
/// kernel is lowered once for each.
enum class Layout { Compact, Strided };

/// What a pass may depend on beside the kernel. Lives as long as the table runs.
struct PassContext {
  const Target& target;
  const CompileOptions& options;
  Layout layout = Layout::Compact;
};

}  // namespace kiln
