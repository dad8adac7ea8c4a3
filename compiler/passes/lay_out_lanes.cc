// Puts the dimension of an allocated buffer last along which all vectors on it go, so that their
// lanes lie side by side.
//
//   allocate E: float32[16, 10] { for j in 0..10 { for i in 0..16 vectorize { E[i, j] = S } } .. }
//     ->
//   allocate E: float32[10, 16] { for j in 0..10 { for i in 0..16 vectorize { E[j, i] = S } } .. }
//
// Stands before flatten_storage, where a dimension is an index of its own.
//
// Transposes a buffer of the kernel's own when all vectors on it go along one dimension that is not
// the last: strided lanes are gathers and scatters, contiguous ones a load and a store. It is the
// array of structures made a structure of arrays, decided over all accesses before any is
// rewritten.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// The one dimension of each buffer along which vectors go; nothing where accesses differ.
class LaneDimensions : public Visitor {
 public:
  std::unordered_map<BufferRef, std::optional<size_t>> found;

 private:
  using Visitor::visit;

  void visit(const For& loop) override {
    const bool is_vector = loop.loop_kind == LoopKind::Vectorized;
    if (is_vector) lanes_.push_back(loop.var);
    Visitor::visit(loop);
    if (is_vector) lanes_.pop_back();
  }
  void visit(const MultiplyTiles& node) override {
    in_tiles_ = true;
    Visitor::visit(node);
    in_tiles_ = false;
  }
  void visit(const Load& load) override {
    note(load.buffer, load.indices);
    Visitor::visit(load);
  }
  void visit(const Store& store) override {
    note(store.buffer, store.indices);
    Visitor::visit(store);
  }

  void note(const BufferRef& buffer, const std::vector<Expr>& indices) {
    // Lanes that are there already, or tiles.
    if (in_tiles_ ||
        std::ranges::any_of(indices, [](const Expr& index) { return index->type.lanes > 1; })) {
      found[buffer].reset();
      return;
    }
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool is_lane =
          std::ranges::any_of(lanes_, [&](const VarRef& var) { return uses_var(indices[d], var); });
      if (!is_lane) continue;
      const auto [known, is_first] = found.try_emplace(buffer, d);
      if (!is_first && known->second != d) known->second.reset();
    }
  }

  std::vector<VarRef> lanes_;
  bool in_tiles_ = false;
};

/// The dimensions with number `d` moved to the end; the others keep their order.
std::vector<Expr> with_last(std::vector<Expr> dimensions, size_t d) {
  std::rotate(dimensions.begin() + static_cast<ptrdiff_t>(d),
              dimensions.begin() + static_cast<ptrdiff_t>(d) + 1, dimensions.end());
  return dimensions;
}

class LayOutLanes : public Mutator {
 public:
  LayOutLanes(Kernel& kernel, const LaneDimensions& lanes) : kernel_(kernel), lanes_(lanes) {}

 private:
  using Mutator::visit;

  struct Transposed {
    BufferRef buffer;
    size_t dimension;  // that comes last
  };

  Stmt visit(const Allocate& allocate) override {
    const Buffer& buffer = *allocate.buffer;
    const auto lanes = lanes_.found.find(allocate.buffer);
    const bool is_transposed = lanes != lanes_.found.end() && lanes->second &&
                               *lanes->second + 1 < buffer.shape.size() && buffer.strides.empty();
    if (!is_transposed) return Mutator::visit(allocate);
    const size_t d = *lanes->second;
    const BufferRef transposed =
        Buffer::make(buffer.name, buffer.type, with_last(buffer.shape, d), buffer.scope);
    transposed_.emplace(allocate.buffer, Transposed{transposed, d});
    const auto line = kernel_.buffer_lines.find(allocate.buffer);
    if (line != kernel_.buffer_lines.end()) {
      const SourceLocation written = line->second;
      kernel_.buffer_lines.emplace(transposed, written);
    }
    return Mutator::visit(allocate);
  }

  BufferRef buffer(const BufferRef& given) override {
    const auto transposed = transposed_.find(given);
    return transposed == transposed_.end() ? given : transposed->second.buffer;
  }

  Element element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    Element result = Mutator::element(buffer, indices);
    const auto transposed = transposed_.find(buffer);
    if (transposed != transposed_.end()) {
      result.indices = with_last(std::move(result.indices), transposed->second.dimension);
    }
    return result;
  }

  Kernel& kernel_;
  const LaneDimensions& lanes_;
  std::unordered_map<BufferRef, Transposed> transposed_;
};

}  // namespace

Kernel lay_out_lanes(Kernel kernel, const PassContext&) {
  LaneDimensions lanes;
  lanes(kernel.body);
  LayOutLanes mutator(kernel, lanes);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
