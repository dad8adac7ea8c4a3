#pragma once

#include <cstdint>
#include <functional>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/language/kernel.h"
#include "compiler/language/tables/step.h"

namespace kiln::autoschedule {

/// Whether a sum of products would have tiles.
using HasTiles = std::function<bool(const StageGraph&, StageId)>;

/// Of which factors stages are made: of those that are padded, or of all that are more than an
/// element.
enum class InnerFactors : uint8_t { Padded, Computed };

/// Adds cache_padded for factors of products that are padded, or computed, inside of the product,
/// where that makes a product of the sum that has tiles:
///
///   C[f, y] = sum[c, r](if_then_else(inside, X[c, y + r - 1], 0) * W[f, c, r])
///   C[i, j] = sum[k](float32(max(A[i, k], 0)) * float32(B[k, j]))
///
/// Stages that have steps are left as they are.
language::Schedule with_padded_stages(const language::Kernel& kernel, language::Schedule given,
                                      InnerFactors factors, const HasTiles& has_tiles);

/// On CPUs.
bool has_vector_tiles(const Chooser& chooser, StageId stage);

}  // namespace kiln::autoschedule
