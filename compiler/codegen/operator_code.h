#pragma once

#include <string_view>

#include "compiler/language/tables/operator.h"
#include "runtime/core/dtype.h"

namespace kiln::codegen {

/// The function of C for double that an operator of floating numbers is where no code is written
/// out for it; float's has an f behind. CUDA C has the same. Operators are spelled as C has them.
inline std::string_view c_function(language::Operator op) {
  switch (op) {
    case language::Operator::Abs: return "fabs";
    case language::Operator::Round: return "rint";
    default: return language::row_of(op).spelling;
  }
}

/// Whether the operator on float32 or float64 is written out for vectors of a CPU; see
/// llvm_elementary.h.
bool is_written_out(language::Operator op, DType type);

}  // namespace kiln::codegen
