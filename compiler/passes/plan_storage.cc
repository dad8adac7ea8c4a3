// Decides where each allocated buffer lives: small ones of constant size keep their Allocate
// (stack, registers, shared memory), all others become a part of the workspace of the call, or of
// that of each thread inside of a parallel loop.
//
//   allocate s1: float32[1, n] scope(global) { S }    ->    S, and an entry in kernel.workspace
//
//   for i in 0..n parallel { allocate s: float32[m] .. }
//     ->
//   workspace s: float32[m] at 0, floordiv(m + 15, 16)*64 bytes per_thread
//
// Bytes are expressions over the sizes; their overflow is found when the runtime evaluates them.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/print.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/constant_bytes.h"
#include "compiler/passes/notes.h"
#include "compiler/passes/pass_context.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kStackBytes = 4096;  // of one buffer, all lanes of it
// Of all buffers, all copies of them: an eighth of what threads have by default. LLVM gives each
// copy a place of its own, whether or not they are used at the same time.
constexpr int64_t kStackOfKernel = int64_t{1} << 20;
constexpr int64_t kAlignment = 64;
constexpr int64_t kLanes = 64;  // as many as vectorize_loops makes of one loop

/// What loops a statement contains.
class FindsLoops : public Visitor {
 public:
  bool parallel = false;
  bool threads = false;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    parallel = parallel || loop.loop_kind == LoopKind::Parallel;
    threads = threads || loop.loop_kind == LoopKind::ThreadIndex;
    Visitor::visit(loop);
  }
};

class PlanStorage : public Mutator {
 public:
  PlanStorage(Kernel& kernel, const PassContext& context)
      : kernel_(kernel), has_threads_(context.target.traits().has_threads) {
    for (const VarRef& size : kernel.sizes)
      facts_.push_range(size, index(0), nullptr);
  }

  Expr call_bytes = index(0);
  Expr per_thread_bytes = index(0);

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const bool was_demoted = demoted_;
    demoted_ = false;
    loops_.push_back(&loop);
    const Stmt body = (*this)(loop.body);
    loops_.pop_back();

