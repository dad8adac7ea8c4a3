// Shifts the last tile of a serial loop inwards, so that it ends where the axis ends, instead of
// cutting it: some elements are computed twice, at most one of 64, and there is one tile to
// compile and not two.
//
//   for i in 0..114 { for j in 0..9 unroll { if likely(i*9 + j < 1024) { C[i*9 + j] = A[i*9 + j] }
//   } }
//     ->
//   for i in 0..114 { for j in 0..9 unroll { C[min(i*9, 1015) + j] = A[min(i*9, 1015) + j] } }
//
// Only around loops that are written out, where all sizes are constants, and where the body stores
// the same whenever it runs.
//
// Halide's TailStrategy::ShiftInwards, decided by the compiler: a last tile that the end of an axis
// cuts begins early enough to be full, and computes some elements again. That is allowed where the
// body is idempotent and depends on `tile*size + inner` alone, the element, so that it cannot be
// told where a tile begins; it pays where what is computed twice is little beside a second copy of
// an unrolled body.
#include "compiler/passes/shift_last_tiles.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/find_guards.h"
#include "compiler/passes/is_idempotent.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// A loop over tiles of `size` elements each, of `count` in all.
struct Tiles {
  int64_t size;
  int64_t count;
};

/// Has tiles begin at `first` instead of at tile*size.
class BeginAt : public Mutator {
 public:
  BeginAt(const VarRef& tile, int64_t size, const Expr& first)
      : tile_(tile), size_(size), first_(first) {}

  bool is_complete = true;

 private:
  using Mutator::visit;

  Expr visit(const Var& var) override {
    if (&var == tile_.get()) is_complete = false;
    return &var;
  }

  Expr visit(const Binary& node) override {
    const std::optional<int64_t> factor = as_const_int(node.b);
    const bool is_tile = node.op == Operator::Mul && node.a.get() == tile_.get();
    if (!is_tile || !factor || *factor % size_ != 0) return Mutator::visit(node);
    return *factor == size_ ? first_ : first_ * index(*factor / size_);
  }

  const VarRef& tile_;
  const int64_t size_;
  const Expr first_;
};

/// Looks whether a tile may begin anywhere: all that depends on it stands behind a guard
/// `tile*size + inner < count`, and depends on that sum alone, the element.
class LookAtTiles : public Visitor {
 public:
  explicit LookAtTiles(const VarRef& tile) : tile_(tile) {}

