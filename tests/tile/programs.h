#pragma once

#include <string>

#include <fmt/format.h>

namespace kiln::testing {

/// C[i, j] = relu(sum[k](A[i, k] * B[j, k]) + bias[j]) of any n, B transposed.
constexpr std::string_view kProduct =
    R"(tile product[n](A: bfloat16[n, 20], B: bfloat16[12, 20], bias: float32[12], C: float16[n, 12] output) {
  blocks i: n by 8, j: 12 by 8
  view v0 = A[8, 16]
  view v1 = B[16, 8] order [1, 0]
  view v2 = bias[8]
  view v3 = C[8, 8]
  t0 = constant float32[8, 8] 0
  t1 = for k: 20 by 16 with t2 = t0 {
    t3 = load v0[i, k]
    t4 = load v1[k, j]
    t5 = mma t3, t4, t2
    yield t5
  }
  t6 = load v2[j]
  t7 = reshape [1, 8] t6
  t8 = broadcast [8, 8] t7
  t9 = add t1, t8
  t10 = max t9, t0
  t11 = cast float16 t10
  store v3[i, j] = t11
}
)";

/// kProduct with a part of it replaced.
inline std::string product_with(std::string_view part, std::string_view other) {
  std::string text(kProduct);
  const size_t at = text.find(part);
  return at == std::string::npos ? "" : text.replace(at, part.size(), other);
}

}  // namespace kiln::testing
