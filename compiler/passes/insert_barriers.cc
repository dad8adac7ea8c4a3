// Where threads of a block have to wait for each other: in front of a statement that needs what
// another thread has stored since the last barrier, or overwrites what it may still read.
//
//   s[t] = A[t]    C[t] = s[31 - t]    ->    s[t] = A[t]    barrier    C[t] = s[31 - t]
//
// Which buffers threads need each other's elements of is asked of analysis/affine, and so is
// whether they do within one statement; a buffer that blocks share so is refused, since nothing
// orders blocks.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/passes.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Access;
using analysis::LoopRange;
using analysis::Overlap;
using analysis::Place;
using analysis::Touch;

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
  Expr common(const Expr& expr) const { return substitute(expr, same_); }
  std::vector<Expr> common(const std::vector<Expr>& exprs) const {
    std::vector<Expr> result;
    for (const Expr& expr : exprs)
      result.push_back(common(expr));
    return result;
  }
  /// The sizes and the blocks of the launch.
  analysis::Facts facts(const Kernel& kernel) const {
    analysis::Facts facts = facts_of_sizes(kernel);
    for (const auto& [thread, range] : ranges_) {
      const bool is_fixed = !reads_memory(range.extent);
      if (is_block_axis(thread)) {
        facts.push_range(range.var, index(0), is_fixed ? range.extent : Expr());
      }
    }
    return facts;
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
      : kernel_(kernel),
        axes_(axes),
        facts_(axes.facts(kernel)),
        accesses_(analysis::accesses_of(launched)) {
    std::unordered_set<BufferRef> seen;
    for (const Access& access : accesses_) {
      if (!access.is_own() && seen.insert(access.buffer).second) judge(access.buffer);
    }
    (*this)(launched);
  }

  std::unordered_set<BufferRef> contested;  // a thread may need what another one stored
  std::unordered_set<BufferRef> rewritten;  // of those: two threads may store the same element

  /// Whether threads meet at an element of a contested buffer within the statement, each of them
  /// in the same iteration of the loops around it; `threads` are those of them over threads.
  bool meet_in(const Stmt& stmt, const BufferRef& buffer, const std::vector<const For*>& threads) {
    std::vector<LoopRange> axes;
    const auto add_axis = [&](const For* loop) {
      const LoopRange& axis = axes_[loop->thread];
      const bool is_known = std::ranges::find(axes, axis.var, &LoopRange::var) != axes.end();
      if (!is_known) axes.push_back(axis);
    };
    std::ranges::for_each(threads, add_axis);
    const size_t around = axes.size();
    std::vector<VarRef> vars;
    std::vector<Place> places;
    for (const Access& access : analysis::accesses_of(stmt)) {
      if (access.buffer != buffer) continue;
      axes.resize(around);
      std::vector<LoopRange> loops;
      std::vector<Expr> conditions = axes_.common(access.conditions);
      for (const For* loop : access.loops) {
        if (!is_launch_axis(*loop)) {
          loops.push_back({loop->var, axes_.common(loop->extent)});
        } else if (is_thread_axis(loop->thread)) {
          add_axis(loop);
          conditions.push_back(less(axes_[loop->thread].var, axes_.common(loop->extent)));
        }
      }
      for (const LoopRange& axis : axes) {
        if (std::ranges::find(vars, axis.var) == vars.end()) vars.push_back(axis.var);
      }
      loops.insert(loops.begin(), axes.begin(), axes.end());
      places.push_back(place_of(access, std::move(loops), std::move(conditions)));
    }
    return analysis::overlap_of(places, vars, facts_).touch != Touch::Never;
  }

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
      judge(allocate.buffer);
    }
    (*this)(allocate.body);
  }

  /// The buffer is one for all iterations of the loops inside of `around_`, and of the serial ones
  /// of `around_`: a thread may be in another iteration of those than its neighbour.
  void judge(const BufferRef& buffer) {
    std::vector<const Access*> accesses;
    for (const Access& access : accesses_) {
      if (access.buffer == buffer) accesses.push_back(&access);
    }
    const bool is_stored = std::ranges::any_of(accesses, &Access::is_store);
    if (!is_stored || accesses.size() < 2) return;
    require_no_dependence_across_blocks(buffer, accesses);
    const std::vector<Place> places = places_of(accesses, is_thread_axis);
    if (touch_of(places, accesses, is_thread_axis).touch == Touch::Never) return;
    contested.insert(buffer);
    std::erase_if(accesses, [](const Access* access) { return !access->is_store; });
    const std::vector<Place> stores = places_of(accesses, is_thread_axis);
    if (touch_of(stores, accesses, is_thread_axis).touch != Touch::Never) rewritten.insert(buffer);
  }

  void require_no_dependence_across_blocks(const BufferRef& buffer,
                                           const std::vector<const Access*>& accesses) {
    const std::vector<Place> places = places_of(accesses, is_block_axis);
    const Overlap overlap = touch_of(places, accesses, is_block_axis);
    if (overlap.touch == Touch::Never) return;
    const std::string both =
        analysis::in_words(buffer->name, places[overlap.first], places[overlap.second]);
    annotate(fmt::format("{} may be one element in different blocks", both), [&] {
      at_line(kernel_.buffer_lines, buffer, [&] {
        fail(ErrorKind::Unsupported, "GRID_DEPENDENCE",
             "GPU blocks of {} depend on each other through {}, and nothing orders blocks of one "
             "launch; bind axes that the dependence does not cross",
             kernel_.name, buffer->name);
      });
    });
  }

  using IsAsked = bool (*)(ThreadAxis);

  /// The loops of the launch that are asked for: those that the buffer is one for.
  std::vector<const For*> asked_loops(const Access& access, IsAsked is_asked) const {
    std::vector<const For*> asked;
    for (size_t i = around_.size(); i < access.loops.size(); ++i) {
      const For* loop = access.loops[i];
      if (is_launch_axis(*loop) && is_asked(loop->thread)) asked.push_back(loop);
    }
    return asked;
  }

  std::vector<Place> places_of(const std::vector<const Access*>& accesses, IsAsked is_asked) const {
    std::vector<Place> places;
    for (const Access* access : accesses) {
      const std::vector<const For*> asked = asked_loops(*access, is_asked);
      std::vector<LoopRange> loops;
      std::vector<Expr> conditions = axes_.common(access->conditions);
      for (const For* loop : access->loops) {
        // In one block the block's own index stands still; another block has all its threads.
        const bool is_axis = is_launch_axis(*loop);
        const bool moves = !is_axis || is_thread_axis(loop->thread) ||
                           std::ranges::find(asked, loop) != asked.end();
        if (moves)
          loops.push_back(is_axis ? axes_[loop->thread]
                                  : LoopRange{loop->var, axes_.common(loop->extent)});
        if (is_axis && !axes_.is_whole(*loop)) {
          conditions.push_back(less(axes_[loop->thread].var, axes_.common(loop->extent)));
        }
      }
      places.push_back(place_of(*access, std::move(loops), std::move(conditions)));
    }
    return places;
  }

  /// An element that is touched is one of the buffer: none of its extents is 0 there.
  Place place_of(const Access& access, std::vector<LoopRange> loops,
                 std::vector<Expr> conditions) const {
    for (const Expr& extent : axes_.common(access.buffer->shape)) {
      if (!as_const_int(extent))
        conditions.push_back(less(index(0), analysis::simplify(extent, facts_)));
    }
    Place place = analysis::place_of(access, std::move(loops));
    place.indices = axes_.common(access.indices);
    place.conditions = std::move(conditions);
    return place;
  }

  /// Whether two values of these axes touch the same element.
  Overlap touch_of(const std::vector<Place>& places, const std::vector<const Access*>& accesses,
                   IsAsked is_asked) {
    std::vector<VarRef> vars;
    for (const Access* access : accesses) {
      for (const For* loop : asked_loops(*access, is_asked)) {
        const VarRef& var = axes_[loop->thread].var;
        if (std::ranges::find(vars, var) == vars.end()) vars.push_back(var);
      }
    }
    return analysis::overlap_of(places, vars, facts_);
  }

  const Kernel& kernel_;
  const LaunchAxes& axes_;
  analysis::Facts facts_;
  const std::vector<Access> accesses_;
  std::vector<const For*> around_;
};

