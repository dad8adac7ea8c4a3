#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/analysis/accesses.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// The name of a buffer through which an iteration of a loop may need what another one stores;
/// nothing when none does. Buffers whose accesses `ignores` holds of are left out.
std::optional<std::string> carried_through(
    const ir::For& loop, analysis::Facts& facts,
    const std::function<bool(const std::vector<analysis::Access>&)>& ignores);

}  // namespace kiln::passes
