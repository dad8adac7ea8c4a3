#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/arguments.h"

namespace kiln::server {

/// The sizes that are given by name, in the order of the definition. Throws InvalidArgument SIZE
/// for one that is negative or missing: "`what` for certain sizes, but n is not given; give each
/// size`otherwise`".
std::vector<int64_t> given_sizes(const KernelNames& names,
                                 const std::map<std::string, int64_t>& given, std::string_view what,
                                 std::string_view otherwise);

}  // namespace kiln::server
