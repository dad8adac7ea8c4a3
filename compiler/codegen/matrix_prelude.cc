// Functions of the prelude for tensor cores: fragments that a warp loads from shared memory
// (ldmatrix), and products of these (mma.sync).
#include "compiler/codegen/matrix_prelude.h"

#include <array>

namespace kiln::codegen {
namespace {

using Function = PreludeFunction;

// A function stands after those it calls.
constexpr std::array kFunctions = {
    // The tensor cores of sm_80 and later; a strict kernel keeps the order of its sums.
    Function{"KILN_HAS_MATRIX_UNITS", R"(#ifdef KILN_CUDA_ON_HOST
#define KILN_HAS_MATRIX_UNITS 1
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(KILN_STRICT)
#define KILN_HAS_MATRIX_UNITS 1
#else
#define KILN_HAS_MATRIX_UNITS 0
#endif
)"},
    // Sums of integers are the same in any order.
    Function{"KILN_HAS_BYTE_MATRIX_UNITS", R"(#ifdef KILN_CUDA_ON_HOST
#define KILN_HAS_BYTE_MATRIX_UNITS 1
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define KILN_HAS_BYTE_MATRIX_UNITS 1
#else
#define KILN_HAS_BYTE_MATRIX_UNITS 0
#endif
)"},
    Function{"KILN_HAS_FLOAT8_MATRIX_UNITS", R"(#ifdef KILN_CUDA_ON_HOST
#define KILN_HAS_FLOAT8_MATRIX_UNITS 1
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890 && !defined(KILN_STRICT)
#define KILN_HAS_FLOAT8_MATRIX_UNITS 1
#else
#define KILN_HAS_FLOAT8_MATRIX_UNITS 0
#endif
)"},
    Function{"kiln_load_matrices", R"(template <bool kTurned>
__device__ inline void kiln_load_matrices(unsigned* to, const void* row) {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_load_matrices(to, row, kTurned);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned place = (unsigned)__cvta_generic_to_shared(row);
  if (kTurned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(place) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(place) : "memory");
  }
#endif
}
)"},
    Function{"kiln_multiply", R"(template <typename T, bool kIsBfloat16>
__device__ inline void kiln_multiply(float& a, float& b, float& c, float& d, const unsigned* rows,
                                     const unsigned* columns) {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_multiply<T>(a, b, c, d, rows, columns);
#elif KILN_HAS_MATRIX_UNITS
  if (!kIsBfloat16) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(a), "+f"(b), "+f"(c), "+f"(d)
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]),
                   "r"(columns[1]));
  } else {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(a), "+f"(b), "+f"(c), "+f"(d)
                 : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]),
                   "r"(columns[1]));
  }
#endif
}
)"},
    // What hardware does not turn: of rows what is eight below comes second, of columns what is
    // half of the steps on.
    Function{"kiln_load_words", R"(template <int kSecond, int kLast>
__device__ inline void kiln_load_words(unsigned* to, const float* from) {
  to[0] = *(const unsigned*)from;
  to[1] = *(const unsigned*)(from + kSecond);
  to[2] = *(const unsigned*)(from + kLast);
  to[3] = *(const unsigned*)(from + kSecond + kLast);
}
)"},
    // Of each factor tensor cores read all but the lower 13 bits, which is what kiln_tf32 leaves.
    Function{"kiln_multiply_tf32",
             R"(__device__ inline void kiln_multiply_tf32(float& a, float& b, float& c, float& d,
                                          const unsigned* rows, const unsigned* columns) {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_multiply_tf32(a, b, c, d, rows, columns);
#elif KILN_HAS_MATRIX_UNITS
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(a), "+f"(b), "+f"(c), "+f"(d)
               : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]),
                 "r"(columns[1]));
#endif
}
)"},
    // Hardware turns pairs of bytes: a lane has the pairs of four steps in two words, of lanes that
    // count as odd the last two steps first (place_of_turned_bytes). Each word is to have the four
    // steps of one row or column.
    Function{"kiln_load_turned_bytes", R"(template <bool kAreColumns>
__device__ inline void kiln_load_turned_bytes(unsigned* to, const void* row) {
  unsigned pairs[4];
  kiln_load_matrices<true>(pairs, row);
  const unsigned first = threadIdx.x & 2 ? 0x2064 : 0x6420;
  const unsigned second = first + 0x1111;
  to[0] = __byte_perm(pairs[0], pairs[1], first);
  to[kAreColumns ? 2 : 1] = __byte_perm(pairs[0], pairs[1], second);
  to[kAreColumns ? 1 : 2] = __byte_perm(pairs[2], pairs[3], first);
  to[3] = __byte_perm(pairs[2], pairs[3], second);
}
)"},
    // Without .satfinite, which would stop at the largest int: sums wrap around.
    Function{"kiln_multiply_bytes", R"(template <typename A, typename B>
__device__ inline void kiln_multiply_bytes(int& a, int& b, int& c, int& d, const unsigned* rows,
                                           const unsigned* columns) {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_multiply_bytes<A, B>(a, b, c, d, rows, columns);
#elif KILN_HAS_BYTE_MATRIX_UNITS
#define KILN_MULTIPLY(types)                                                            \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 "                   \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
               : "+r"(a), "+r"(b), "+r"(c), "+r"(d)                                     \
               : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), \
                 "r"(columns[1]))
  const bool has_signs = A(-1) < A(0);
  if (B(-1) < B(0)) {
    if (has_signs) KILN_MULTIPLY("s8.s8");
    else KILN_MULTIPLY("u8.s8");
  } else {
    if (has_signs) KILN_MULTIPLY("s8.u8");
    else KILN_MULTIPLY("u8.u8");
  }
