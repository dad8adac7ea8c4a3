#pragma once

#include "compiler/language/kernel.h"

namespace kiln::language {

/// The names of a kernel as a kernel file can hold them: identifiers, no two things of one name
/// where the text could not tell them apart. Names that are fine stay as they are.
SourceMap printable_names(const Kernel& kernel);

}  // namespace kiln::language
