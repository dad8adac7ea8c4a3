#pragma once

#include <string>
#include <string_view>

namespace kiln::cli {

/// Lowered loops as a picture, SVG that needs nothing beside it: a box for each loop, coloured by
/// how it runs, and the statements inside.
std::string draw_loops(std::string_view lowered);

}  // namespace kiln::cli
