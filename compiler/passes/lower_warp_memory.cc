// Spreads memory of a warp over the registers of its threads: each holds the elements that it
// stores, and gets those of others by shuffles.
//
//   allocate W: float32[32] scope(warp)
//   for threadIdx.x in 0..32 bind { W[threadIdx.x] = A[threadIdx.x] }
//   for threadIdx.x in 0..32 bind { C[threadIdx.x] = W[31 - threadIdx.x] }
//     ->
//   for threadIdx.x in 0..32 bind {
//     allocate W: float32[1] scope(local)
//     W[0] = A[threadIdx.x]
//     allocate W.read: float32[1] scope(local)
//     shuffle lane 31 - threadIdx.x of 32: W.read[0] = W[0]
//     C[threadIdx.x] = W.read[0]
//   }
//
// Refuses what threads do not store themselves, and reads to which not all of them come; of more
// threads than a warp has also what they read of each other. Stands
// after interleave_vthreads, which makes a buffer one for each, and before separate_launches and
// insert_barriers: nobody waits for registers.
//
// TVM's pass of this name; Halide's lower_warp_shuffles. The loops over threads inside of the
// buffer become one around it, so that a part of it is a thread's.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/launch.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/at_line.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/warp_reads.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

class HasWarpMemory : public Visitor {
 public:
  bool found = false;

 private:
  using Visitor::visit;
  void visit(const Allocate& allocate) override {
    found = found || allocate.buffer->scope == Scope::Warp;
    Visitor::visit(allocate);
  }
};

/// Makes loops over threadIdx.x statements of the thread `lane`.
class OneThread : public Mutator {
 public:
  OneThread(const VarRef& lane, int64_t lanes, bool is_in_threads)
      : lane_(lane), lanes_(lanes), is_in_threads_(is_in_threads) {}

  std::vector<BufferRef> shared;

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    if (loop.thread != ThreadAxis::ThreadX) return Mutator::visit(loop);
    const bool was = std::exchange(is_in_threads_, true);
    const Stmt body = (*this)(substitute(loop.body, {{loop.var, lane_}}));
    is_in_threads_ = was;
    if (is_const(loop.extent, lanes_)) return body;
    return If::make(less(lane_, loop.extent), body);
  }
  /// What all threads see lies around them.
  Stmt visit(const Allocate& allocate) override {
    if (is_in_threads_ || allocate.buffer->scope != Scope::Shared) return Mutator::visit(allocate);
    shared.push_back(allocate.buffer);
    return (*this)(allocate.body);
  }
  /// What stands outside the threads is done once.
  Stmt visit(const Store& store) override {
    return store.buffer->scope == Scope::Local ? Stmt(&store) : once(&store);
  }
  Stmt visit(const Atomic& node) override { return once(&node); }
  Stmt visit(const Check& node) override { return once(&node); }
  Stmt once(const Stmt& stmt) const {
    return is_in_threads_ ? stmt : If::make(equal(lane_, index(0)), stmt);
  }

  const VarRef& lane_;
  const int64_t lanes_;
  bool is_in_threads_;
};

/// Which elements of a buffer the threads of one loop store and load, loops over threads inside of
/// it left out.
class InOneLoop : public Visitor {
 public:
  explicit InOneLoop(const BufferRef& buffer) : buffer_(buffer) {}
  std::vector<const std::vector<Expr>*> stored;
  std::vector<const std::vector<Expr>*> loaded;

  /// A load of what another thread may store there would come before or after that, as it happens.
  bool is_ordered() const {
    return stored.empty() || std::ranges::all_of(loaded, [&](const auto* load) {
             return std::ranges::any_of(stored,
                                        [&](const auto* store) { return same(*load, *store); });
           });
  }

 private:
  static bool same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return equal_trees(x, y); });
  }
  using Visitor::visit;
  void visit(const For& loop) override {
    if (loop.thread != ThreadAxis::ThreadX) Visitor::visit(loop);
  }
  void visit(const Store& store) override {
    if (store.buffer == buffer_) stored.push_back(&store.indices);
    Visitor::visit(store);
  }
  void visit(const Load& load) override {
    if (load.buffer == buffer_) loaded.push_back(&load.indices);
    Visitor::visit(load);
  }
  const BufferRef& buffer_;
};

/// The buffer of a warp of which threads of one loop read what others store there, if there is one.
class FindUnordered : public Visitor {
 public:
  BufferRef found;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    const bool was = in_lanes_;
    in_lanes_ = in_lanes_ || loop.thread == ThreadAxis::ThreadX;
    Visitor::visit(loop);
    in_lanes_ = was;
  }
  void visit(const Allocate& allocate) override {
    if (allocate.buffer->scope == Scope::Warp) look_into(allocate);
    Visitor::visit(allocate);
  }
  void look_into(const Allocate& allocate) {
    const auto look = [&](const Stmt& body) {
      InOneLoop loop(allocate.buffer);
      loop(body);
      if (!loop.is_ordered()) found = allocate.buffer;
    };
    if (in_lanes_) look(allocate.body);
    for (const For* loop : thread_loops(allocate.body)) {
      if (loop->thread == ThreadAxis::ThreadX) look(loop->body);
    }
  }
  bool in_lanes_ = false;
};