auto is_in(const std::unordered_set<BufferRef>& set) {
  return [&set](const BufferRef& buffer) { return set.contains(buffer); };
}

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
    return std::ranges::any_of(later.read, is_in(written)) ||
           std::ranges::any_of(later.written, is_in(read)) ||
           std::ranges::any_of(later.written, is_in(rewritten));
  }
  /// Buffers of which a thread may need here what another one does here.
  std::unordered_set<BufferRef> inner_conflicts() const {
    std::unordered_set<BufferRef> result = rewritten;
    std::ranges::copy_if(written, std::inserter(result, result.end()), is_in(read));
    return result;
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
  Effects effects_of(const Stmt& stmt) const {
    CollectEffects walk(shared_);
    walk(stmt);
    return std::move(walk.effects);
  }

  /// Whether no thread needs what another one does in the statement, while each does it once. Asked
  /// again for each iteration that is walked.
  bool is_ordered(const Stmt& stmt) {
    const auto [known, is_new] = ordered_.try_emplace(stmt.get(), false);
    if (is_new) {
      const auto meet = [&](const BufferRef& buffer) {
        return shared_.meet_in(stmt, buffer, threads_);
      };
      const bool do_meet = std::ranges::any_of(effects_of(stmt).inner_conflicts(), meet);
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
    const Stmt body = is_launch_axis(loop) ? (*this)(loop.body) : iterated(loop);
    if (is_threads) threads_.pop_back();
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
    pending_.add(effects);
    if (needs_none) return stmt;
    return Block::make({threads_.empty() ? axes_.barrier() : Barrier::make(), stmt});
  }

  const Kernel& kernel_;
  const LaunchAxes& axes_;
  SharedBuffers& shared_;
  int loops_ = 0;  // around the statement being placed, each iteration after another
  std::vector<const For*> threads_;  // likewise, over threads
  std::unordered_map<const StmtNode*, bool> ordered_;
  Effects pending_;  // what was done since the last barrier
};

}  // namespace

ir::Kernel insert_barriers(ir::Kernel kernel, const PassContext&) {
  kernel.body = map_launches(kernel.body, [&](const Stmt& launched) -> Stmt {
    const LaunchAxes axes(launched);
    SharedBuffers shared(kernel, launched, axes);
    if (shared.contested.empty()) return launched;
    return PlaceBarriers(kernel, axes, shared)(launched);
  });
  return kernel;
}

}  // namespace kiln::passes
