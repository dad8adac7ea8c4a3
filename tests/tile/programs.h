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

/// 3 x 3 with a stride of 2, and 0 around the images, of which there are any number.
constexpr std::string_view kConvolution =
    R"(tile convolution[n](X: bfloat16[n, 6, 5, 20], F: bfloat16[3, 3, 20, 12], Y: float32[n, 3, 3, 12] output) {
  blocks b: n by 2, y: 3 by 2, x: 3 by 2, m: 12 by 8
  view v0 = F[1, 1, 16, 8]
  view v1 = Y[2, 2, 2, 8]
  t0 = constant float32[8, 8] 0
  t1 = for r: 3 by 1, s: 3 by 1, c: 20 by 16 with t2 = t0 {
    t3 = window X[b, y*2 + r - 1, x*2 + s - 1, c] over b, y, x by c
    t4 = load v0[r, s, c, m]
    t5 = reshape [16, 8] t4
    t6 = mma t3, t5, t2
    yield t6
  }
  t7 = reshape [2, 2, 2, 8] t1
  store v1[b, y, x, m] = t7
}
)";

/// C[i] = sum[j, i <= j < n - 1](A[i, j] + j), for eight rows and parts of four columns at once.
constexpr std::string_view kSums =
    R"(tile sums[n](A: float32[20, n], C: float32[20] output) {
  blocks i: 20 by 8
  view v0 = A[8, 4]
  view v1 = C[8]
  t0 = constant float32[8, 1] 0
  t1 = places [1, 1] i
  t2 = size [1, 1] n
  t3 = constant int32[1, 1] 1
  t4 = subtract t2, t3
  t5 = constant int32[1, 1] 3
  t6 = subtract t1, t5
  t7 = for j: n by 4 from t6 until t4 with t8 = t0 {
    t9 = load v0[i, j]
    t10 = places [1, 4] j
    t11 = cast float32 t10
    t12 = broadcast [8, 4] t11
    t13 = add t9, t12
    t14 = broadcast [8, 4] t10
    t15 = places [8, 1] i
    t16 = broadcast [8, 4] t15
    t17 = greater_equal t14, t16
    t18 = broadcast [8, 4] t4
    t19 = less t14, t18
    t20 = logical_and t17, t19
    t21 = constant float32[8, 4] 0
    t22 = select t20, t13, t21
    t23 = reduce sum 1 t22
    t24 = add t8, t23
    yield t24
  }
  t25 = reshape [8] t7
  store v1[i] = t25
}
)";

/// A program with a part of it replaced; "" where it has no such part.
inline std::string program_with(std::string_view program, std::string_view part,
                                std::string_view other) {
  std::string text(program);
  const size_t at = text.find(part);
  return at == std::string::npos ? "" : text.replace(at, part.size(), other);
}
inline std::string product_with(std::string_view part, std::string_view other) {
  return program_with(kProduct, part, other);
}

/// The product of 8-bit floats, by this instruction.
inline std::string byte_float_product(std::string_view mma) {
  const std::string text = product_with("A: bfloat16[n, 20]", "A: float8_e4m3fn[n, 20]");
  return program_with(program_with(text, "B: bfloat16[12, 20]", "B: float8_e4m3fn[12, 20]"), "mma",
                      mma);
}

}  // namespace kiln::testing
