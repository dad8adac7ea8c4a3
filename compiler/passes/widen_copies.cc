// Keeps copies in the type in which their elements are used: bytes whose products are added two at
// once as int16, which is what CPUs multiply and add, and 16-bit floats as float32.
//
//   allocate A.copy: int8[l, 2] .. { A.copy[q, k] = A[k, q]
//     C[j] = dot(C[j], A.copy[q, ramp(0, 1, 2)], B[q, j, ramp(0, 1, 2)]) }
//     ->
//   allocate A.copy: int16[l, 2] .. { A.copy[q, k] = int16(A[k, q])
//     C[j] = dot(C[j], A.copy[q, ramp(0, 1, 2)], B[q, j, ramp(0, 1, 2)]) }
//
// Only buffers of the kernel's own; what reads one elsewhere gets its number in the old type. Of
// floats, those that are copied and read again and again, always as float32.
//
// An element is converted once, as it is copied, and not again by each tile that reads it. oneDNN
// and gemmlowp pack so for CPUs without vpdpbusd.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/short_integers.h"
#include "compiler/passes/pass_context.h"

namespace kiln::passes {
namespace {

using namespace ir;

constexpr int kPair = 2;  // that an instruction adds for one sum

/// Buffers of a narrow type that the kernel allocates, and those that are to be of a wider one.
using WideTypes = std::unordered_map<BufferRef, DType>;

/// Of bytes, those that are factors of sums of two products.
class FactorBuffers : public Visitor {
 public:
  void add_to(WideTypes& types) const {
    for (const BufferRef& buffer : factors_) {
      if (allocated_.contains(buffer) && !updated_.contains(buffer))
        types.emplace(buffer, DType::Int16);
    }
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

/// Copies of 16-bit floats that are read as float32 alone, several times each.
class FloatCopies : public Visitor {
 public:
  void add_to(WideTypes& types) const {
    for (const auto& [buffer, uses] : uses_) {
      if (uses.is_copy && uses.is_read_again) types.emplace(buffer, DType::Float32);
    }
  }

 private:
  using Visitor::visit;

  struct Uses {
    size_t depth = 0;  // loops around its allocation
    bool is_copy = true;
    bool is_read_again = false;
  };
  static constexpr int64_t kReadAgain = 4;  // iterations that read the same element

  void visit(const Allocate& node) override {
    if (is_short_float(node.buffer->type)) uses_[node.buffer].depth = loops_.size();
    Visitor::visit(node);
  }
  void visit(const For& loop) override {
    loops_.push_back(&loop);
    Visitor::visit(loop);
    loops_.pop_back();
  }
  void visit(const Store& store) override {
    if (const auto found = uses_.find(store.buffer); found != uses_.end())
      found->second.is_copy = found->second.is_copy && as<Load>(store.value) != nullptr;
    Visitor::visit(store);
  }
  void visit(const Cast& cast) override {
    const auto* load = as<Load>(cast.value);
    const auto found = load != nullptr && !in_tiles_ ? uses_.find(load->buffer) : uses_.end();
    if (found == uses_.end() || cast.type.element != DType::Float32) return Visitor::visit(cast);
    Uses& uses = found->second;
    uses.is_read_again = uses.is_read_again || is_read_again(*load, uses.depth);
    for (const Expr& index : load->indices)
      (*this)(index);
  }
  /// The matrix unit converts them itself.
  void visit(const MultiplyTiles& node) override {
    in_tiles_ = true;
    Visitor::visit(node);
    in_tiles_ = false;
  }
  /// In its own type.
  void visit(const Load& load) override {
    if (const auto found = uses_.find(load.buffer); found != uses_.end())
      found->second.is_copy = false;
    Visitor::visit(load);
  }
  void visit(const Atomic& node) override {
    if (const auto found = uses_.find(node.buffer); found != uses_.end())
      found->second.is_copy = false;
    Visitor::visit(node);
  }

  bool is_read_again(const Load& load, size_t depth) const {
    return std::any_of(
        loops_.begin() + static_cast<std::ptrdiff_t>(depth), loops_.end(), [&](const For* loop) {
          return as_const_int(loop->extent).value_or(kReadAgain) >= kReadAgain &&
                 std::ranges::none_of(
                     load.indices, [&](const Expr& index) { return uses_var(index, loop->var); });
        });
  }

  std::unordered_map<BufferRef, Uses> uses_;
  std::vector<const For*> loops_;
  bool in_tiles_ = false;
};

class WidenCopies : public Mutator {
 public:
  WidenCopies(Kernel& kernel, const WideTypes& types) {
    for (const auto& [buffer, type] : types) {
      const BufferRef wide = Buffer::make(buffer->name, type, buffer->shape, buffer->scope,
                                          buffer->strides, buffer->swizzle);
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
  Expr visit(const Cast& cast) override {
    const Expr value = as_it_is(cast.value);
    return value->type == cast.type ? value : Cast::make(cast.type, value);
  }

  Stmt visit(const Store& store) override {
    if (!wide_.contains(store.buffer)) return Mutator::visit(store);
    Element place = element(store.buffer, store.indices);
    const Expr value = as_it_is(store.value);
    const Type type = {place.buffer->type, store.value->type.lanes};
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
  FloatCopies copies;
  copies(kernel.body);
  WideTypes types;
  factors.add_to(types);
  copies.add_to(types);
  if (types.empty()) return kernel;
  WidenCopies mutator(kernel, types);
  kernel.body = mutator(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
