// Collects what statements do to the buffers that threads of a block share, and which buffers have
// copies that the iterations of a loop use in turn:
//
//   for k: s[k % 2, t] = A[k, t]  C[t] += s[k % 2, 31 - t]     ->    s, two of them by k
#include "compiler/passes/barrier_effects.h"

#include <map>
#include <optional>

#include "compiler/analysis/affine.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int64_t kMostCopies = 16;

/// Which copy floormod(k + c, n) is: c and n.
struct Turn {
  int64_t ahead;
  int64_t copies;
};
std::optional<Turn> turn_of(const Expr& index, const VarRef& loop) {
  const Binary* node = as<Binary>(index);
  if (node == nullptr || node->op != Operator::FloorMod) return std::nullopt;
  const int64_t copies = as_const_int(node->b).value_or(0);
  if (copies < 2 || copies > kMostCopies || !uses_var(node->a, loop)) return std::nullopt;
  const std::optional<int64_t> ahead = as_const_int(analysis::simplify(node->a - Expr(loop)));
  if (!ahead || *ahead < 0) return std::nullopt;
  return Turn{*ahead % copies, copies};
}

class CopiesInTurn : public Visitor {
 public:
  explicit CopiesInTurn(const For& loop) : loop_(loop.var) { (*this)(loop.body); }

  BuffersInTurn found() const {
    BuffersInTurn result;
    for (const auto& [buffer, dimensions] : dimensions_) {
      if (dimensions.empty()) continue;
      const auto [dimension, copies] = *dimensions.begin();
      Turns turns{loop_, copies, dimension};
      for (const Load* load : loads_)
        if (load->buffer == buffer) turns.read |= turns.touched(load->indices);
      result[buffer] = turns;
    }
    return result;
  }

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    loads_.push_back(&load);
    Visitor::visit(load);
  }
  void element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    std::map<size_t, int64_t> dimensions;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (const std::optional<Turn> turn = turn_of(indices[d], loop_)) dimensions[d] = turn->copies;
    }
    const auto [at, is_new] = dimensions_.try_emplace(buffer, dimensions);
    if (!is_new) {
      std::erase_if(at->second, [&](const auto& entry) {
        const auto same = dimensions.find(entry.first);
        return same == dimensions.end() || same->second != entry.second;
      });
    }
    Visitor::element(buffer, indices);
  }

  const VarRef loop_;
  std::vector<const Load*> loads_;
  /// Those that say which copy, and of how many.
  std::unordered_map<BufferRef, std::map<size_t, int64_t>> dimensions_;
};

class CollectEffects : public Visitor {
 public:
  /// All of them, or those of `only`.
  CollectEffects(const SharedBuffers& shared, const BuffersInTurn& in_turn,
                 const BuffersInTurn* only = nullptr)
      : shared_(shared), in_turn_(in_turn), only_(only) {}
  Effects effects;

 private:
  using Visitor::visit;
  void visit(const Load& load) override {
    if (is_asked(load.buffer)) effects.read.add(load.buffer, copies(load.buffer, load.indices));
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    note_written(store.buffer, copies(store.buffer, store.indices));
    Visitor::visit(store);
  }
  void visit(const Atomic& node) override {
    note_written(node.buffer, copies(node.buffer, node.indices));
    Visitor::visit(node);
  }
  void visit(const Await&) override {
    for (const BufferRef& buffer : shared_.late) {
      const auto turns = in_turn_.find(buffer);
      note_written(buffer, turns == in_turn_.end() ? kAllCopies : turns->second.read);
    }
  }
  void note_written(const BufferRef& buffer, Copies copies) {
    if (!is_asked(buffer)) return;
    effects.written.add(buffer, copies);
    if (shared_.rewritten.contains(buffer)) effects.rewritten.add(buffer, copies);
  }
  bool is_asked(const BufferRef& buffer) const {
    return shared_.contested.contains(buffer) && (only_ == nullptr || only_->contains(buffer));
  }
  Copies copies(const BufferRef& buffer, const std::vector<Expr>& indices) const {
    const auto turns = in_turn_.find(buffer);
    return turns == in_turn_.end() ? kAllCopies : turns->second.touched(indices);
  }

  const SharedBuffers& shared_;
  const BuffersInTurn& in_turn_;
  const BuffersInTurn* const only_;
};

}  // namespace

Copies Turns::touched(const std::vector<Expr>& indices) const {
  const std::optional<Turn> turn = turn_of(indices[dimension], loop);
  return turn ? Copies{1} << turn->ahead : kAllCopies;
}

Copies Turns::later(Copies touched) const {
  const Copies all = (Copies{1} << copies) - 1;
  return (touched & all) >> 1 | (touched & 1) << (copies - 1);
}

BuffersInTurn copies_in_turn(const For& loop) { return CopiesInTurn(loop).found(); }

Effects effects_of(const Stmt& stmt, const SharedBuffers& shared, const BuffersInTurn& in_turn,
                   const BuffersInTurn* only) {
  CollectEffects walk(shared, in_turn, only);
  walk(stmt);
  return std::move(walk.effects);
}

}  // namespace kiln::passes
