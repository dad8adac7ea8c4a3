#pragma once

#include "compiler/ir/stmt.h"

namespace kiln::passes {

/// With the variable of a loop over so many neighbours taken out of quotients that are the same for
/// all of them, and out of remainders that follow each other.
///
///   (t*4 + v)/64  ->  t*4/64      (t*4 + v)%64  ->  t*4%64 + v,      of v in 0..4
ir::Expr out_of_quotients(const ir::Expr& expr, const ir::VarRef& var, int64_t extent);
ir::Stmt out_of_quotients(const ir::Stmt& body, const ir::VarRef& var, int64_t extent);

}  // namespace kiln::passes
