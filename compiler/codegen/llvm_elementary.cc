// Which operators of float32 are written out: the families of functions, joined.
#include "compiler/codegen/llvm_elementary.h"

#include "compiler/codegen/operator_code.h"

namespace kiln::codegen {

const ElementaryFunction* find_elementary(language::Operator op) {
  for (const auto family : {arcs(), exponentials(), logarithms(), powers(), sines()}) {
    for (const ElementaryFunction& function : family) {
      if (function.op == op) return &function;
    }
  }
  return nullptr;
}

bool is_written_out(language::Operator op) { return find_elementary(op) != nullptr; }

}  // namespace kiln::codegen
