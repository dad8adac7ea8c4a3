#pragma once

#include <string>

#include <kiln/program.h>

namespace kiln::cli {

/// A plan as lines: kernels with the bytes they move, then what lies where in memory.
std::string print_plan(const ProgramPlan& plan);

/// The arena of a plan as a picture, SVG that needs nothing beside it: kernels from left to right
/// with the bytes they move, a box for each value as long as its memory is needed.
std::string draw_plan(const ProgramPlan& plan);

}  // namespace kiln::cli
