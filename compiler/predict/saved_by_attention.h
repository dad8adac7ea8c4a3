#pragma once

#include <string_view>

#include "compiler/language/kernel.h"

namespace kiln::predict {

/// Seconds that an attention of known sizes is predicted to save as one kernel, for moving nothing
/// between its stages; 0 where it is none that GPUs of this architecture do so.
double saved_by_attention(const language::Kernel& kernel, std::string_view arch);

}  // namespace kiln::predict
