// Which operators of floats are written out: the families of functions, joined.
#include "compiler/codegen/llvm_elementary.h"

#include "compiler/codegen/operator_code.h"

namespace kiln::codegen {

const ElementaryFunction* find_elementary(language::Operator op, bool is_double) {
  for (const auto family : {arcs(), exponentials(), logarithms(), powers(), sines()}) {
    for (const ElementaryFunction& function : family) {
      const bool fits = !is_double || function.of == ElementaryFunction::Of::Floats;
      if (function.op == op && fits) return &function;
    }
  }
  return nullptr;
}

bool is_written_out(language::Operator op, DType type) {
  return find_elementary(op, type == DType::Float64) != nullptr;
}

}  // namespace kiln::codegen
