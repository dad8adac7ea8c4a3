#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/analysis/matrix_product.h"

namespace kiln::codegen {

using analysis::MatrixFactor;
using analysis::MatrixProduct;

/// The macro of the prelude that says whether the architecture has instructions for a product.
std::string_view matrix_condition(const MatrixProduct& product);

/// What is so many elements behind the place of a lane (`kiln_lane`) in a factor, as CUDA C.
using PlaceBehind = std::function<std::string(int64_t)>;

/// Loads the fragment of a tile of rows, or of two tiles of columns, by a call or four.
std::vector<std::string> load_calls(const MatrixFactor& factor, bool are_columns,
                                    std::string_view to, const PlaceBehind& place);

/// Adds the products of all tiles to the sums. Where these are equally far apart it is a loop that
/// is unrolled: NVRTC takes an eighth less time than for a call of each.
std::vector<std::string> multiply_calls(const MatrixProduct& product, std::string_view sums);

}  // namespace kiln::codegen
