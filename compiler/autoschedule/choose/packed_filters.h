#pragma once

#include <optional>
#include <vector>

#include "compiler/language/kernel.h"
#include "compiler/target.h"

namespace kiln::autoschedule {

/// A kernel in two: what lays out one of its parameters as it is read, and the rest.
struct PackedFilters {
  size_t parameter = 0;      // its position
  language::Kernel copy;     // of that parameter: its one output is what follows
  language::Kernel product;  // the same kernel on the copy
};

/// For a kernel without sizes, a convolution whose filters are copied before they are read, or
/// would be if the copy cost nothing, as one that is made once. `lasting`: by parameter, those that
/// such a copy may be of.
std::optional<PackedFilters> pack_filters(const language::Kernel& kernel,
                                          const std::vector<bool>& lasting, const Target& target,
                                          const CompileOptions& options);

}  // namespace kiln::autoschedule
