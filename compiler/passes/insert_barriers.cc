#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/apart.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/passes.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// One variable for each axis of a launch, whichever loop it stands in, with its largest extent.
class LaunchAxes {
 public:
  explicit LaunchAxes(const Stmt& launched) {
    for (const For* loop : thread_loops(launched)) {
      if (loop->thread == ThreadAxis::VThread) continue;
      const auto [found, is_new] =
          ranges_.try_emplace(loop->thread, LoopRange{loop->var, loop->extent});
      Expr& extent = found->second.extent;
      if (!is_new && !equal_trees(extent, loop->extent)) extent = max(extent, loop->extent);
      same_.emplace(loop->var, found->second.var);
    }
  }

  const LoopRange& operator[](ThreadAxis axis) const { return ranges_.at(axis); }
  std::vector<Expr> common(const std::vector<Expr>& indices) const {
    std::vector<Expr> result;
    for (const Expr& expr : indices)
      result.push_back(substitute(expr, same_));
    return result;
  }

  /// Whether all threads of a block agree on the value.
  bool is_uniform(const Expr& expr) const {
    const Expr with_axes = substitute(expr, same_);
    return std::ranges::none_of(ranges_, [&](const auto& entry) {
      return is_thread_axis(entry.first) && uses_var(with_axes, entry.second.var);
    });
  }
  /// A barrier as a statement outside the loops over threads: in a loop over one axis of them.
  Stmt barrier() const {
    for (const auto& [thread, range] : ranges_) {
      if (!is_thread_axis(thread)) continue;
      return For::make(Var::make(std::string(name_of(thread))), range.extent, LoopKind::ThreadIndex,
                       thread, Barrier::make());
    }
    return Barrier::make();
  }
  bool is_whole(const For& loop) const {
    return equal_trees(ranges_.at(loop.thread).extent, loop.extent);
  }

 private:
  std::map<ThreadAxis, LoopRange> ranges_;
  Substitution same_;
};

bool is_launch_axis(const For& loop) {
  return loop.loop_kind == LoopKind::ThreadIndex && loop.thread != ThreadAxis::VThread;
}

/// Which buffers of a launch its threads share, and whether that can be ordered.
class SharedBuffers : public Visitor {
 public:
  SharedBuffers(const Kernel& kernel, const Stmt& launched, const LaunchAxes& axes)
      : kernel_(kernel), axes_(axes) {
    judge_all(accesses_of(launched), nullptr);
    (*this)(launched);
  }

  std::unordered_set<BufferRef> contested;  // a thread may need what another one stored
  std::unordered_set<BufferRef> rewritten;  // of those: two threads may store the same element

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    around_.push_back(&loop);
    (*this)(loop.body);
    around_.pop_back();
  }

  void visit(const Allocate& allocate) override {
    // Without such a loop in its body the buffer belongs to one thread. A loop over threads that
    // stand around already fills memory of the block.
    const auto divides = [&](const For* inner) {
      return is_launch_axis(*inner) && std::ranges::none_of(around_, [&](const For* loop) {
               return loop->thread == inner->thread;
             });
    };
    if (std::ranges::any_of(thread_loops(allocate.body), divides)) {
      const auto is_thread_loop = [](const For* loop) { return is_thread_axis(loop->thread); };
      if (std::ranges::any_of(around_, is_thread_loop)) {
        at_line(kernel_.buffer_lines, allocate.buffer, [&] {
          fail(ErrorKind::Unsupported, "PARTLY_SHARED",
               "{} is computed inside one GPU thread axis and by the threads of another; compute "
               "it inside all of them or outside",
               allocate.buffer->name);
        });
      }
      judge_all(accesses_of(allocate.body), allocate.buffer);
    }
    (*this)(allocate.body);
  }

  void judge_all(const std::vector<Access>& accesses, const BufferRef& only) {
    std::unordered_set<BufferRef> seen;
    for (const Access& access : accesses) {
      if (!access.is_store || !seen.insert(access.buffer).second) continue;
      if (only && access.buffer != only) continue;
      std::vector<Access> same;
      std::ranges::copy_if(accesses, std::back_inserter(same),
                           [&](const Access& other) { return other.buffer == access.buffer; });
      if (same.size() > 1) judge(same);
    }
  }

  void judge(const std::vector<Access>& accesses) {
    const BufferRef& buffer = accesses[0].buffer;
    if (!apart(accesses, is_block_axis)) {
      at_line(kernel_.buffer_lines, buffer, [&] {
        fail(ErrorKind::Unsupported, "GRID_DEPENDENCE",
             "GPU blocks of {} depend on each other through {}, and nothing orders blocks of one "
             "launch; bind axes that the dependence does not cross",
             kernel_.name, buffer->name);
      });
    }
    if (apart(accesses, is_thread_axis)) return;
    contested.insert(buffer);
    std::vector<Access> stores;
    std::ranges::copy_if(accesses, std::back_inserter(stores), &Access::is_store);
    if (!apart(stores, is_thread_axis)) rewritten.insert(buffer);
  }

  /// Whether no two values of these axes touch the same element.
  bool apart(const std::vector<Access>& accesses, bool (*is_asked)(ThreadAxis)) const {
    std::map<ThreadAxis, LoopRange> asked;
    std::vector<LoopRange> moving;
    std::vector<std::vector<Expr>> places;
    for (const Access& access : accesses) {
      places.push_back(axes_.common(access.indices));
      for (const For* loop : access.loops) {
        if (!is_launch_axis(*loop)) {
          moving.push_back({loop->var, loop->extent});
        } else if (is_asked(loop->thread)) {
          asked.emplace(loop->thread, axes_[loop->thread]);
        } else if (is_thread_axis(loop->thread)) {
          // Another block has all its threads; in one block the block's own index stands still.
          moving.push_back(axes_[loop->thread]);
        }
      }
    }
    std::vector<LoopRange> vars;
    for (const auto& [axis, range] : asked)
      vars.push_back(range);
    return vars.empty() || are_apart(places, vars, moving);
  }

  const Kernel& kernel_;
  const LaunchAxes& axes_;
  std::vector<const For*> around_;
};

