// For arguments of any stride, loops marked `vectorize` or `unroll` run one iteration after the
// other, but for those over a reduction, where the mark says in which order to add. For compact
// arguments nothing changes.
//
// Vectors of elements that lie apart are gathers: ten times the code, hardly faster, and the
// longest part of a compile.
//
// Takes back `vectorize` and `unroll` in the variant for arguments of any stride. A vectorised loop
// that stores nowhere by its variable is a reduction, and keeps its mark: in which order its values
// are added must not depend on how the arguments lie in memory.
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Whether some store in a statement goes to a place that depends on the variable.
class StoresBy : public Visitor {
 public:
  explicit StoresBy(VarRef var) : var_(std::move(var)) {}
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Store& store) override {
    for (const Expr& index : store.indices) {
      found = found || uses_var(index, var_);
    }
  }
  const VarRef var_;
};

class KeepStridedPlain : public Mutator {
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const Stmt body = (*this)(loop.body);
    LoopKind kind = loop.loop_kind;
    if (kind == LoopKind::Unrolled) kind = LoopKind::Serial;
    if (kind == LoopKind::Vectorized) {
      StoresBy stores(loop.var);
      stores(body);
      if (stores.found) kind = LoopKind::Serial;
    }
    if (body == loop.body && kind == loop.loop_kind) return &loop;
    return For::make(loop.var, loop.extent, kind, loop.thread, body);
  }
};

}  // namespace

Kernel keep_strided_plain(Kernel kernel, const PassContext& context) {
  if (context.layout == Layout::Strided) kernel.body = KeepStridedPlain()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