    LoopKind kind = loop.loop_kind;
    if (kind == LoopKind::Vectorized && demoted_) {
      // The workspace has one place, not one a lane.
      kind = LoopKind::Serial;
      add_note(kernel_,
               fmt::format("{} runs serially: what it computes on the way is too large for "
                           "one copy a lane",
                           loop.var->name));
    }
    demoted_ = demoted_ || was_demoted;
    if (body == loop.body && kind == loop.loop_kind) return &loop;
    return For::make(loop.var, loop.extent, kind, loop.thread, body);
  }

  Stmt visit(const Allocate& allocate) override {
    if (keeps_allocate(allocate)) {
      if (has_threads_) return on_chip(allocate);
      stack_bytes_ += bytes_on_stack(allocate);
      return Mutator::visit(allocate);
    }

    const bool per_thread = is_in(LoopKind::Parallel);
    Expr& used = per_thread ? per_thread_bytes : call_bytes;
    // Of a GPU it is memory of the device, whatever it was asked to be.
    const auto [buffer, body] = has_threads_
                                    ? in_scope(allocate.buffer, Scope::Global, allocate.body)
                                    : std::pair(allocate.buffer, allocate.body);
    kernel_.workspace.push_back({buffer, used, per_thread});
    used = analysis::simplify(used + ceildiv(bytes_of(*buffer), index(kAlignment)) * kAlignment,
                              facts_);
    demoted_ = true;
    return (*this)(body);
  }

  /// The buffer in this scope, in what is done with it, too.
  static std::pair<BufferRef, Stmt> in_scope(const BufferRef& buffer, Scope scope,
                                             const Stmt& body) {
    if (buffer->scope == scope) return {buffer, body};
    const BufferRef placed =
        Buffer::make(buffer->name, buffer->type, buffer->shape, scope, buffer->strides,
                     scope == Scope::Shared ? buffer->swizzle : 0);
    return {placed, replace_buffers(body, {{buffer, placed}})};
  }

  bool keeps_allocate(const Allocate& allocate) const {
    const std::optional<int64_t> bytes = constant_bytes(*allocate.buffer);
    FindsLoops inside;
    inside(allocate.body);
    if (has_threads_) {
      const bool on_chip = is_in(LoopKind::ThreadIndex);
      if (on_chip && !bytes) {
        at_line(kernel_.buffer_lines, allocate.buffer, [&] {
          fail(ErrorKind::Unsupported, "LOCAL_SIZE",
               "{} is computed inside GPU threads, so its shape must be constant; {} is not",
               allocate.buffer->name, shape_text(*allocate.buffer));
        });
      }
      return on_chip || (bytes && *bytes <= kStackBytes && !inside.threads);
    }
    // A parallel body reaches the workspace from anywhere, but not its caller's stack.
    return bytes && *bytes <= kStackBytes / copies_around(LoopKind::Vectorized) &&
           stack_bytes_ + bytes_on_stack(allocate) <= kStackOfKernel && !inside.parallel;
  }

  /// Of a buffer that is at most kStackBytes in all lanes.
  int64_t bytes_on_stack(const Allocate& allocate) const {
    const int64_t bytes = *constant_bytes(*allocate.buffer);
    return bytes * copies_around(LoopKind::Vectorized) * copies_around(LoopKind::Unrolled);
  }

  /// What a block computes outside its threads is for all of them.
  Stmt on_chip(const Allocate& allocate) {
    const bool in_threads =
        std::ranges::any_of(loops_, [](const For* loop) { return is_thread_axis(loop->thread); });
    const bool in_blocks = is_in(LoopKind::ThreadIndex);
    const Scope scope = in_blocks && !in_threads ? Scope::Shared : Scope::Local;
    const auto [placed, body] = in_scope(allocate.buffer, scope, (*this)(allocate.body));
    return Allocate::make(placed, body);
  }

  /// How often the loops of this kind make a copy of what stands inside of them: a lane each, or an
  /// iteration written out.
  int64_t copies_around(LoopKind kind) const {
    const int64_t most = kind == LoopKind::Vectorized ? kLanes : kStackOfKernel;
    int64_t copies = 1;
    for (const For* loop : loops_) {
      if (loop->loop_kind != kind) continue;
      copies *= std::clamp<int64_t>(as_const_int(loop->extent).value_or(most), 1, most);
      if (copies > kStackOfKernel) return kStackOfKernel;
    }
    return copies;
  }

  bool is_in(LoopKind kind) const {
    return std::ranges::any_of(loops_, [&](const For* loop) { return loop->loop_kind == kind; });
  }

  Expr bytes_of(const Buffer& buffer) const {
    Expr bytes = index(size_of(buffer.type));
    for (const Expr& extent : extents_in_memory(buffer)) {
      Expr most = largest(extent, buffer);
      if (!analysis::can_prove(less_equal(index(0), most), facts_)) most = max(most, index(0));
      bytes = bytes * most;
    }
    return bytes;
  }

  /// The largest value over the loops around, innermost first, since extents may use outer
  /// variables.
  Expr largest(Expr extent, const Buffer& buffer) const {
    for (size_t i = loops_.size(); i-- > 0 && extent;) {
      const For& loop = *loops_[i];
      if (!uses_var(extent, loop.var)) continue;
      extent = analysis::bounds_of(extent, {{loop.var, index(0), loop.extent}}, facts_).max;
    }
    if (!extent) {
      at_line(kernel_.buffer_lines, BufferRef(&buffer), [&] {
        fail(ErrorKind::Unsupported, "STORAGE_SIZE",
             "the size of {} depends on a loop in a way that has no known bound: {}", buffer.name,
             shape_text(buffer));
      });
    }
    return extent;
  }

  static std::string shape_text(const Buffer& buffer) {
    std::string text;
    for (const Expr& extent : buffer.shape)
      text += (text.empty() ? "" : ", ") + print(extent);
    return "[" + text + "]";
  }

  Kernel& kernel_;
  const bool has_threads_;
  analysis::Facts facts_;
  std::vector<const For*> loops_;
  int64_t stack_bytes_ = 0;  // of what stays on the stack
  bool demoted_ = false;     // something in the loop being visited went to the workspace
};

}  // namespace

ir::Kernel plan_storage(ir::Kernel kernel, const PassContext& context) {
  PlanStorage mutator(kernel, context);
  kernel.body = mutator(kernel.body);
  kernel.workspace_bytes = mutator.call_bytes;
  kernel.workspace_bytes_per_thread = mutator.per_thread_bytes;
  return kernel;
}

}  // namespace kiln::passes
