// On CUDA, refuses a block of threads that no device can run: more than 1024 threads, or more than
// an axis may have, as far as the extents are constants; and a loop inside another one over the
// same threads, unless it fills shared memory. Changes nothing. Stands where bind() can still be
// named: loops still are what the user bound.
//
// Checks what bind() asked for, while the loops are still the user's and have lines: the extent of
// each axis, the threads of a block together, and one axis bound twice in a nest. Limits of a block
// are CUDA's of every device (ir/launch.h); extents that are not constants the runtime checks.
#include <map>
#include <optional>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/pass_context.h"
#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// The loop of the largest constant extent of each thread axis.
std::map<ThreadAxis, const For*> longest_loops(const Stmt& launched) {
  std::map<ThreadAxis, const For*> result;
  for (const For* loop : thread_loops(launched)) {
    const std::optional<int64_t> extent = as_const_int(loop->extent);
    if (!extent || !is_thread_axis(loop->thread)) continue;
    const For*& longest = result[loop->thread];
    if (longest == nullptr || *as_const_int(longest->extent) < *extent) longest = loop;
  }
  return result;
}

/// The sentence names the line of the longest axis: that is the one worth splitting.
void check_extents(const Kernel& kernel, const std::map<ThreadAxis, const For*>& loops) {
  int64_t threads = 1;
  std::string text;
  const For* longest = nullptr;
  for (const auto& [axis, loop] : loops) {
    const int64_t extent = *as_const_int(loop->extent);
    if (longest == nullptr || *as_const_int(longest->extent) <= extent) longest = loop;
    if (extent > launch_limit(axis)) {
      at_line(kernel.loop_lines, loop->var, [&, axis = axis] {
        fail(ErrorKind::InvalidArgument, "THREAD_EXTENT",
             "{} of {} is {}, but CUDA allows at most {}; split the axis before bind()",
             name_of(axis), called(kernel.name), extent, launch_limit(axis));
      });
    }
    threads *= std::max<int64_t>(extent, 1);
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name_of(axis), extent);
  }
  if (threads <= kThreadsOfBlock) return;
  at_line(kernel.loop_lines, longest->var, [&] {
    fail(ErrorKind::InvalidArgument, "BLOCK_THREADS",
         "{} has {} threads a block ({}), but CUDA allows at most {}; split an axis before bind()",
         called(kernel.name), threads, text, kThreadsOfBlock);
  });
}

/// Whether a statement stores to memory that the threads of a block share, and to no other.
class StoresToShared : public Visitor {
 public:
  bool result = true;

 private:
  using Visitor::visit;
  void visit(const Allocate& allocate) override {
    own_.insert(allocate.buffer);
    Visitor::visit(allocate);
  }
  void visit(const Store& store) override { note(store.buffer); }
  void visit(const Atomic& node) override { note(node.buffer); }
  void note(const BufferRef& buffer) {
    const bool is_common = buffer->scope == Scope::Shared || buffer->scope == Scope::Warp;
    if (!is_common && !own_.contains(buffer)) result = false;
  }
  std::unordered_set<BufferRef> own_;
};

bool fills_shared_memory(const For& loop) {
  StoresToShared walk;
  walk(loop.body);
  return is_thread_axis(loop.thread) && walk.result;
}

/// One index cannot stand for two loops at once, but where threads fill memory for each other:
/// there it does not matter which of them does what.
void check_nesting(const Kernel& kernel, const For& loop) {
  for (const For* inner : thread_loops(loop.body)) {
    if (inner->thread != loop.thread || loop.thread == ThreadAxis::VThread) continue;
    if (fills_shared_memory(*inner)) continue;
    at_line(kernel.loop_lines, inner->var, [&] {
      fail(ErrorKind::Unsupported, "NESTED_BIND",
           "{} binds {} in a loop that stands inside another loop bound to {}; bind one of the two "
           "to another axis",
           called(kernel.name), name_of(loop.thread), name_of(loop.thread));
    });
  }
}

}  // namespace

ir::Kernel validate_threads(ir::Kernel kernel, const PassContext&) {
  for (const Stmt& launched : launched_statements(kernel.body)) {
    check_extents(kernel, longest_loops(launched));
    for (const For* loop : thread_loops(launched))
      check_nesting(kernel, *loop);
  }
  return kernel;
}

}  // namespace kiln::passes
