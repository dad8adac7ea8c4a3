// One index an access, in elements.
//
//   C[i, j] = ...    ->    C[i*n + j] = ...                     (Layout::Compact)
//                    ->    C[i*C.stride0 + j*C.stride1] = ...   (Layout::Strided; parameters only)
//
// Writes each access as one index: the sum of the indices times their strides, row-major ones or
// those of the call. Without arithmetic that would hide what passes behind look for: vectors stay
// ramps, and an index split by floordiv and floormod is put together again. TVM's FlattenBuffer and
// Halide's storage flattening stand at the same place.
#include <unordered_map>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/mutator.h"
#include "compiler/passes/pass_context.h"
#include "compiler/passes/vector_index.h"
#include "runtime/core/error.h"

namespace kiln::passes {
namespace {

using namespace ir;

/// The strides of a compact buffer, in elements: those of [m, n] are n and 1.
std::vector<Expr> row_major(const std::vector<Expr>& shape) {
  std::vector<Expr> strides(shape.size());
  Expr stride = index(1);
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride = stride * shape[d];
  }
  return strides;
}

/// An index `floormod(f, m)`, as split and fused loops have them beside `floordiv(f, m)`.
bool is_remainder(const Expr& expr) {
  const auto* node = as<Binary>(expr);
  return node != nullptr && node->op == Operator::FloorMod && node->type.lanes == 1;
}

/// An index of lanes as that of one of them; null where it is more than arithmetic.
Expr of_lane(const Expr& place, const VarRef& lane) {
  if (place->type.lanes == 1) return place;
  if (const auto* ramp = as<Ramp>(place)) return ramp->base + ramp->stride * lane;
  if (const auto* same = as<Broadcast>(place)) return same->value;
  const auto* node = as<Binary>(place);
  if (node == nullptr) return nullptr;
  const Expr a = of_lane(node->a, lane);
  const Expr b = a ? of_lane(node->b, lane) : Expr();
  return b ? Binary::make(node->op, a, b) : Expr();
}

/// Lanes that are as far apart from each other as the first two; null for any other.
Expr as_ramp(const Expr& place) {
  const VarRef lane = Var::make("lane");
  Expr one = of_lane(place, lane);
  if (!one) return nullptr;
  one = analysis::simplify(one);
  const std::optional<int64_t> stride = analysis::stride_of(one, lane);
  if (!stride) return nullptr;
  const Expr first = analysis::simplify(substitute(one, {{lane, index(0)}}));
  return Ramp::make(first, index(*stride), place->type.lanes);
}

class FlattenStorage : public Mutator {
  Element element(const BufferRef& buffer, const std::vector<Expr>& indices) override {
    return {buffer, {flat(buffer, indices)}};
  }

  Expr flat(const BufferRef& buffer, const std::vector<Expr>& indices) {
    KILN_CHECK(indices.size() == buffer->shape.size());
    const std::vector<Expr>& strides = strides_of(buffer);
    Expr sum = index(0);
    bool has_remainder = false;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr place = (*this)(indices[d]);
      has_remainder = has_remainder || is_remainder(place);
      const bool is_scalar = sum->type.lanes == 1 && place->type.lanes == 1;
      sum = is_scalar ? sum + place * strides[d]
                      : vector_binary(Operator::Add, sum,
                                      vector_binary(Operator::Mul, place, strides[d]));
    }
    // Dimensions that a fused loop goes through are one again, and its elements side by side.
    if (sum->type.lanes > 1 && as<Ramp>(sum) == nullptr) {
      if (Expr ramp = as_ramp(sum)) return ramp;
    }
    return has_remainder ? analysis::simplify(sum) : sum;
  }

  const std::vector<Expr>& strides_of(const BufferRef& buffer) {
    const auto found = strides_.find(buffer);
    if (found != strides_.end()) return found->second;
    const bool is_compact = buffer->strides.empty();
    return strides_[buffer] = is_compact ? row_major(buffer->shape) : buffer->strides;
  }

  std::unordered_map<BufferRef, std::vector<Expr>> strides_;
};

/// Gives each parameter a stride variable a dimension: `A.stride0`, in elements, known at the call.
void make_strided(Kernel& kernel) {
  std::unordered_map<BufferRef, BufferRef> strided;
  for (BufferRef& parameter : kernel.parameters) {
    std::vector<Expr> strides;
    for (size_t d = 0; d < parameter->shape.size(); ++d) {
      kernel.strides.push_back(Var::make(fmt::format("{}.stride{}", parameter->name, d)));
      strides.push_back(kernel.strides.back());
    }
    const BufferRef with_strides = Buffer::make(parameter->name, parameter->type, parameter->shape,
                                                parameter->scope, std::move(strides));
    strided.emplace(parameter, with_strides);
    parameter = with_strides;
  }
  kernel.body = replace_buffers(kernel.body, strided);
}

}  // namespace

ir::Kernel flatten_storage(ir::Kernel kernel, const PassContext& context) {
  if (context.layout == Layout::Strided) make_strided(kernel);
  kernel.body = FlattenStorage()(kernel.body);
  return kernel;
}

}  // namespace kiln::passes
