#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/templates/contraction_numbers.h"

namespace kiln::autoschedule {

/// A contraction whose columns are those of an image that a window slides over.
struct Convolution {
  Tiling tiling;
  Image image;
  Numbers numbers;
  Machine machine;
  double element_bytes = 4;
  int64_t copied_lanes = 1;
  bool is_apart = false;     // columns of the result are no neighbours in the image
  ProductGroup patch_group;  // of steps of a patch
};

/// Nothing unless the stage is free, all sizes are known, and the window or what is read again and
/// again makes a copy of the image worth its time.
std::optional<Convolution> find_convolution(const Chooser& chooser, StageId stage);

/// Cycles of the copy of the lines that so many lines of the result read.
double copy_cycles(const Convolution& convolution, int64_t lines);
/// And of one element that is copied with its line.
double copied_element_cycles(const Convolution& convolution);

/// How many lines of the result are a block, of which each takes so many cycles: few copied twice,
/// and as much for each core to do.
int64_t lines_of_block(const Convolution& convolution, double line_cycles);
Parameter lines_parameter(const Convolution& convolution, int64_t preferred);

/// Of an image whose lines, side by side, are one line of columns; and the open numbers of tiles of
/// such a size.
ContractionSize size_in_one_line(const Convolution& convolution);
std::vector<Parameter> one_line_parameters(const StageGraph& graph, const Convolution& convolution,
                                           const ContractionSize& size, bool parallel);

/// Computes what is computed for the convolution alone in a loop of `reader`.
void pad_at(const StageGraph& graph, const Convolution& convolution, StageId reader, AxisId loop,
            StepWriter& steps);

/// Copies or pads the lines that a block of `id` reads where it begins, for `reader` to read.
void place_lines(const StageGraph& graph, const Convolution& convolution, StageId reader,
                 StageId id, AxisId blocks, StepWriter& steps);

/// `values` up to `most`, with `preferred` in its place.
Parameter sorted_parameter(std::string name, std::vector<int64_t> values, int64_t most,
                           int64_t preferred);

// The sketches of a convolution, and about how many cycles each takes for one image.

/// Tiles as of outer products, of one block of lines after the other, for which the lines of the
/// image are copied or padded first: they lie close together then, and only this core reads them.
Sketch lines_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel);
double lines_cycles(const Convolution& convolution);

/// Vectors of channels of the result, for some columns of a line: the filters are copied so that
/// channels are neighbours, an element of the image serves all of them, and of each line the result
/// is transposed into columns. However wide the image, its vectors are full.
Sketch channels_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel);
double channels_cycles(const Convolution& convolution, bool copies_filters);
int64_t channels_of_vectors(const Convolution& convolution);  // that a step computes
bool may_have_channels(const StageGraph& graph, const Convolution& convolution);

/// Without a window all pixels of an image are one line of columns: tile after tile of them is
/// copied, and multiplied with all rows, whatever lines it touches.
Sketch pixels_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel);
double pixels_cycles(const Convolution& convolution);
bool may_have_pixels(const StageGraph& graph, const Convolution& convolution);

/// An image in one row: all its elements are columns, and their patches are laid out in the order
/// in which tiles read them, in groups of steps where the CPU adds some at once. A block of rows is
/// written back as lines when it is computed.
Sketch patches_sketch(const StageGraph& graph, const Convolution& convolution, bool parallel);
double patches_cycles(const Convolution& convolution);
bool needs_padding_first(const StageGraph& graph, const Convolution& convolution);
bool may_have_patches(const StageGraph& graph, const Convolution& convolution);

}  // namespace kiln::autoschedule
