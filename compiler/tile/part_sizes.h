#pragma once

#include <cstdint>

#include "compiler/tile/find_elements.h"

namespace kiln::tile {

constexpr int64_t kLeast = 16;         // of each side of a product of tiles
constexpr int64_t kOpenExtent = 4096;  // of what the call brings
constexpr double kFewBlocks = 120;     // an H100 has 132 multiprocessors
/// Of a loop: so many parts tileiras (13.5) keeps as one; fewer it writes out, which then fetch
/// nothing ahead, take more registers, and take it seconds.
constexpr int64_t kFewParts = 12;

/// No more of a step than the extent needs.
int64_t shortened(int64_t step, int64_t extent);

/// How long an axis is; `what` has it. Throws as refuse_form does where the call says it.
int64_t known_extent(const language::Definition& definition, const ElementFinder& finder,
                     language::AxisId axis, std::string_view what);
/// All of such an axis in one part.
int64_t whole_step(int64_t extent);

/// The extent of an axis as far as it is known, and at least 1.
int64_t extent_or_guess(const language::Definition& definition, const ElementFinder& finder,
                        language::AxisId axis);

}  // namespace kiln::tile
