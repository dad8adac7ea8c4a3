#pragma once

#include "compiler/language/state/state_tables.h"

namespace kiln::language {

/// What a cache_read says: a memory scope, readers, and with axes the layout of what one of them
/// reads; or a cache_padded: one reader. Throws InvalidArgument.
void check_cache_read(const Step& step, const StateTables& tables);

/// What a cache_write needs: a stage with values of its own whose loops are free.
void check_cache_write(const Step& step, const StateTables& tables);

/// A reduction of the stage's own, and a dimension that its partial results have.
void check_rfactor(const Step& step, const StateTables& tables);

void check_set_scope(const Step& step, const StateTables& tables);

}  // namespace kiln::language
