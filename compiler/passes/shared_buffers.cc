// Which elements the threads of a launch share: each buffer's accesses are asked, by
// analysis/affine, for two values of the axes of blocks, or of threads, that touch one element.
//
//   s[t] = A[t]    C[t] = s[31 - t]    ->    s is contested
#include "compiler/passes/shared_buffers.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/facts_of.h"
#include "runtime/core/error.h"

namespace kiln::passes {

using namespace ir;
using analysis::Access;
using analysis::LoopRange;
using analysis::Overlap;
using analysis::Place;
using analysis::Touch;

bool is_launch_axis(const For& loop) {
  return loop.loop_kind == LoopKind::ThreadIndex && loop.thread != ThreadAxis::VThread;
}

LaunchAxes::LaunchAxes(const Stmt& launched) {
  for (const For* loop : thread_loops(launched)) {
    if (loop->thread == ThreadAxis::VThread) continue;
    const auto [found, is_new] =
        ranges_.try_emplace(loop->thread, LoopRange{loop->var, loop->extent});
    Expr& extent = found->second.extent;
    if (!is_new && !equal_trees(extent, loop->extent)) extent = max(extent, loop->extent);
    same_.emplace(loop->var, found->second.var);
  }
}

std::vector<Expr> LaunchAxes::common(const std::vector<Expr>& exprs) const {
  std::vector<Expr> result;
  for (const Expr& expr : exprs)
    result.push_back(common(expr));
  return result;
}

analysis::Facts LaunchAxes::facts(const Kernel& kernel, const HostLoops& around) const {
  analysis::Facts facts = facts_of_sizes(kernel);
  for (const For* loop : around)
    facts.push_range(loop->var, index(0), loop->extent);
  for (const auto& [thread, range] : ranges_) {
    const bool is_fixed = !reads_memory(range.extent);
    if (is_block_axis(thread)) {
      facts.push_range(range.var, index(0), is_fixed ? range.extent : Expr());
    }
  }
  return facts;
}

bool LaunchAxes::is_uniform(const Expr& expr) const {
  const Expr with_axes = substitute(expr, same_);
  return std::ranges::none_of(ranges_, [&](const auto& entry) {
    return is_thread_axis(entry.first) && uses_var(with_axes, entry.second.var);
  });
}

Stmt LaunchAxes::barrier() const {
  for (const auto& [thread, range] : ranges_) {
    if (!is_thread_axis(thread)) continue;
    return For::make(Var::make(std::string(name_of(thread))), range.extent, LoopKind::ThreadIndex,
                     thread, Barrier::make());
  }
  return Barrier::make();
}

bool LaunchAxes::is_whole(const For& loop) const {
  return equal_trees(ranges_.at(loop.thread).extent, loop.extent);
}

SharedBuffers::SharedBuffers(const Kernel& kernel, const Stmt& launched, const LaunchAxes& axes,
                             const HostLoops& around)
    : kernel_(kernel),
      axes_(axes),
      facts_(axes.facts(kernel, around)),
      accesses_(analysis::accesses_of(launched)) {
  std::unordered_set<BufferRef> seen;
  for (const Access& access : accesses_) {
    if (!access.is_own() && seen.insert(access.buffer).second) judge(access.buffer);
  }
  (*this)(launched);
}

bool SharedBuffers::meet_in(const Stmt& stmt, const BufferRef& buffer,
                            const std::vector<const For*>& threads) {
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

void SharedBuffers::visit(const For& loop) {
  around_.push_back(&loop);
  (*this)(loop.body);
  around_.pop_back();
}

void SharedBuffers::visit(const Background& node) {
  is_background_ = true;
  (*this)(node.body);
  is_background_ = false;
}

void SharedBuffers::visit(const Store& store) {
  if (is_background_) late.insert(store.buffer);
}

void SharedBuffers::visit(const Allocate& allocate) {
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
void SharedBuffers::judge(const BufferRef& buffer) {
  std::vector<const Access*> accesses;
  for (const Access& access : accesses_) {
    if (access.buffer == buffer) accesses.push_back(&access);
  }
  const bool is_stored = std::ranges::any_of(accesses, &Access::is_store);
  if (!is_stored || accesses.size() < 2) return;
  look_across_blocks(buffer, accesses);
  const std::vector<Place> places = places_of(accesses, is_thread_axis);
  if (touch_of(places, accesses, is_thread_axis).touch == Touch::Never) return;
  contested.insert(buffer);
  std::erase_if(accesses, [](const Access* access) { return !access->is_store; });
  const std::vector<Place> stores = places_of(accesses, is_thread_axis);
  if (touch_of(stores, accesses, is_thread_axis).touch != Touch::Never) rewritten.insert(buffer);
}

void SharedBuffers::look_across_blocks(const BufferRef& buffer,
                                       const std::vector<const Access*>& accesses) {
  if (across_blocks) return;
  const std::vector<Place> places = places_of(accesses, is_block_axis);
  const Overlap overlap = touch_of(places, accesses, is_block_axis);
  if (overlap.touch == Touch::Never) return;
  across_blocks = {buffer,
                   analysis::in_words(buffer->name, places[overlap.first], places[overlap.second])};
}

/// The loops of the launch that are asked for: those that the buffer is one for.
std::vector<const For*> SharedBuffers::asked_loops(const Access& access, IsAsked is_asked) const {
  std::vector<const For*> asked;
  for (size_t i = around_.size(); i < access.loops.size(); ++i) {
    const For* loop = access.loops[i];
    if (is_launch_axis(*loop) && is_asked(loop->thread)) asked.push_back(loop);
  }
  return asked;
}

std::vector<Place> SharedBuffers::places_of(const std::vector<const Access*>& accesses,
                                            IsAsked is_asked) const {
  std::vector<Place> places;
  for (const Access* access : accesses) {
    const std::vector<const For*> asked = asked_loops(*access, is_asked);
    std::vector<LoopRange> loops;
    std::vector<Expr> conditions = axes_.common(access->conditions);
    for (const For* loop : access->loops) {
      // In one block the block's own index stands still; another block has all its threads.
      const bool is_axis = is_launch_axis(*loop);
      const bool moves =
          !is_axis || is_thread_axis(loop->thread) || std::ranges::find(asked, loop) != asked.end();
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
Place SharedBuffers::place_of(const Access& access, std::vector<LoopRange> loops,
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
Overlap SharedBuffers::touch_of(const std::vector<Place>& places,
                                const std::vector<const Access*>& accesses, IsAsked is_asked) {
  std::vector<VarRef> vars;
  for (const Access* access : accesses) {
    for (const For* loop : asked_loops(*access, is_asked)) {
      const VarRef& var = axes_[loop->thread].var;
      if (std::ranges::find(vars, var) == vars.end()) vars.push_back(var);
    }
  }
  return analysis::overlap_of(places, vars, facts_);
}

}  // namespace kiln::passes
