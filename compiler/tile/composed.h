#pragma once

#include "compiler/language/tables/operator.h"
#include "compiler/tile/program_writer.h"

namespace kiln::tile {

/// A function of a tile for which is_composed(), as exact as the operator table says.
ValueId compose(ProgramWriter& writer, language::Operator function, ValueId operand);

}  // namespace kiln::tile
