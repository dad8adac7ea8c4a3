// Refuses a launch that no CUDA device can start, as far as extents, shared memory and what a
// thread has of its own are constants; what depends on sizes the runtime checks at the call.
// Changes nothing.
//
// Refuses launches by what CUDA guarantees on every device, the extents of blockIdx and threadIdx
// and what a thread has of its own, and by the shared memory that the architecture has. Threads of
// a block together are validate_threads' matter, which stands where the user's bind() can still be
// named.
#include <algorithm>
#include <limits>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/constant_bytes.h"
#include "compiler/passes/pass_context.h"
#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// What a launch allocates: of buffers whose lives do not overlap, the compiler of CUDA C does not
/// promise to put one in the place of another.
class AllocatedBytes : public Visitor {
 public:
  int64_t shared = 0;
  int64_t local = 0;
  const Buffer* largest_local = nullptr;

 private:
  using Visitor::visit;
  void visit(const Allocate& allocate) override {
    const int64_t bytes = constant_bytes(*allocate.buffer).value_or(0);
    if (allocate.buffer->scope == Scope::Shared) {
      shared = saturated_sum(shared, bytes);
    } else {
      local = saturated_sum(local, bytes);
      if (bytes > largest_bytes_) largest_local = allocate.buffer.get();
      largest_bytes_ = std::max(largest_bytes_, bytes);
    }
    Visitor::visit(allocate);
  }
  static int64_t saturated_sum(int64_t a, int64_t b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
  }
  int64_t largest_bytes_ = 0;
};

void check(const Kernel& kernel, const LaunchNest& nest, std::string_view arch) {
  for (const For* loop : nest.axes) {
    const std::optional<int64_t> extent = as_const_int(loop->extent);
    if (!extent) continue;
    if (*extent > launch_limit(loop->thread)) {
      fail(ErrorKind::InvalidArgument, "THREAD_EXTENT",
           "{} of {} is {}, but CUDA allows at most {}; split the axis before bind()",
           name_of(loop->thread), called(kernel.name), *extent, launch_limit(loop->thread));
    }
  }

  AllocatedBytes walk;
  walk(nest.body);
  const int64_t most = gpu_arch(arch).shared_bytes_of_block;
  if (walk.shared > most) {
    fail(ErrorKind::ResourceExhausted, "SHARED_BYTES",
         "{} needs {} bytes of shared memory a block, but {} has at most {}; use smaller tiles",
         called(kernel.name), walk.shared, arch.empty() ? kDefaultGpuArch : arch, most);
  }
  if (walk.local > kLocalBytesOfThread) {
    at_line(kernel.buffer_lines, BufferRef(walk.largest_local), [&] {
      fail(ErrorKind::ResourceExhausted, "LOCAL_BYTES",
           "each GPU thread of {} needs {} bytes of its own, of which {} is the most, but CUDA "
           "allows at most {}; compute {} at a loop inside, or outside the threads",
           called(kernel.name), walk.local, walk.largest_local->name, kLocalBytesOfThread,
           walk.largest_local->name);
    });
  }
}

}  // namespace

ir::Kernel check_launch(ir::Kernel kernel, const PassContext& context) {
  for (const Stmt& launched : launched_statements(kernel.body)) {
    check(kernel, launch_nest(launched), context.target.arch);
  }
  return kernel;
}

}  // namespace kiln::passes
