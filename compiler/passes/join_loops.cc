// Joins loops that stand one behind the other and go through the same elements, so that these come
// to the core once.
//
//   for j in 0..500 { E[j*64 ..] = exp(X[j*64 ..]) }
//   total = 0.0
//   for k in 0..500 { total = total + E[k*64 ..] }
//     ->
//   total = 0.0
//   for j in 0..500 { E[j*64 ..] = exp(X[j*64 ..])    total = total + E[j*64 ..] }
//
// Loops around others are joined where some of these are then. Where one loop has several
// iterations for each of the other, these are unrolled. Each sum keeps its order.
//
// Loop fusion where no dependence is turned round: an iteration may need what the other loop did in
// the same one alone (Kennedy and McKinley, "Maximizing loop parallelism and improving data
// locality via loop fusion and distribution", 1993).
//
// While indices are per dimension and vectors are loops; before buffers get a place.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/vector_unit.h"
#include "compiler/passes/carried.h"
#include "compiler/passes/facts_of.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/statement_list.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::Access;

// Iterations of one loop for one of the other, at most: of 64 lanes and of one register.
constexpr int64_t kMostSteps = 8;
// Places that a loop touches, of which each two are compared, and statements between two loops.
constexpr size_t kMostPlaces = 32;
constexpr size_t kMostBetween = 8;
// Of a tile that goes by L1 from one loop to the next.
constexpr int64_t kLeastTileBytes = 512;
constexpr int64_t kMostTileBytes = 16 * 1024;

/// Two loops as one: what each does in an iteration of it.
struct Pair {
  VarRef var;
  Expr extent;
  Stmt first;
  Stmt second;
};

Stmt in_steps(const For& loop, const VarRef& var, int64_t steps) {
  if (steps == 1) return substitute(loop.body, {{loop.var, var}});
  const VarRef step = Var::make(loop.var->name);
  return For::make(step, index(steps), LoopKind::Unrolled,
                   substitute(loop.body, {{loop.var, Expr(var) * steps + step}}));
}

std::optional<Pair> pair_of(const For& a, const For& b) {
  const bool is_joinable = a.loop_kind == LoopKind::Serial || a.loop_kind == LoopKind::Parallel;
  if (!is_joinable || a.loop_kind != b.loop_kind) return std::nullopt;
  if (equal_trees(a.extent, b.extent)) return Pair{a.var, a.extent, a.body, in_steps(b, a.var, 1)};
  const int64_t of_a = as_const_int(a.extent).value_or(0);
  const int64_t of_b = as_const_int(b.extent).value_or(0);
  const int64_t least = std::min(of_a, of_b);
  if (a.loop_kind != LoopKind::Serial || least < 2 || of_a % least != 0 || of_b % least != 0 ||
      std::max(of_a, of_b) > kMostSteps * least)
    return std::nullopt;
  const VarRef var = of_a == least ? a.var : b.var;
  return Pair{var, index(least), in_steps(a, var, of_a / least), in_steps(b, var, of_b / least)};
}

/// Whether an access moves with the variable, and the other one as far.
bool go_together(const Access& a, const Access& b, const VarRef& var) {
  if (a.buffer != b.buffer || a.is_own() || b.is_own()) return false;
  bool moves = false;
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const std::optional<int64_t> stride = analysis::stride_of(a.indices[d], var);
    if (!stride || stride != analysis::stride_of(b.indices[d], var)) return false;
    moves = moves || *stride != 0;
  }
  return moves;
}

/// Whether one of them names several elements at once, as instructions for products of groups do.
bool have_vectors(const std::vector<Access>& accesses) {
  return std::ranges::any_of(accesses, [](const Access& access) {
    return std::ranges::any_of(access.indices,
                               [](const Expr& index) { return index->type.lanes > 1; });
  });
}

/// Bytes of a buffer that an access goes through, in all loops around it that are by other
/// elements.
int64_t bytes_of(const Access& access) {
  constexpr int64_t kMany = int64_t{1} << 32;
  int64_t bytes = size_of(access.buffer->type);
  for (const For* loop : access.loops) {
    const bool is_used = std::ranges::any_of(
        access.indices, [&](const Expr& index) { return uses_var(index, loop->var); });
    if (!is_used) continue;
    const int64_t extent = as_const_int(loop->extent).value_or(kMany);
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return kMany;
  }
  return bytes;
}

/// Whether what the second ones read of an iteration of the first ones is little, which L1 then
/// still has: a tile of a product, of which a function is stored.
bool read_tile_of(const std::vector<Access>& first, const std::vector<Access>& second) {
  return std::ranges::any_of(second, [&](const Access& read) {
    const auto stores_it = [&](const Access& access) {
      return access.is_store && access.buffer == read.buffer;
    };
    const int64_t bytes = bytes_of(read);
    return !read.is_store && bytes >= kLeastTileBytes && bytes <= kMostTileBytes &&
           std::ranges::any_of(first, stores_it);
  });
}

/// What stands in a loop: whether that is a few vectors, and the bytes of sums that are registers
/// while it runs.
class Inside : public Visitor {
 public:
  Inside(const Stmt& body, VarRef var) : var_(std::move(var)) { (*this)(body); }