  std::optional<Tiles> tiles() const { return may_move_ ? tiles_ : std::nullopt; }
  /// What holds for all elements of a tile that no end cuts.
  const std::unordered_set<Expr>& guards() const { return guards_; }
  bool has_unrolled() const { return has_unrolled_; }

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    has_unrolled_ = has_unrolled_ || loop.loop_kind == LoopKind::Unrolled;
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }

  void visit(const If& node) override {
    const VarRef before = inner_;
    for_each_conjunct(node.condition, [&](const Expr& conjunct) {
      const bool is_guard = node.likely && uses_var(conjunct, tile_);
      if (!is_guard) {
        (*this)(conjunct);
      } else if (!node.else_body && is_end_of_tile(conjunct)) {
        guards_.insert(conjunct);
      } else {
        may_move_ = false;
      }
    });
    (*this)(node.then_body);
    if (node.else_body) (*this)(node.else_body);
    inner_ = before;
  }

  /// Inside, the element is what the guard compares.
  bool is_end_of_tile(const Expr& guard) {
    const auto* less = as<Binary>(guard);
    if (less == nullptr || less->op != Operator::Less) return false;
    const std::optional<int64_t> size = analysis::stride_of(less->a, tile_);
    const std::optional<int64_t> count = as_const_int(less->b);
    if (!size || !count) return false;
    const Expr inner = analysis::simplify(less->a - tile_ * index(*size));
    const auto loop = std::ranges::find_if(
        loops_, [&](const For* each) { return each->var.get() == inner.get(); });
    if (loop == loops_.end() || as_const_int((*loop)->extent) != *size) return false;
    if (tiles_ && (tiles_->size != *size || tiles_->count != *count)) return false;
    if (inner_ && inner_ != (*loop)->var) return false;
    tiles_ = Tiles{*size, *count};
    inner_ = (*loop)->var;
    return true;
  }

  void visit(const Allocate& allocate) override {
    places_.emplace(allocate.buffer, std::nullopt);
    Visitor::visit(allocate);
  }

  void visit(const Load& load) override {
    if (!is_own(load.buffer, load.indices, false)) Visitor::visit(load);
  }

  void visit(const Store& store) override {
    if (!is_own(store.buffer, store.indices, true)) return Visitor::visit(store);
    (*this)(store.value);
  }

  /// What one tile keeps for itself has the place inside of the tile as an index, the same one
  /// wherever it is used; or it is the same for all tiles.
  bool is_own(const BufferRef& buffer, const std::vector<Expr>& indices, bool is_store) {
    const auto known = places_.find(buffer);
    if (known == places_.end()) return false;
    int64_t place = -1;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (inner_ && indices[i].get() == inner_.get() && place < 0) {
        place = static_cast<int64_t>(i);
      } else {
        (*this)(indices[i]);
      }
    }
    const bool is_same = !known->second || *known->second == place;
    may_move_ = may_move_ && is_same && !(place < 0 && is_store && inner_);
    known->second = place;
    return true;
  }

  void visit(const Var& var) override { check(VarRef(&var)); }
  void visit(const Binary& node) override {
    const bool is_index = node.type == kIndexType;
    if (is_index) check(&node);
    if (!is_index || reads_memory(&node)) Visitor::visit(node);
  }

  /// The element is all that an index depends on.
  void check(const Expr& expr) {
    if (!may_move_) return;
    const bool uses_inner = inner_ && uses_var(expr, inner_);
    if (!uses_inner && !uses_var(expr, tile_)) return;
    if (!inner_) {
      may_move_ = false;
      return;
    }
    // Not tile*size, which may have been left out: a multiple of the size is 0 modulo the size.
    BeginAt begin(tile_, tiles_->size, first_);
    const Expr anywhere = begin(expr);
    const Expr of_element = analysis::simplify(substitute(anywhere, {{inner_, element_ - first_}}));
    may_move_ = may_move_ && begin.is_complete && !uses_var(of_element, first_);
  }

  const VarRef& tile_;
  const VarRef first_ = Var::make("first");
  const VarRef element_ = Var::make("element");
  std::optional<Tiles> tiles_;
  VarRef inner_;  // behind a guard
  std::unordered_set<Expr> guards_;
  std::vector<const For*> loops_;
  std::unordered_map<BufferRef, std::optional<int64_t>> places_;
  bool may_move_ = true;
  bool has_unrolled_ = false;
};

class ShiftLastTiles : public Mutator {
 public:
  explicit ShiftLastTiles(const ShiftedTiles& which) : which_(which) {}

 private:
  using Mutator::visit;

  Stmt visit(const For& loop) override {
    const Stmt body = (*this)(loop.body);
    // Two threads would store the same elements of a parallel loop.
    const Stmt shifted = loop.loop_kind == LoopKind::Serial ? shift(loop, body) : Stmt();
    if (!shifted && body == loop.body) return &loop;
    return For::make(loop.var, loop.extent, loop.loop_kind, loop.thread, shifted ? shifted : body);
  }

  /// The body, its last tile shifted; null where that is not worth it, or could be told.
  Stmt shift(const For& loop, const Stmt& body) const {
    const std::optional<int64_t> extent = as_const_int(loop.extent);
    if (!extent) return nullptr;
    LookAtTiles look(loop.var);
    look(body);
    const std::optional<Tiles> tiles = look.tiles();
    if (!tiles || (which_.unrolled_alone && !look.has_unrolled())) return nullptr;
    const int64_t twice = *extent * tiles->size - tiles->count;
    const bool is_cut = tiles->count > tiles->size && twice > 0 && twice < tiles->size;
    if (!is_cut || twice * which_.least_parts > tiles->count || !is_idempotent(body))
      return nullptr;
    const Expr last = index(tiles->count - tiles->size);
    BeginAt begin(loop.var, tiles->size, min(loop.var * index(tiles->size), last));
    const Stmt result = begin(drop_conjuncts(body, look.guards()));
    return begin.is_complete ? result : nullptr;
  }

  const ShiftedTiles& which_;
};

}  // namespace

Kernel shift_last_tiles(Kernel kernel, const ShiftedTiles& which) {
  kernel.body = ShiftLastTiles(which)(kernel.body);
  return kernel;
}

Kernel shift_last_tiles(Kernel kernel, const PassContext&) {
  return shift_last_tiles(std::move(kernel), ShiftedTiles{});
}

}  // namespace kiln::passes