#undef KILN_MULTIPLY
#endif
}
)"},
    // Four 8-bit floats, exactly.
    Function{"kiln_halves_of", R"(template <bool kIsE5M2>
__device__ inline void kiln_halves_of(unsigned bytes, unsigned& low, unsigned& high) {
#if KILN_HAS_FLOAT8_MATRIX_UNITS && !defined(KILN_CUDA_ON_HOST)
#define KILN_WIDEN(type)                                                       \
  asm("{ .reg .b16 x, y; mov.b32 {x, y}, %2;"                                  \
      " cvt.rn.f16x2." type "x2 %0, x; cvt.rn.f16x2." type "x2 %1, y; }"        \
      : "=r"(low), "=r"(high)                                                  \
      : "r"(bytes))
  if (kIsE5M2) KILN_WIDEN("e5m2");
  else KILN_WIDEN("e4m3");
#undef KILN_WIDEN
#endif
}
)"},
    // sm_89 and sm_120 multiply 8-bit floats, and add them up in fewer bits than a float has. What
    // lies between has no such instruction for a warp: there they are halves.
    Function{"KILN_HAS_SHORT_SUMS", R"(#ifdef KILN_CUDA_ON_HOST
#define KILN_HAS_SHORT_SUMS 1
#elif KILN_HAS_FLOAT8_MATRIX_UNITS && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200)
#define KILN_HAS_SHORT_SUMS 1
#else
#define KILN_HAS_SHORT_SUMS 0
#endif
)"},
    // What a few instructions add up by themselves, until float32 has it (ir/matrix_unit.cc).
    Function{"kiln_chain", R"(template <int kSums>
struct kiln_chain {
#if KILN_HAS_SHORT_SUMS
  float parts[kSums];
  __device__ kiln_chain() {
#pragma unroll
    for (int i = 0; i < kSums; ++i) parts[i] = 0.0f;
  }
  __device__ float* sums(float* whole) { return parts; }
  __device__ void add_to(float* whole) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) whole[i] += parts[i];
  }
#else
  __device__ float* sums(float* whole) { return whole; }
  __device__ void add_to(float* whole) {}
#endif
};
)"},
    // Behind a loop that has no register left: what is made of it is not made before, and kept.
    Function{"kiln_anew", R"(__device__ inline int kiln_anew(int lane) {
#if KILN_HAS_SHORT_SUMS && !defined(KILN_CUDA_ON_HOST)
  asm volatile("" : "+r"(lane));
#endif
  return lane;
}
)"},
    Function{"kiln_multiply_float8",
             R"(template <typename A, typename B, bool kIsAE5M2, bool kIsBE5M2>
__device__ inline void kiln_multiply_float8(float& a, float& b, float& c, float& d,
                                            const unsigned* rows, const unsigned* columns) {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_multiply_float8<A, B>(a, b, c, d, rows, columns);
#elif KILN_HAS_SHORT_SUMS
#define KILN_MULTIPLY(types)                                                            \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types ".f32 "                   \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
               : "+f"(a), "+f"(b), "+f"(c), "+f"(d)                                     \
               : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), \
                 "r"(columns[1]))
  if (kIsAE5M2) {
    if (kIsBE5M2) KILN_MULTIPLY("e5m2.e5m2");
    else KILN_MULTIPLY("e5m2.e4m3");
  } else {
    if (kIsBE5M2) KILN_MULTIPLY("e4m3.e5m2");
    else KILN_MULTIPLY("e4m3.e4m3");
  }
#undef KILN_MULTIPLY
#elif KILN_HAS_FLOAT8_MATRIX_UNITS
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    unsigned x[4], y[2];
    kiln_halves_of<kIsAE5M2>(rows[2 * i], x[0], x[2]);
    kiln_halves_of<kIsAE5M2>(rows[2 * i + 1], x[1], x[3]);
    kiln_halves_of<kIsBE5M2>(columns[i], y[0], y[1]);
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(a), "+f"(b), "+f"(c), "+f"(d)
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
#endif
}
)"},
};

}  // namespace

std::span<const PreludeFunction> matrix_functions() { return kFunctions; }

}  // namespace kiln::codegen
