#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kiln {

/// Whether generated code may use this feature of a CPU ("avx2", LLVM's name), so that a host which
/// lacks it cannot run the code. Every x86-64 has what is not of the table, or no compiler emits
/// it.
bool is_code_feature(std::string_view name);

/// Whether the operating system has tiles of a matrix unit (Intel AMX) in this process: it gives
/// the memory to keep them only where they are asked for, which is done here, once.
bool may_use_tiles();

/// Of those named, the ones that this host lacks, in words: "avx512f, avx512vl and 3 more"; empty
/// when it has them all. A name that is not of the table counts as lacking.
std::string lacking_features(std::span<const std::string> names);

}  // namespace kiln
