#pragma once

#include <optional>

#include "compiler/autoschedule/recognise/structure.h"

namespace kiln::autoschedule {

/// Where a window slides over the lines of an image, in a contraction whose columns are along them.
struct Image {
  AxisId line = 0;               // of the lines of the result
  language::TensorId source;     // what the window slides over
  bool is_computed_for = false;  // and is computed for this contraction alone, as padding is
  int64_t stride = 1;            // lines of the source for each line of the result
  int64_t reach = 0;             // and how many beyond the first one reads
  int64_t line_elements = 0;     // of one line of the source, in all channels
  int64_t lines = 0;
  int64_t images = 1;
};

/// Nothing unless all sizes are known.
std::optional<Image> find_image(const StageGraph& graph, StageId stage,
                                const Contraction& contraction);

/// An element of a tensor or something else, as padding says it.
struct Padded {
  language::TensorId tensor;
  ir::Expr around;  // what there is in its place
};
std::optional<Padded> find_padded(const ir::Expr& expr);

/// Whether a stage puts a constant around a tensor, and one other stage alone reads it.
bool is_padding_for(const StageGraph& graph, StageId source, StageId reader);

}  // namespace kiln::autoschedule
