// Adds up groups of products at once where their elements lie side by side: four of 8 bits, or two
// of 8 or 16, into an int32, two of bfloat16 into a float32.
//
//   for j in 0..48 vectorize { for k in 0..4 { C[j] = C[j] + int32(A[k])*int32(B[j, k]) } }
//     ->
//   for j in 0..48 vectorize { C[j] = dot(C[j], A[ramp(0, 1, 4)], B[j, ramp(0, 1, 4)]) }
//
// and of one column, as tiles of columns may leave it over, the same without a loop around.
//
// Stands where tensorize does, for the same reasons; only for compact arguments.
//
// Finds the sums of products that CPUs add in groups with one instruction by their loops: columns
// in vectors, and in them a group of the reduction whose elements lie side by side. Automatic
// schedules pack their panels so; a schedule of the user's own gets the same. Of the instructions
// see Intel's Software Developer's Manual, vpdpbusd, vpmaddwd and vdpbf16ps.
#include <algorithm>

#include "compiler/analysis/multiply_add.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/ir/short_integers.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/row_along.h"

namespace kiln::passes {
namespace {

using namespace ir;
using analysis::distance, analysis::is_converted, analysis::load_in, analysis::MultiplyAdd,
    analysis::multiply_add_of;

/// Whether an instruction adds so many products of these types.
bool is_group(int64_t count, DType a, DType b, DType sum) {
  if (sum == DType::Int32)
    return count == 4 ? is_byte(a) && is_byte(b) : count == 2 && is_word(a) && is_word(b);
  return count == 2 && a == DType::BFloat16 && b == DType::BFloat16 && sum == DType::Float32;
}

/// The sums of a loop over a group, in `columns` where those are a loop around it; null otherwise.
Stmt sums_of_group(const For& group, const For* columns) {
  const auto* store = as<Store>(group.body);
  if (store == nullptr || store->predicate || group.loop_kind == LoopKind::Parallel) {
    return nullptr;
  }
  std::optional<MultiplyAdd> product = multiply_add_of(*store);
  if (!product || !is_converted(product->x, store->buffer->type) ||
      !is_converted(product->y, store->buffer->type)) {
    return nullptr;
  }
  const VarRef& k = group.var;
  if (columns != nullptr && uses_var(product->x, columns->var)) std::swap(product->x, product->y);
  const Load* const a = load_in(product->x);
  const Load* const b = load_in(product->y);
  if (a == nullptr || b == nullptr || a->buffer == store->buffer || b->buffer == store->buffer) {
    return nullptr;
  }
  const int64_t count = as_const_int(group.extent).value_or(0);
  if (!is_group(count, a->buffer->type, b->buffer->type, store->buffer->type)) return nullptr;
  const auto is_apart = [&](const auto& access, const VarRef& var, int64_t elements) {
    return distance(access.buffer, access.indices, var) == elements;
  };
  if (!is_apart(*store, k, 0) || !is_apart(*a, k, 1) || !is_apart(*b, k, 1)) return nullptr;
  if (columns != nullptr && (!is_apart(*store, columns->var, 1) || !is_apart(*a, columns->var, 0) ||
                             !is_apart(*b, columns->var, count)))
    return nullptr;
  const int lanes = static_cast<int>(count);
  const Expr sum = Dot::make(product->place, row_along(*a, k, lanes), row_along(*b, k, lanes));
  return Store::make(store->buffer, store->indices, sum);
}

class AddInGroups : public Mutator {
  using Mutator::visit;

  Stmt visit(const MultiplyTiles& tiles) override { return &tiles; }

  Stmt visit(const For& loop) override {
    const auto* group = as<For>(loop.body);
    if (loop.loop_kind == LoopKind::Vectorized) {
      const Stmt sums = group != nullptr ? sums_of_group(*group, &loop) : Stmt();
      if (sums) return For::make(loop.var, loop.extent, LoopKind::Vectorized, sums);
      return &loop;  // lanes that are no columns of groups
    }
    const Stmt sum = sums_of_group(loop, nullptr);
    return sum ? sum : Mutator::visit(loop);
  }
};

}  // namespace

ir::Kernel add_in_groups(ir::Kernel kernel, const PassContext& context) {
  // Nothing is known of the distances of arguments with strides.
  if (context.layout != Layout::Strided) kernel.body = AddInGroups()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
