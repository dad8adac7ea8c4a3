// Draws products of the types and shapes that tensor intrinsics take: bytes and bfloat16 in groups,
// or float32 with 16 or 32 columns.
//
//   C[i, j] = sum[q < n, r < 4](int32(A[i, q, r]) * int32(B[q, j, r]))
#include <fmt/format.h>

#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

DrawnExtent constant(int value) { return {"", value, value}; }

/// The product of two inputs, numbers from -4 to 4, over so many elements.
Values product_of(DType type, int elements) { return {.type = type, .bound = 16.0 * elements}; }

/// Groups of narrow numbers whose products are added in a wider type.
void add_dot(KernelWriter& writer, DType left, DType right, DType type, int group) {
  const DrawnExtent rows = writer.random.pick(writer.extents());
  const DrawnExtent groups = writer.random.pick(writer.extents());
  const DrawnTensor a = writer.add_own_input({rows, groups, constant(group)}, left);
  const DrawnTensor b = writer.add_own_input({groups, constant(16), constant(group)}, right);
  writer.add_compute(
      {writer.new_name(), {rows, constant(16)}, product_of(type, groups.value * group)}, {"i", "j"},
      fmt::format("sum[q < {}, r < {}]({}({}[i, q, r]) * {}({}[q, j, r]))", groups.text(), group,
                  name_of(type), a.name, name_of(type), b.name));
}

}  // namespace

bool add_tensor_product(KernelWriter& writer, const DrawnTensor&) {
  const int kind = writer.random.below(4);
  if (kind == 0) {
    add_dot(writer, DType::UInt8, DType::Int8, DType::Int32, 4);
  } else if (kind == 1) {
    add_dot(writer, DType::BFloat16, DType::BFloat16, DType::Float32, 2);
  } else {
    const DrawnExtent rows = writer.random.pick(writer.extents());
    const DrawnExtent inner = writer.random.pick(writer.extents());
    const DrawnExtent columns = constant(writer.random.chance(0.5) ? 16 : 32);
    const DrawnTensor a = writer.add_own_input({rows, inner}, DType::Float32);
    const DrawnTensor b = writer.add_own_input({inner, columns}, DType::Float32);
    writer.add_compute(
        {writer.new_name(), {rows, columns}, product_of(DType::Float32, inner.value)}, {"i", "j"},
        fmt::format("sum[r < {}]({}[i, r] * {}[r, j])", inner.text(), a.name, b.name));
  }
  return true;
}

}  // namespace kiln::testing
