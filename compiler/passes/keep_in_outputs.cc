// Keeps what is computed on the way to an output, element by element, in the output itself.
//
//   for i in 0..64 parallel {
//     allocate E: float32[1, 32000]
//     for j in 0..32000 { E[0, j] = exp(X[i, j]) }
//     .. the sum of E ..
//     for j in 0..32000 { Y[i, j] = E[0, j] / S[0] } }
//     ->
//   .. Y[i, j] = exp(X[i, j]) .. the sum of Y[i, ..] .. Y[i, j] = Y[i, j] / S[0]
//
// So the lines of Y come while exponentials are computed, and not beside a division, and the caches
// hold a row less: softmax of 64 x 32000 takes a sixth less on a Zen 4. Not where Y is stored past
// the caches.
//
// While indices are per dimension; before buffers get a place.
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/nontemporal.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/buffer_uses.h"
#include "compiler/passes/constant_bytes.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// An output that may hold what a buffer does, and the index of each dimension that the buffer has
/// one element of.
struct Holder {
  BufferRef output;
  std::vector<Expr> fixed;  // null where the buffer has as many elements as the output
};

class FindHolder {
 public:
  FindHolder(const Kernel& kernel, const std::vector<const For*>& around)
      : kernel_(kernel), around_(around) {}

  std::optional<Holder> holder_of(const Allocate& allocate) const {
    const BufferRef& kept = allocate.buffer;
    const BufferUses inside = uses_of(kept, allocate.body);
    if (inside.uses.empty() || kept->scope != Scope::Global || !kept->strides.empty() ||
        !inside.are_all())
      return std::nullopt;
    // The last that reads it stores an element of the output for each of the buffer's, once.
    const BufferUse& last = inside.uses.back();
    if (last.is_stored || last.is_guarded || last.store == nullptr || last.loops.empty())
      return std::nullopt;
    if (!is_output(last.store->buffer, *kept) || !stores_alone(*last.store)) return std::nullopt;
    for (const BufferUse& use : inside.uses) {
      const bool is_last = use.store == last.store && !use.is_stored;
      const bool is_before = use.loops.empty() || use.loops[0] != last.loops[0];
      if (is_last ? !are_equal(use.indices, last.indices) : !is_before) return std::nullopt;
    }
    return holder_by(*kept, last);
  }

 private:
  /// Of the buffer's type and rank, in the caches, of a size that is known.
  bool is_output(const BufferRef& buffer, const Buffer& kept) const {
    const auto at = std::ranges::find(kernel_.parameters, buffer);
    return at != kernel_.parameters.end() && kernel_.is_output[at - kernel_.parameters.begin()] &&
           buffer->type == kept.type && buffer->shape.size() == kept.shape.size() &&
           buffer->strides.empty() && constant_bytes(*buffer) &&
           !analysis::may_be_nontemporal(kernel_, *buffer);
  }

  /// Whether nothing else in the kernel names the output.
  bool stores_alone(const Store& store) const {
    const BufferUses everywhere = uses_of(store.buffer, kernel_.body);
    return everywhere.named == 1 && everywhere.uses.size() == 1 &&
           everywhere.uses[0].store == &store;
  }

  std::optional<Holder> holder_by(const Buffer& kept, const BufferUse& last) const {
    Holder holder{.output = last.store->buffer, .fixed = {}};
    const std::vector<Expr>& stored = last.store->indices;
    for (size_t d = 0; d < stored.size(); ++d) {
      const bool is_whole = equal_trees(kept.shape[d], holder.output->shape[d]) &&
                            equal_trees(last.indices[d], stored[d]);
      const auto is_inside = [&](const For* loop) { return uses_var(stored[d], loop->var); };
      if (!is_whole && (!is_const(kept.shape[d], 1) || std::ranges::any_of(last.loops, is_inside)))
        return std::nullopt;
      holder.fixed.push_back(is_whole ? Expr() : stored[d]);
    }
    // Each element of it once: no two iterations store the same, and they are as many.
    std::vector<const For*> loops = around_;
    loops.insert(loops.end(), last.loops.begin(), last.loops.end());
    if (!analysis::are_distinct(stored, ranges_of(loops))) return std::nullopt;
    int64_t iterations = 1;
    for (const For* loop : last.loops)
      iterations *= as_const_int(loop->extent).value_or(0);
    const std::optional<int64_t> bytes = constant_bytes(kept);
    const bool is_all = bytes && iterations * size_of(kept.type) == *bytes;
    return is_all ? std::optional(holder) : std::nullopt;
  }

  const Kernel& kernel_;
  const std::vector<const For*>& around_;
};

/// The elements of a buffer where the output has them.
class Replace : public Mutator {
 public:
  Replace(BufferRef from, const Holder& to) : from_(std::move(from)), to_(to) {}

 private:
  Element element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    Element found = Mutator::element(buffer, indices);
    if (buffer != from_) return found;
    found.buffer = to_.output;
    for (size_t d = 0; d < found.indices.size(); ++d)
      if (to_.fixed[d]) found.indices[d] = to_.fixed[d];
    return found;
  }

  const BufferRef from_;
  const Holder& to_;
};

class KeepInOutputs : public Mutator {
 public:
  explicit KeepInOutputs(const Kernel& kernel) : kernel_(kernel) {}

 private:
  using Mutator::visit;
  Stmt visit(const For& loop) override {
    loops_.push_back(&loop);
    const Stmt result = Mutator::visit(loop);
    loops_.pop_back();
    return result;
  }
  Stmt visit(const Allocate& allocate) override {
    const std::optional<Holder> holder = FindHolder(kernel_, loops_).holder_of(allocate);
    if (!holder) return Mutator::visit(allocate);
    return (*this)(Replace(allocate.buffer, *holder)(allocate.body));
  }

  const Kernel& kernel_;
  std::vector<const For*> loops_;
};

}  // namespace

Kernel keep_in_outputs(Kernel kernel, const PassContext& context) {
  if (context.layout == Layout::Compact) kernel.body = KeepInOutputs(kernel)(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
