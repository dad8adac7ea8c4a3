#pragma once

#include <optional>
#include <vector>

#include "compiler/autoschedule/templates/convolution.h"

namespace kiln::autoschedule {

/// Filters in the order in which vectors of channels read them: of a panel of so many channels each
/// step of the sum in turn, for all of them.
///
///   F[o, c, r, s] as P[o // 32, c, r, s, o % 32]     order {0, 1, 2, 3}, split 0, channels 32
struct FilterPanels {
  language::TensorId filters;
  std::vector<size_t> order;  // which dimension of the filters each one of the panels is
  size_t split = 0;           // the one of these that counts panels; their channels come last
  int64_t channels = 0;
};

/// Nothing where filters are not only read in another order, or the last panel would not be full.
std::optional<FilterPanels> filter_panels(const StageGraph& graph, const Convolution& convolution,
                                          int64_t channels);

/// Channels of a panel, where the filters lie in panels already.
std::optional<int64_t> channels_of_panels(const StageGraph& graph, const Convolution& convolution);

}  // namespace kiln::autoschedule
