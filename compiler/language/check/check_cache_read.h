#pragma once

#include "compiler/language/state/axis_table.h"

namespace kiln::language {

/// What a cache_read says: a memory scope, readers, and with axes the layout of what one of them
/// reads; or a cache_padded: one reader. Throws InvalidArgument.
void check_cache_read(const Step& step, const AxisTable& table);

/// The scope that a step names in its tag is one of memory_scopes(). Throws InvalidArgument.
void check_scope(const Step& step);

}  // namespace kiln::language