  bool is_innermost = true;
  int64_t sums() const {
    int64_t bytes = 0;
    for (const auto& [buffer, of_buffer] : sums_)
      bytes += of_buffer;
    return bytes;
  }

 private:
  using Visitor::visit;
  void visit(const For& loop) override {
    const bool is_step =
        loop.loop_kind == LoopKind::Vectorized || loop.loop_kind == LoopKind::Unrolled;
    is_innermost = is_innermost && is_step && as_const_int(loop.extent);
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }
  void visit(const Store& store) override {
    Visitor::visit(store);
    const auto uses = [&](const VarRef& var) {
      return std::ranges::any_of(store.indices,
                                 [&](const Expr& index) { return uses_var(index, var); });
    };
    if (uses(var_)) return;
    int64_t bytes = size_of(store.buffer->type);
    for (const For* loop : loops_)
      if (loop->loop_kind == LoopKind::Vectorized || uses(loop->var))
        bytes *= as_const_int(loop->extent).value_or(1);
    int64_t& most = sums_[store.buffer];
    most = std::max(most, bytes);
  }
  void visit(const MultiplyTiles&) override { is_innermost = false; }
  void visit(const Tensorize&) override { is_innermost = false; }

  const VarRef var_;
  std::vector<const For*> loops_;
  std::unordered_map<BufferRef, int64_t> sums_;
};

class JoinLoops : public Mutator {
 public:
  JoinLoops(const Kernel& kernel, const PassContext& context)
      : facts_(facts_of_sizes(kernel)), vectors_(vector_unit_of(context.target.arch)) {}

  Stmt body(const Stmt& stmt) {
    StatementList list(stmt);
    bool is_changed = list.mutate([&](const Stmt& each) { return (*this)(each); });
    while (join_some(list))
      is_changed = true;
    return is_changed ? list.statement() : stmt;
  }

 private:
  using Mutator::visit;
  Stmt visit(const MultiplyTiles& tiles) override { return &tiles; }
  Stmt visit(const For& loop) override {
    facts_.push_range(loop.var, index(0), reads_memory(loop.extent) ? Expr() : loop.extent);
    const Stmt inside = body(loop.body);
    facts_.pop();
    if (inside == loop.body) return &loop;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, inside);
  }

  bool join_some(StatementList& list) {
    for (size_t first = 0; first < list.size(); ++first) {
      const auto* a = as<For>(list[first]);
      if (a == nullptr || list.accesses(first).size() > kMostPlaces) continue;
      const size_t end = std::min(list.size(), first + kMostBetween + 2);
      for (size_t second = first + 1; second < end; ++second) {
        const auto* b = as<For>(list[second]);
        if (b == nullptr || list.accesses(second).size() > kMostPlaces) continue;
        const std::optional<Pair> pair = pair_of(*a, *b);
        if (!pair || !list.may_meet(first, second)) continue;
        const Stmt joined = joined_loop(*pair, a->loop_kind);
        if (!joined) continue;
        list.join(first, second, joined);
        return true;
      }
    }
    return false;
  }

  /// Nothing where they have no element in common, or need each other's iterations, or would not
  /// gain.
  Stmt joined_loop(const Pair& pair, LoopKind kind) {
    const std::vector<Access> first = analysis::accesses_of(pair.first);
    const std::vector<Access> second = analysis::accesses_of(pair.second);
    if (have_vectors(first) || have_vectors(second)) return {};
    const bool share = std::ranges::any_of(first, [&](const Access& a) {
      return std::ranges::any_of(second,
                                 [&](const Access& b) { return go_together(a, b, pair.var); });
    });
    if (!share) return {};
    Stmt both = For::make(pair.var, pair.extent, kind, Block::make({pair.first, pair.second}));
    const For& loop = *as<For>(both);
    if (may_need_others(loop, first, second)) return {};
    const Inside inside(loop.body, pair.var);
    // The other half of the registers is for what is computed.
    if (inside.is_innermost)
      return inside.sums() <= vectors_.registers / 2 * vectors_.bytes ? both : Stmt();
    const Stmt joined = visit(loop);
    return joined == both && !read_tile_of(first, second) ? Stmt() : joined;
  }

  /// Whether an iteration of one may need what the other does in another one; what only one of them
  /// touches goes on as it did.
  bool may_need_others(const For& both, const std::vector<Access>& first,
                       const std::vector<Access>& second) {
    const auto ignores = [&](const std::vector<Access>& accesses) {
      const auto is_of_it = [&](const Access& access) {
        return access.buffer == accesses[0].buffer;
      };
      return std::ranges::none_of(first, is_of_it) || std::ranges::none_of(second, is_of_it);
    };
    return carried_through(both, facts_, ignores).has_value();
  }

  analysis::Facts facts_;  // of the loops around
  const VectorUnit vectors_;
};

}  // namespace

Kernel join_loops(Kernel kernel, const PassContext& context) {
  kernel.body = JoinLoops(kernel, context).body(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
