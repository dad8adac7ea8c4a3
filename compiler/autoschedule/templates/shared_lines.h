#pragma once

#include <cstdint>
#include <vector>

#include "compiler/analysis/linear_layout.h"
#include "compiler/autoschedule/templates/step_writer.h"

namespace kiln::autoschedule {

/// Lines of a tile in shared memory, and what the threads of a warp do with them.
struct SharedLines {
  int64_t lines = 0;
  int64_t width = 0;  // elements
  int64_t element_bytes = 0;
  struct Touch {
    analysis::LinearLayout lanes;  // "lane" -> "line" and "element", which need not be there all
    int64_t bytes = 0;             // of each at once
  };
  std::vector<Touch> touches;
  bool may_swizzle = true;
};

/// How they are spread over the banks: each is longer by some elements, or 16 bytes of it change
/// places (ir/swizzle.h), or neither.
struct Spread {
  int64_t padding = 0;
  int64_t swizzle = 0;
};

/// "line" and "element" to where they lie, in elements.
analysis::LinearLayout layout_of(const SharedLines& lines, const Spread& spread);

/// With the fewest cycles for all touches; of several such ones with the least memory, and rather
/// padded than swizzled.
Spread best_spread(const SharedLines& lines);

/// The steps that say so of a stage, whose lines are neighbours along `axis`; `factor` divides the
/// width.
void write_spread(StepWriter& steps, StageId stage, AxisId axis, const Spread& spread,
                  int64_t factor);

}  // namespace kiln::autoschedule
