#pragma once

#include "compiler/language/tables/operator.h"
#include "compiler/tile/program_writer.h"

namespace kiln::tile {

/// Whether a function of float32 that Apply does not know is made of those that it does.
bool is_composed(language::Operator function);

/// Such a function of a tile, as exact as the operator table says.
ValueId compose(ProgramWriter& writer, language::Operator function, ValueId operand);

}  // namespace kiln::tile
