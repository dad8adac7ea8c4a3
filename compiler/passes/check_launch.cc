// Refuses launches by what CUDA guarantees on every device: the extents of blockIdx and threadIdx,
// and static shared memory. Threads of a block together are validate_threads' matter, which stands
// where the user's bind() can still be named.
#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/passes.h"
#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Static shared memory of a block on every device; more is dynamic, and has to be asked for.
constexpr int64_t kSharedBytes = 48 * 1024;

class SharedBytes : public Visitor {
 public:
  int64_t total = 0;

 private:
  using Visitor::visit;
  void visit(const Allocate& allocate) override {
    if (allocate.buffer->scope == Scope::Shared) {
      int64_t bytes = size_of(allocate.buffer->type);
      for (const Expr& extent : extents_in_memory(*allocate.buffer))
        bytes *= as_const_int(extent).value_or(0);
      total += bytes;
    }
    Visitor::visit(allocate);
  }
};

void check(const std::string& kernel, const LaunchNest& nest) {
  for (const For* loop : nest.axes) {
    const std::optional<int64_t> extent = as_const_int(loop->extent);
    if (!extent) continue;
    if (*extent > launch_limit(loop->thread)) {
      fail(ErrorKind::InvalidArgument, "THREAD_EXTENT",
           "{} of {} is {}, but CUDA allows at most {}; split the axis before bind()",
           name_of(loop->thread), called(kernel), *extent, launch_limit(loop->thread));
    }
  }

  SharedBytes walk;
  walk(nest.body);
  if (walk.total > kSharedBytes) {
    fail(ErrorKind::Unsupported, "SHARED_BYTES",
         "{} needs {} bytes of shared memory a block; this version uses at most {}", called(kernel),
         walk.total, kSharedBytes);
  }
}

}  // namespace

ir::Kernel check_launch(ir::Kernel kernel, const PassContext&) {
  for (const Stmt& launched : launched_statements(kernel.body)) {
    check(kernel.name, launch_nest(launched));
  }
  return kernel;
}

}  // namespace kiln::passes