/// What a statement does to contested buffers.
struct Effects {
  std::unordered_set<BufferRef> read;
  std::unordered_set<BufferRef> written;
  std::unordered_set<BufferRef> rewritten;  // of the written ones those that other stores may hit

  void add(const Effects& other) {
    read.insert(other.read.begin(), other.read.end());
    written.insert(other.written.begin(), other.written.end());
    rewritten.insert(other.rewritten.begin(), other.rewritten.end());
  }
  bool conflicts(const Effects& later) const {
    const auto is_in = [](const std::unordered_set<BufferRef>& set) {
      return [&set](const BufferRef& buffer) { return set.contains(buffer); };
    };
    return std::ranges::any_of(later.read, is_in(written)) ||
           std::ranges::any_of(later.written, is_in(read)) ||
           std::ranges::any_of(later.written, is_in(rewritten));
  }
};

class CollectEffects : public Visitor {
 public:
  explicit CollectEffects(const SharedBuffers& shared) : shared_(shared) {}
  Effects effects;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    if (shared_.contested.contains(load.buffer)) effects.read.insert(load.buffer);
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    if (shared_.contested.contains(store.buffer)) effects.written.insert(store.buffer);
    if (shared_.rewritten.contains(store.buffer)) effects.rewritten.insert(store.buffer);
    Visitor::visit(store);
  }
  const SharedBuffers& shared_;
};

/// Loops in each other whose bodies are walked twice, once for what an iteration leaves behind.
/// Inside of them it is taken to leave all its effects, since each walk doubles those of the loops
/// in it.
constexpr int kExactLoops = 6;

class PlaceBarriers {
 public:
  PlaceBarriers(const Kernel& kernel, const LaunchAxes& axes, const SharedBuffers& shared)
      : kernel_(kernel), axes_(axes), shared_(shared) {}

  Stmt operator()(const Stmt& stmt) {
    // Inside the threads a barrier stands in front of as much as needs none itself, so that none
    // stands in a loop without need.
    if (thread_loops_ > 0 && is_ordered(stmt)) return place_before(stmt);
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
  Effects effects_of(const Stmt& stmt) const {
    CollectEffects walk(shared_);
    walk(stmt);
    return std::move(walk.effects);
  }

  /// Whether no thread needs what another one does in the statement.
  bool is_ordered(const Stmt& stmt) const {
    const Effects effects = effects_of(stmt);
    return !effects.conflicts(effects);
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
    thread_loops_ += is_threads ? 1 : 0;
    const Stmt body = is_launch_axis(loop) ? (*this)(loop.body) : iterated(loop);
    thread_loops_ -= is_threads ? 1 : 0;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, body);
  }

  /// The body follows what came before the loop, or what an iteration leaves behind.
  Stmt iterated(const For& loop) {
    const Effects before = pending_;
    ++loops_;
    Stmt body;
    if (loops_ <= kExactLoops) {
      (*this)(loop.body);
      pending_.add(before);
      body = (*this)(loop.body);
    } else {
      pending_.add(effects_of(loop.body));
      body = (*this)(loop.body);
    }
    --loops_;
    if (!runs(loop)) pending_.add(before);
    return body;
  }

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
    for (const BufferRef& buffer : effects.written) {
      if (effects.read.contains(buffer)) {
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
    pending_.add(effects);
    if (needs_none) return stmt;
    return Block::make({thread_loops_ > 0 ? Barrier::make() : axes_.barrier(), stmt});
  }

  const Kernel& kernel_;
  const LaunchAxes& axes_;
  const SharedBuffers& shared_;
  int loops_ = 0;         // around the statement being placed, each iteration after another
  int thread_loops_ = 0;  // likewise, over threads
  Effects pending_;       // what was done since the last barrier
};

}  // namespace

ir::Kernel insert_barriers(ir::Kernel kernel, const PassContext&) {
  kernel.body = map_launches(kernel.body, [&](const Stmt& launched) -> Stmt {
    const LaunchAxes axes(launched);
    const SharedBuffers shared(kernel, launched, axes);
    if (shared.contested.empty()) return launched;
    return PlaceBarriers(kernel, axes, shared)(launched);
  });
  return kernel;
}

}  // namespace kiln::passes
