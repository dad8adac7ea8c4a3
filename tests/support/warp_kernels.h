#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/support/random.h"

namespace kiln::testing {

/// A warp turns its elements round.
inline std::string warp_turned_round(std::string_view type) {
  return fmt::format(R"(
kernel k(A: {0}[m]) -> (B: {0}[m]) {{
  B[i] = A[floordiv(i, 32)*32 + 31 - floormod(i, 32)]
  schedule cuda {{
    cache_read(A, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    bind(A.warp.ax0, threadIdx.x)
  }}
}})",
                     type);
}

/// Half warps lie side by side.
inline std::string half_warps() {
  return R"(
kernel k(A: float32[16, 16]) -> (B: float32[16, 16]) {
  B[j, i] = A[j, floormod(i + 1, 16)]
  schedule cuda {
    cache_read(A, warp, B)
    split(B.j, parts=2)
    bind(B.i, threadIdx.x)
    bind(B.j.inner, threadIdx.y)
    bind(B.j.outer, blockIdx.x)
    compute_at(A.warp, B.j.inner)
    bind(A.warp.ax1, threadIdx.x)
  }
})";
}

/// Two buffers of one warp.
inline std::string two_buffers_of_a_warp() {
  return R"(
kernel k(A: float32[m], X: float32[m]) -> (B: float32[m]) {
  B[i] = A[floordiv(i, 32)*32 + floormod(i + 1, 32)] + X[floordiv(i, 32)*32 + floormod(i + 2, 32)]
  schedule cuda {
    cache_read(A, warp, B)
    cache_read(X, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    bind(A.warp.ax0, threadIdx.x)
    compute_at(X.warp, B.i.outer)
    bind(X.warp.ax0, threadIdx.x)
  }
})";
}

/// Each thread reads what it holds itself.
inline std::string own_elements_of_a_warp() {
  return R"(
kernel k(A: float32[m]) -> (B: float32[m]) {
  B[i] = A[i] + 1.0
  schedule cuda {
    cache_read(A, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    bind(A.warp.ax0, threadIdx.x)
  }
})";
}

/// A window of three slides over what a warp holds: 34 elements, the last two with the first lanes.
inline std::string window_over_a_warp() {
  return R"(
kernel k(A: float32[n + 2]) -> (B: float32[n]) {
  B[i] = A[i] + A[i + 1] + A[i + 2]
  schedule cuda {
    cache_read(A, warp, B)
    split(B.i, factor=32)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    split(A.warp.ax0, factor=32)
    bind(A.warp.ax0.inner, threadIdx.x)
  }
})";
}

/// Inside of its threads a warp fills its memory together: each fetches some of `factor` elements.
inline std::string vector_of_a_warp(int factor) {
  return fmt::format(R"(
kernel k(A: float32[n, 128], V: float32[128]) -> (B: float32[n]) {{
  B[i] = sum[k < 128](A[i, k] * V[k])
  schedule cuda {{
    cache_read(V, warp, B)
    split(B.i, factor=16)
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner, threadIdx.x)
    split(B.k, factor={})
    compute_at(V.warp, B.k.outer)
    split(V.warp.ax0, factor=16)
    bind(V.warp.ax0.inner, threadIdx.x)
  }}
}})",
                     factor);
}

/// Neighbours that a lane stores stay with it, as a vector.
inline std::string neighbours_of_a_lane() {
  return R"(
kernel k(A: float32[n, 128]) -> (B: float32[n, 128]) {
  B[i, j] = A[i, 127 - j]
  schedule cuda {
    cache_read(A, warp, B)
    bind(B.i, blockIdx.x)
    split(B.j, factor=4)
    bind(B.j.outer, threadIdx.x)
    compute_at(A.warp, B.i)
    split(A.warp.ax1, factor=4)
    bind(A.warp.ax1.outer, threadIdx.x)
    vectorize(A.warp.ax1.inner)
  }
})";
}

/// A tile of a warp with a drawn number of threads, of neighbours that each holds and of rounds,
/// each element of it read once, in a drawn order.
inline std::string drawn_tile_of_a_warp(Random& random) {
  const int lanes = 1 << random.between(1, 5);
  const int side = 1 << random.between(0, 2);
  const int rounds = random.between(1, 3);
  const int tile = lanes * side * rounds;
  const int shift = random.between(0, tile - 1);
  const std::string place =
      random.pick(std::vector<std::string>{fmt::format("{} - floormod(i, {})", tile - 1, tile),
                                           fmt::format("floormod(i + {}, {})", shift, tile)});
  const bool adds_own = random.chance(0.5);
  const std::string others = adds_own ? " + A[i]" : "";
  return fmt::format(R"(kernel k(A: int32[{0}]) -> (B: int32[{0}]) {{
  B[i] = A[floordiv(i, {1})*{1} + {2}]{3}
  schedule cuda {{
    cache_read(A, warp, B)
    split(B.i, factor={1})
    split(B.i.inner, factor={4})
    bind(B.i.outer, blockIdx.x)
    bind(B.i.inner.inner, threadIdx.x)
    compute_at(A.warp, B.i.outer)
    split(A.warp.ax0, factor={5})
    split(A.warp.ax0.outer, factor={4})
    bind(A.warp.ax0.outer.inner, threadIdx.x)
  }}
}})",
                     tile * 2, tile, place, others, lanes, side);
}

}  // namespace kiln::testing
