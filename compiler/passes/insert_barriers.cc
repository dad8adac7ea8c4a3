// Puts a Barrier between a store and an access of the same element by another thread of the block.
//
//   for threadIdx.x ... { s[threadIdx.x] = ... }  for threadIdx.x ... { C[...] = s[31 - t] }
//     ->    the same with a Barrier between the two loops
//
// In front of loops that need none inside. A loop over the threads of one around is divided.
// Refuses what no barrier can order: a dependence across blocks, or a barrier that not all threads
// of the block reach. Stands before flatten_storage, which loses the dimensions.
//
// Where threads of a block have to wait for each other: in front of a statement that needs what
// another thread has stored since the last barrier, or overwrites what it may still read.
//
//   s[t] = A[t]    C[t] = s[31 - t]    ->    s[t] = A[t]    barrier    C[t] = s[31 - t]
//
// Where copies of a buffer take turns, what an iteration writes is not what others still read:
//
//   for k: s[k % 2, t] = A[k, t]    barrier    C[t] += s[k % 2, 31 - t]      one barrier, not two
//
// What is stored in the background counts as stored where it is awaited, too:
//
//   for k: await 1    barrier    background { s[(k + 2) % 3, t] = .. }    C[t] += s[k % 3, 31 - t]
//
// Which buffers threads need each other's elements of shared_buffers.h knows, and whether they do
// within one statement; a buffer that blocks share so is refused, since nothing orders blocks.
#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/barrier_effects.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/shared_buffers.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// Loops in each other whose bodies are walked until it is known what an iteration leaves behind,
/// which takes two walks, and a third one where it touches copies in turn. Inside of them it is
/// taken to leave all its effects, since each walk doubles those of the loops in it.
constexpr int kExactLoops = 6;

class FindAwait : public Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Await&) override { found = true; }
};

bool awaits(const Stmt& stmt) {
  FindAwait walk;
  walk(stmt);
  return walk.found;
}

class PlaceBarriers {
 public:
  PlaceBarriers(const Kernel& kernel, const LaunchAxes& axes, SharedBuffers& shared)
      : kernel_(kernel), axes_(axes), shared_(shared) {}

  Stmt operator()(const Stmt& stmt) {
    // Inside the threads a barrier stands in front of as much as needs none itself, so that none
    // stands in a loop without need.
    if (!threads_.empty() && is_ordered(stmt)) return place_before(stmt);
    if (const Block* block = as<Block>(stmt)) return place(*block);
    if (const Allocate* allocate = as<Allocate>(stmt)) {
      return Allocate::make(allocate->buffer, (*this)(allocate->body));
    }
    if (const For* loop = as<For>(stmt); loop && !is_divergent(*loop)) return place(*loop);
    if (const If* node = as<If>(stmt); node && axes_.is_uniform(node->condition))
      return place(*node);
    return place_before(stmt);
  }

 private:
  Effects effects_of(const Stmt& stmt) const { return passes::effects_of(stmt, shared_, in_turn_); }

  /// Whether no thread needs what another one does in the statement, while each does it once. Asked
  /// again for each iteration that is walked. What is awaited others may need right behind.
  bool is_ordered(const Stmt& stmt) {
    const auto [known, is_new] = ordered_.try_emplace(stmt.get(), false);
    if (is_new) {
      const auto meet = [&](const BufferRef& buffer) {
        return shared_.meet_in(stmt, buffer, threads_);
      };
      const bool do_meet =
          awaits(stmt) || std::ranges::any_of(effects_of(stmt).inner_conflicts(), meet);
      ordered_[stmt.get()] = !do_meet;
    }
    return ordered_[stmt.get()];
  }

  /// Whether not all threads of the block run the loop equally often.
  bool is_divergent(const For& loop) const {
    return is_launch_axis(loop) ? !axes_.is_whole(loop) : !axes_.is_uniform(loop.extent);
  }

  /// Whether the loop is known to run at all, with the barriers in it.
  static bool runs(const For& loop) {
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    return extent && *extent > 0;
  }

  Stmt place(const Block& block) {
    std::vector<Stmt> body;
    for (const Stmt& stmt : block.body)
      body.push_back((*this)(stmt));
    return Block::make(std::move(body));
  }