/// Lets a layout learn from all stores to a buffer.
class LearnLayout : public Visitor {
 public:
  LearnLayout(WarpBuffer& buffer, analysis::Facts facts)
      : buffer_(buffer), facts_(std::move(facts)) {}
  bool agree = true;

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    facts_.push_range(loop.var, index(0), reads_memory(loop.extent) ? Expr() : loop.extent);
    Visitor::visit(loop);
    facts_.pop();
  }
  void visit(const Store& store) override {
    if (store.buffer == buffer_.whole)
      agree = buffer_.layout.learn(store.indices, buffer_.lane, facts_) && agree;
    Visitor::visit(store);
  }
  WarpBuffer& buffer_;
  analysis::Facts facts_;
};

class LowerWarpMemory : public Mutator {
 public:
  LowerWarpMemory(Kernel& kernel, const Stmt& launched, const HostLoops& around)
      : kernel_(kernel), facts_(facts_of_sizes(kernel)) {
    for (const For* loop : around)
      facts_.push_range(loop->var, index(0), loop->extent);
    for (const For* loop : thread_loops(launched))
      if (is_thread_axis(loop->thread)) threads_.push_back(loop);
    FindUnordered unordered;
    unordered(launched);
    if (unordered.found) {
      refuse(unordered.found,
             "threads read there what others store in the same loop, and nothing says which comes "
             "first; name shared");
    }
  }

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const bool is_x = loop.thread == ThreadAxis::ThreadX;
    const For* const outer = is_x ? std::exchange(lanes_loop_, &loop) : lanes_loop_;
    const bool is_divergent = !is_uniform(loop.extent, varying());
    facts_.push_range(loop.var, index(0), reads_memory(loop.extent) ? Expr() : loop.extent);
    divergent_ += is_divergent ? 1 : 0;
    const Stmt result = Mutator::visit(loop);
    divergent_ -= is_divergent ? 1 : 0;
    facts_.pop();
    lanes_loop_ = outer;
    return result;
  }
  Stmt visit(const If& node) override {
    const bool is_divergent = !is_uniform(node.condition, varying());
    divergent_ += is_divergent ? 1 : 0;
    const Stmt result = Mutator::visit(node);
    divergent_ -= is_divergent ? 1 : 0;
    return result;
  }
  Stmt visit(const Allocate& allocate) override {
    if (allocate.buffer->scope != Scope::Warp) return Mutator::visit(allocate);
    const Stmt lowered = lower(allocate);
    return (*this)(lowered);  // the others inside
  }

  void refuse(const BufferRef& buffer, std::string_view why) const {
    at_line(kernel_.buffer_lines, buffer, [&] {
      fail(ErrorKind::Unsupported, "MEMORY_SCOPE", "{} cannot lie in warp memory: {}", buffer->name,
           why);
    });
  }

  /// The variables that threads of one warp do not agree on.
  std::unordered_set<VarRef> varying() const {
    std::unordered_set<VarRef> result;
    const bool is_whole_warp = lanes().value_or(1) % kWarp == 0;
    for (const For* loop : threads_) {
      if (loop->thread == ThreadAxis::ThreadX || !is_whole_warp) result.insert(loop->var);
    }
    return result;
  }

  /// How many threads a block has along threadIdx.x; nothing where that is no constant.
  std::optional<int64_t> lanes() const {
    int64_t most = 0;
    for (const For* loop : threads_) {
      if (loop->thread != ThreadAxis::ThreadX) continue;
      const std::optional<int64_t> extent = as_const_int(loop->extent);
      if (!extent) return std::nullopt;
      most = std::max(most, *extent);
    }
    return most;
  }

  int64_t checked_lanes(const BufferRef& buffer) const {
    const std::optional<int64_t> lanes = this->lanes();
    if (lanes == 0)
      refuse(buffer,
             "no loop of its block is bound to threadIdx.x, whose threads would hold it; bind one");
    // More threads than a warp has hold what each of them reads itself; warp_reads.cc refuses the
    // rest.
    const bool is_whole = lanes && *lanes > kWarp && *lanes % kWarp == 0;
    if (!is_whole && (!lanes || *lanes > kWarp || (*lanes & (*lanes - 1)) != 0)) {
      refuse(buffer,
             fmt::format("its block has {} threads along threadIdx.x, but those of one warp "
                         "are 1, 2, 4, 8, 16 or 32; split the axis before bind()",
                         lanes ? std::to_string(*lanes) : "any number of"));
    }
    return *lanes;
  }

  Stmt lower(const Allocate& allocate) {
    const BufferRef& whole = allocate.buffer;
    const int64_t lanes = checked_lanes(whole);
    check_around(whole, lanes);
    const std::optional<WarpLayout> layout = WarpLayout::of(whole, lanes);
    if (!layout) refuse(whole, "how many elements a thread holds must be a constant");

    const VarRef lane = lanes_loop_ != nullptr ? lanes_loop_->var : inner_lane(allocate);
    WarpBuffer buffer{whole, nullptr,   *layout,
                      lane,  varying(), [&](std::string_view why) { refuse(whole, why); }};
    buffer.varying.insert(lane);
    analysis::Facts facts = facts_;
    if (lanes_loop_ == nullptr) facts.push_range(lane, index(0), index(lanes));
    OneThread one_thread(lane, lanes, lanes_loop_ != nullptr);
    const Stmt body = one_thread(allocate.body);
    LearnLayout learn(buffer, facts);
    learn(body);
    if (!learn.agree || !buffer.layout.is_known()) {
      refuse(whole, fmt::format("{}; bind one axis of it to threadIdx.x",
                                learn.agree ? "no thread stores elements of its own there"
                                            : "threads store different elements to it at once"));
    }
    buffer.part =
        Buffer::make(whole->name, whole->type, {index(buffer.layout.elements())}, Scope::Local);
    const auto line = kernel_.buffer_lines.find(whole);
    if (line != kernel_.buffer_lines.end()) {
      const SourceLocation at = line->second;
      kernel_.buffer_lines.emplace(buffer.part, at);
    }
    WarpReads reads(buffer, facts);
    Stmt result = reads(body);
    if (reads.stores_conditionally() || buffer.layout.is_padded())
      result = Block::make({cleared(buffer), result});
    result = Allocate::make(buffer.part, result);
    if (lanes_loop_ != nullptr) return result;
    result = For::make(lane, index(lanes), LoopKind::ThreadIndex, ThreadAxis::ThreadX, result);
    for (const BufferRef& around : one_thread.shared)
      result = Allocate::make(around, std::move(result));
    return result;
  }

  /// All threads of a warp must come there.
  void check_around(const BufferRef& buffer, int64_t lanes) const {
    const bool is_part = lanes_loop_ != nullptr && !is_const(lanes_loop_->extent, lanes);
    if (divergent_ > 0 || is_part) {
      refuse(buffer,
             "not all threads of the warp come to where it is computed; compute it outside "
             "of the loop or branch that some of them leave out");
    }
    if (lanes >= kWarp) return;
    // Rows of threads that share a warp.
    for (const For* loop : threads_) {
      const auto is_longer = [&](const For* other) {
        return other->thread == loop->thread && !equal_trees(other->extent, loop->extent);
      };
      if (loop->thread == ThreadAxis::ThreadX || std::ranges::none_of(threads_, is_longer))
        continue;
      refuse(buffer, fmt::format("threads along {} share its warp, and not all stages have as many "
                                 "of them; bind 32 threads to threadIdx.x",
                                 name_of(loop->thread)));
    }
  }

  /// The variable of a loop over all lanes inside, which the user has bound.
  static VarRef inner_lane(const Allocate& allocate) {
    VarRef lane = Var::make("threadIdx.x");
    std::optional<int64_t> most;
    for (const For* loop : thread_loops(allocate.body)) {
      if (loop->thread != ThreadAxis::ThreadX) continue;
      const std::optional<int64_t> extent = as_const_int(loop->extent);
      if (most && (!extent || *extent <= *most)) continue;
      most = extent;
      lane = loop->var;
    }
    return lane;
  }

  /// A thread passes on what it holds also where it holds nothing that is read.
  static Stmt cleared(const WarpBuffer& buffer) {
    const VarRef at = Var::make("e");
    const Expr zero = constant(Type{buffer.whole->type, 1}, 0);
    const int64_t elements = buffer.layout.elements();
    if (elements == 1) return Store::make(buffer.part, {index(0)}, zero);
    return For::make(at, index(elements), LoopKind::Serial, Store::make(buffer.part, {at}, zero));
  }

  Kernel& kernel_;
  analysis::Facts facts_;
  std::vector<const For*> threads_;  // of the launch
  const For* lanes_loop_ = nullptr;  // over threadIdx.x, around
  int divergent_ = 0;                // around: what threads do not agree on
};

}  // namespace

ir::Kernel lower_warp_memory(ir::Kernel kernel, const PassContext&) {
  HasWarpMemory look;
  look(kernel.body);
  if (!look.found) return kernel;
  kernel.body = map_launches(kernel.body, [&](const Stmt& launched, const HostLoops& around) {
    return LowerWarpMemory(kernel, launched, around)(launched);
  });
  return kernel;
}

}  // namespace kiln::passes
