#pragma once

#include <span>

#include "compiler/language/tables/operator.h"
#include "compiler/tile/bytecode_code.h"

namespace kiln::tile {

/// A function of tiles, element by element; `type` is what its last operand has elements of.
Value write_function(CodeWriter& code, language::Operator function, DType type, TypeNumber result,
                     std::span<const Value> operands);

/// What `combiner` makes of a tile along a dimension, which the result does not have.
Value write_reduce(CodeWriter& code, language::Combiner combiner, DType type, TypeNumber result,
                   Value operand, uint32_t dimension);

}  // namespace kiln::tile
