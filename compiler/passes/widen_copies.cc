// Keeps copies of bytes whose products are added two at once as int16, which is what CPUs multiply
// and add.
//
//   allocate A.copy: int8[l, 2] .. { A.copy[q, k] = A[k, q]
//     C[j] = dot(C[j], A.copy[q, ramp(0, 1, 2)], B[q, j, ramp(0, 1, 2)]) }
//     ->
//   allocate A.copy: int16[l, 2] .. { A.copy[q, k] = int16(A[k, q])
//     C[j] = dot(C[j], A.copy[q, ramp(0, 1, 2)], B[q, j, ramp(0, 1, 2)]) }
//
// Only buffers of the kernel's own; what reads one elsewhere gets its number in the old type.
//
// An element is converted once, as it is copied, and not again by each tile that reads it. oneDNN
// and gemmlowp pack so for CPUs without vpdpbusd.
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/short_integers.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int kPair = 2;  // that an instruction adds for one sum

/// Buffers of bytes that the kernel allocates, and those of them that are factors of such sums.
class FactorBuffers : public Visitor {
 public:
  /// Which to widen.
  std::unordered_set<BufferRef> found() const {
    std::unordered_set<BufferRef> result;
    for (const BufferRef& buffer : factors_) {
      if (allocated_.contains(buffer) && !updated_.contains(buffer)) result.insert(buffer);
    }
    return result;
  }

 private:
  using Visitor::visit;
  void visit(const Allocate& node) override {
    if (is_byte(node.buffer->type)) allocated_.insert(node.buffer);
    Visitor::visit(node);
  }
  void visit(const Dot& node) override {
    const bool adds_words = node.group() == kPair && node.type.element == DType::Int32 &&
                            is_word(node.a->type.element) && is_word(node.b->type.element);
    if (adds_words) {
      for (const Expr& factor : {node.a, node.b}) {
        if (const auto* load = as<Load>(factor)) factors_.insert(load->buffer);
      }
    }
    Visitor::visit(node);
  }
  void visit(const Atomic& node) override {
    updated_.insert(node.buffer);
    Visitor::visit(node);
  }

  std::unordered_set<BufferRef> allocated_;
  std::unordered_set<BufferRef> factors_;
  std::unordered_set<BufferRef> updated_;  // in their own type
};

class WidenCopies : public Mutator {
 public:
  WidenCopies(Kernel& kernel, const std::unordered_set<BufferRef>& narrow) {
    for (const BufferRef& buffer : narrow) {
      const BufferRef wide =
          Buffer::make(buffer->name, DType::Int16, buffer->shape, buffer->scope, buffer->strides);
      wide_.emplace(buffer, wide);
      const auto line = kernel.buffer_lines.find(buffer);
      if (line == kernel.buffer_lines.end()) continue;
      const SourceLocation written = line->second;
      kernel.buffer_lines.emplace(wide, written);
    }
  }

 private:
  using Mutator::visit;

  BufferRef buffer(const BufferRef& given) override {
    const auto wide = wide_.find(given);
    return wide == wide_.end() ? given : wide->second;
  }

  Expr visit(const Load& load) override {
    const Expr read = Mutator::visit(load);
    return wide_.contains(load.buffer) ? Cast::make(load.type, read) : read;
  }
  /// Factors are converted to the type of the sum in any case.
  Expr visit(const Dot& dot) override {
    return Dot::make((*this)(dot.start), as_it_is(dot.a), as_it_is(dot.b));
  }
  /// The number is the same in both types.
  Expr visit(const Cast& cast) override { return Cast::make(cast.type, as_it_is(cast.value)); }

  Stmt visit(const Store& store) override {
    if (!wide_.contains(store.buffer)) return Mutator::visit(store);
    Element place = element(store.buffer, store.indices);
    const Expr value = as_it_is(store.value);
    const Type type = {DType::Int16, store.value->type.lanes};
    return Store::make(std::move(place.buffer), std::move(place.indices),
                       value->type == type ? value : Cast::make(type, value),
                       store.predicate ? (*this)(store.predicate) : Expr());
  }

  /// What is loaded from a widened buffer, not in the type that it had.
  Expr as_it_is(const Expr& value) {
    const auto* load = as<Load>(value);
    return load != nullptr ? Mutator::visit(*load) : (*this)(value);
  }

  std::unordered_map<BufferRef, BufferRef> wide_;
};

}  // namespace

Kernel widen_copies(Kernel kernel, const PassContext&) {
  FactorBuffers factors;
  factors(kernel.body);
  const std::unordered_set<BufferRef> narrow = factors.found();
  if (narrow.empty()) return kernel;
  WidenCopies mutator(kernel, narrow);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
