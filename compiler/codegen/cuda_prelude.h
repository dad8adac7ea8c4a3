#pragma once

#include <string>
#include <string_view>

namespace kiln::codegen {

/// The declarations that `code` needs before it: functions of ours that it calls, and nothing else.
std::string cuda_prelude(std::string_view code);

}  // namespace kiln::codegen