  Stmt place(const For& loop) {
    const bool is_threads = is_thread_axis(loop.thread);
    if (is_threads) threads_.push_back(&loop);
    const auto with = [&](const Stmt& body) {
      return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, body);
    };
    const Stmt result = is_launch_axis(loop) ? with((*this)(loop.body)) : iterated(loop, with);
    if (is_threads) threads_.pop_back();
    return result;
  }

  /// The body follows what came before the loop, or what an iteration leaves behind.
  template <typename With>
  Stmt iterated(const For& loop, With&& with) {
    ++loops_;
    Stmt result;
    if (loops_ <= kExactLoops) {
      result = iterated_exactly(loop, with);
    } else {
      const Effects before = pending_;
      pending_.add(effects_of(loop.body));
      result = with((*this)(loop.body));
      if (!runs(loop)) pending_.add(before);
    }
    --loops_;
    return result;
  }

  template <typename With>
  Stmt iterated_exactly(const For& loop, With&& with) {
    const BuffersInTurn doubled = copies_in_turn(loop);
    // The first iteration waits in front of the loop, so that no other one does.
    const bool waits_before = !doubled.empty() && touches_pending(loop, doubled);
    if (waits_before) pending_ = {};
    const Effects before = pending_;
    const BuffersInTurn outside = in_turn_;
    for (const auto& [buffer, turns] : doubled)
      in_turn_[buffer] = turns;
    Effects start = before;
    Stmt body;
    while (true) {
      pending_ = start;
      body = (*this)(loop.body);
      Effects left = pending_;
      left.change(doubled, [](const Turns& turns, Copies copies) { return turns.later(copies); });
      if (start.includes(left)) break;
      start.add(left);
    }
    in_turn_ = outside;
    pending_.change(doubled, [](const Turns&, Copies) { return kAllCopies; });
    if (!runs(loop)) pending_.add(before);
    const Stmt result = with(body);
    return waits_before ? Block::make({barrier(), result}) : result;
  }

  /// Whether the loop needs copies of these buffers that threads have touched before it.
  bool touches_pending(const For& loop, const BuffersInTurn& buffers) const {
    return pending_.conflicts(passes::effects_of(loop.body, shared_, in_turn_, &buffers));
  }

  Stmt barrier() const { return threads_.empty() ? axes_.barrier() : Barrier::make(); }

  Stmt place(const If& node) {
    const Effects before = pending_;
    const Stmt then_body = (*this)(node.then_body);
    Effects after = std::exchange(pending_, before);
    const Stmt else_body = node.else_body ? (*this)(node.else_body) : Stmt();
    pending_.add(after);
    return If::make(node.condition, then_body, else_body, node.likely);
  }

  /// A statement that may hold no barrier gets one in front when it needs it.
  Stmt place_before(const Stmt& stmt) {
    const Effects effects = effects_of(stmt);
    for (const BufferRef& buffer : effects.written.buffers()) {
      if (effects.read.contains(buffer) && shared_.meet_in(stmt, buffer, threads_)) {
        at_line(kernel_.buffer_lines, buffer, [&] {
          fail(ErrorKind::Unsupported, "DIVERGENT_BARRIER",
               "threads of {} depend on each other through {} where not all of them wait "
               "together; bind axes that the dependence does not cross",
               kernel_.name, buffer->name);
        });
      }
    }
    const bool needs_none = !pending_.conflicts(effects);
    if (!needs_none) pending_ = {};
    // What is stored in the background nobody needs before it is awaited.
    if (as<Background>(stmt) == nullptr) pending_.add(effects);
    if (needs_none) return stmt;
    return Block::make({barrier(), stmt});
  }

  const Kernel& kernel_;
  const LaunchAxes& axes_;
  SharedBuffers& shared_;
  int loops_ = 0;  // around the statement being placed, each iteration after another
  std::vector<const For*> threads_;  // likewise, over threads
  std::unordered_map<const StmtNode*, bool> ordered_;
  BuffersInTurn in_turn_;  // by the iterations of a loop around
  Effects pending_;        // what was done since the last barrier
};

void refuse(const Kernel& kernel, const SharedBuffers::AcrossBlocks& dependence) {
  annotate(fmt::format("{} may be one element in different blocks", dependence.accesses), [&] {
    at_line(kernel.buffer_lines, dependence.buffer, [&] {
      fail(ErrorKind::Unsupported, "GRID_DEPENDENCE",
           "GPU blocks of {} depend on each other through {}, and nothing orders blocks of one "
           "launch; bind axes that the dependence does not cross",
           kernel.name, dependence.buffer->name);
    });
  });
}

}  // namespace

ir::Kernel insert_barriers(ir::Kernel kernel, const PassContext&) {
  kernel.body = map_launches(kernel.body, [&](const Stmt& launched, const HostLoops& around) {
    const LaunchAxes axes(launched);
    SharedBuffers shared(kernel, launched, axes, around);
    if (shared.across_blocks) refuse(kernel, *shared.across_blocks);
    if (shared.contested.empty()) return launched;
    return PlaceBarriers(kernel, axes, shared)(launched);
  });
  return kernel;
}

}  // namespace kiln::passes
