// Where threads of a block have to wait for each other: in front of a statement that needs what
// another thread has stored since the last barrier, or overwrites what it may still read.
//
//   s[t] = A[t]    C[t] = s[31 - t]    ->    s[t] = A[t]    barrier    C[t] = s[31 - t]
//
// Which buffers threads need each other's elements of shared_buffers.h knows, and whether they do
// within one statement; a buffer that blocks share so is refused, since nothing orders blocks.
#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/shared_buffers.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

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
  void visit(const Atomic& node) override {
    if (shared_.contested.contains(node.buffer)) effects.written.insert(node.buffer);
    if (shared_.rewritten.contains(node.buffer)) effects.rewritten.insert(node.buffer);
    Visitor::visit(node);
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
