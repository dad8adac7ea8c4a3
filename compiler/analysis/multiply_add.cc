// Takes sums of products apart, for the passes that make instructions of them: the place, the two
// elements, and how far apart neighbours lie along a loop.
//
//   C[j] = C[j] + int32(A[k])*int32(B[j, k])  ->  place C[j], factors A[k] and B[j, k]
#include "compiler/analysis/multiply_add.h"

#include <algorithm>

#include "compiler/analysis/affine.h"
#include "compiler/analysis/prove.h"
#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"

namespace kiln::analysis {

using namespace ir;

std::optional<MultiplyAdd> multiply_add_of(const Store& store) {
  const auto* sum = as<Binary>(store.value);
  if (sum == nullptr || sum->op != Operator::Add) return std::nullopt;
  const auto is_place = [&](const Expr& expr) {
    const auto* load = as<Load>(expr);
    return load != nullptr && load->buffer == store.buffer && !load->predicate &&
           std::ranges::equal(load->indices, store.indices,
                              [](const Expr& a, const Expr& b) { return equal_trees(a, b); });
  };
  for (const auto& [place, term] : {std::pair(sum->a, sum->b), std::pair(sum->b, sum->a)}) {
    const auto* product = as<Binary>(term);
    if (!is_place(place) || product == nullptr || product->op != Operator::Mul) continue;
    return MultiplyAdd{place, product->a, product->b};
  }
  return std::nullopt;
}

const Load* load_in(const Expr& factor) {
  const auto* cast = as<Cast>(factor);
  const auto* load = as<Load>(cast != nullptr ? cast->value : factor);
  return load != nullptr && !load->predicate ? load : nullptr;
}

bool is_converted(const Expr& factor, DType sum) {
  const auto* cast = as<Cast>(factor);
  return cast != nullptr && cast->type.element == sum;
}

std::optional<int64_t> distance(const BufferRef& buffer, const std::vector<Expr>& indices,
                                const VarRef& var) {
  int64_t result = 0;
  std::optional<int64_t> stride = 1;  // of the dimension
  Expr digits = index(0);             // the place in dimensions that one loop goes through together
  for (size_t d = indices.size(); d-- > 0;) {
    if (!buffer->strides.empty()) stride = as_const_int(buffer->strides[d]);
    const std::optional<int64_t> step = stride_of(indices[d], var);
    if (!stride && step != 0) return std::nullopt;
    if (!step) digits = digits + indices[d] * index(*stride);
    int64_t part = 0;
    if (__builtin_mul_overflow(step.value_or(0), stride.value_or(0), &part) ||
        __builtin_add_overflow(result, part, &result)) {
      return std::nullopt;
    }
    const std::optional<int64_t> extent = as_const_int(buffer->shape[d]);
    int64_t next = 0;
    const bool is_known = stride && extent && !__builtin_mul_overflow(*stride, *extent, &next);
    stride = is_known ? std::optional(next) : std::nullopt;
  }
  const std::optional<int64_t> of_digits = stride_of(simplify(digits), var);
  if (!of_digits || __builtin_add_overflow(result, *of_digits, &result)) return std::nullopt;
  return result;
}

}  // namespace kiln::analysis
