#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/kernel.h"

namespace kiln::testing {

/// An expression at a place in loops, for tables of tests.
///
/// `around`, outermost first, separated by `;`: `i < n` is a loop, `if i < m` a condition. m, n and
/// l are sizes, at least 0; `a` is a number of any sign. A: int64[m], D: int32[m], F: float32[m],
/// U: uint8[m].
class Scene {
 public:
  Scene(std::string_view around, std::string_view expr, std::string_view type = "int64");

  analysis::Facts facts;                       // the sizes, loops and conditions
  std::vector<analysis::Facts::Range> ranges;  // the loops
  ir::Expr expr;
  ir::Kernel kernel;
};

}  // namespace kiln::testing
