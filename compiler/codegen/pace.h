#pragma once

#include <cstdint>

#include "compiler/ir/stmt.h"

namespace kiln::codegen {

/// Where a loop looks whether its call was cancelled.
enum class Pace {
  Never,   // all of its iterations together are soon done
  Each,    // before each iteration
  Blocks,  // between blocks of `iterations`
};

struct Looks {
  Pace pace = Pace::Never;
  int64_t iterations = 0;  // of a block
};

/// So that between two looks of a kernel there lies a bounded number of operations: milliseconds,
/// or tens of them where each reads another page of memory.
Looks looks_of(const ir::For& loop);

}  // namespace kiln::codegen
