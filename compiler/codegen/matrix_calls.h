#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/analysis/matrix_product.h"

namespace kiln::codegen {

using analysis::MatrixFactor;
using analysis::MatrixProduct;

/// The macro of the prelude that says whether the architecture has instructions for a product.
std::string_view matrix_condition(const MatrixProduct& product);

/// Elements from a factor's first to the row that a lane (`kiln_lane`) loads, as CUDA C.
std::string place_of_lane(const MatrixFactor& rows);
std::string place_of_lane_in_columns(const MatrixFactor& columns);

/// Loads the fragments of a tile of rows, or of two tiles of columns, from `from` on.
std::string load_call(const MatrixFactor& factor, bool are_columns, std::string_view to,
                      std::string_view from);

/// Adds the products of all tiles to the sums. Where these are equally far apart it is a loop that
/// is unrolled: NVRTC takes an eighth less time than for a call of each.
std::vector<std::string> multiply_calls(const MatrixProduct& product, std::string_view sums);

}  // namespace kiln::codegen
