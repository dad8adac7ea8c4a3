// Functions that generated CUDA C calls for operators which C has in another sense: rounding
// division, minima that pass nan on, shifts by any count. As templates, so that a function serves
// all types, and only those that a kernel mentions are put in front of it. NVRTC needs no header
// for any of them.
#include "compiler/codegen/cuda_prelude.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "compiler/codegen/matrix_prelude.h"

namespace kiln::codegen {
namespace {

using Function = PreludeFunction;

// A function stands after those it calls. What they compute is what the operator table says.
constexpr std::array kFunctions = {
    Function{"KilnFault", R"(struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};
)"},
    Function{
        "kiln_fire",
        R"(__device__ inline void kiln_fire(KilnFault* fault, int check, long long index, long long extent) {
  if (atomicCAS(&fault->check, -1, check) != -1) return;
  fault->index = index;
  fault->extent = extent;
}
)"},
    // In memory of the device, which all threads of later launches can read at little cost: what
    // KilnFault lies in is the host's. The runtime clears it. Past the first level of the cache,
    // which does not see what other cores write.
    Function{"kiln_stop",
             R"(__device__ int kiln_stopped;
__device__ inline void kiln_stop(KilnFault* fault, int check, long long index, long long extent) {
  atomicExch(&kiln_stopped, 1);
  kiln_fire(fault, check, index, extent);
}
__device__ inline bool kiln_is_stopped() { return __ldcg(&kiln_stopped) != 0; }
)"},
    Function{"kiln_floordiv", R"(template <typename T>
__device__ inline T kiln_floordiv(T a, T b) {
  if (b == 0) return 0;
  if (T(-1) < T(0) && b == T(-1)) return T(0ull - (unsigned long long)a);
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
)"},
    Function{"kiln_floormod", R"(template <typename T>
__device__ inline T kiln_floormod(T a, T b) {
  if (b == 0 || (T(-1) < T(0) && b == T(-1))) return 0;
  const T remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}
)"},
    Function{"kiln_truncdiv", R"(template <typename T>
__device__ inline T kiln_truncdiv(T a, T b) {
  if (b == 0) return 0;
  if (T(-1) < T(0) && b == T(-1)) return T(0ull - (unsigned long long)a);
  return a / b;
}
)"},
    Function{"kiln_truncmod", R"(template <typename T>
__device__ inline T kiln_truncmod(T a, T b) {
  return b == 0 || (T(-1) < T(0) && b == T(-1)) ? 0 : a % b;
}
)"},
    Function{"kiln_floormod_float", R"(template <typename T>
__device__ inline T kiln_floormod_float(T a, T b) {
  T remainder = ::fmod(a, b);
  if (remainder == 0) return ::copysign(T(0), b);
  return (remainder < 0) != (b < 0) && remainder == remainder ? remainder + b : remainder;
}
)"},
    Function{"kiln_floordiv_float", R"(template <typename T>
__device__ inline T kiln_floordiv_float(T a, T b) {
  if (b == 0) return a / b;
  const T remainder = ::fmod(a, b);
  T ratio = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) ratio -= 1;
  if (ratio == 0) return ::copysign(T(0), a / b);
  const T whole = ::floor(ratio);
  return ratio - whole > T(0.5) ? whole + 1 : whole;
}
)"},
    Function{"kiln_float_of_bits", R"(__device__ inline float kiln_float_of_bits(unsigned bits) {
  union { unsigned from; float to; } same;
  same.from = bits;
  return same.to;
}
__device__ inline unsigned kiln_bits_of_float(float value) {
  union { float from; unsigned to; } same;
  same.from = value;
  return same.to;
}
)"},
    // Rounded by integer arithmetic on the bits of a float: adding half of the last place carries
    // into the exponent. A double is rounded to odd first, so that rounding twice is as rounding
    // once (Boldo and Melquiond, 2008). Of a float16 the hardware does both, and since sm_80 the
    // rounding to bfloat16.
    Function{
        "kiln_small_float",
        R"(template <typename Bits, int kMantissa, int kBias, unsigned kOverflow, unsigned kNan>
struct kiln_small_float {
  Bits bits;
  static __device__ kiln_small_float of(float value) {
#ifdef __CUDA_ARCH__
    if (kMantissa == 10) {
      unsigned short half;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
      return {Bits(half)};
    }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (kMantissa == 7) {
      unsigned short half;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value));
      return {Bits(half)};
    }
#endif
    const unsigned magnitude = kiln_bits_of_float(value) & 0x7fffffffu;
    const unsigned sign = (kiln_bits_of_float(value) >> 31) << (8 * sizeof(Bits) - 1);
    if (magnitude > 0x7f800000u) return {Bits(sign | kNan)};
    const int dropped = 23 - kMantissa;
    const unsigned half = ((magnitude >> dropped) & 1u) + (1u << (dropped - 1)) - 1u;
    unsigned rounded = ((magnitude + half) >> dropped) - ((127u - kBias) << kMantissa);
    if (kBias != 127 && magnitude < (128u - kBias) << 23) {
      const unsigned anchor = (127u + 24u - kBias - kMantissa) << 23;
      const float anchored = kiln_float_of_bits(magnitude) + kiln_float_of_bits(anchor);
      rounded = kiln_bits_of_float(anchored) - anchor;
    } else if (rounded > kOverflow) {
      rounded = kOverflow;
    }
    return {Bits(sign | rounded)};
  }
  static __device__ kiln_small_float of(double value) {
    const float nearest = (float)value;
    unsigned bits = kiln_bits_of_float(nearest);
    if (nearest - nearest == 0.0f && nearest != value) {
      if (::fabs((double)nearest) > ::fabs(value)) --bits;
      bits |= 1u;
    }
    return of(kiln_float_of_bits(bits));
  }
  __device__ operator float() const {
#ifdef __CUDA_ARCH__
    if (kMantissa == 10) {
      float wide;
      asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"((unsigned short)bits));
      return wide;
    }
#endif
    const unsigned top = 8 * sizeof(Bits) - 1;
    const unsigned sign = ((unsigned)bits >> top) << 31;
    const unsigned magnitude = bits & ((1u << top) - 1u);
    if (magnitude >= kOverflow) {
      const bool is_nan = kOverflow == kNan || magnitude > kOverflow;
      return kiln_float_of_bits(sign | (is_nan ? 0x7fc00000u : 0x7f800000u));
    }
    const float placed = kiln_float_of_bits(magnitude << (23 - kMantissa));
    const float scaled = placed * kiln_float_of_bits((254u - kBias) << 23);
    return kiln_float_of_bits(sign | kiln_bits_of_float(kBias == 127 ? placed : scaled));
  }
};
)"},
    Function{"kiln_float16",
             "typedef kiln_small_float<unsigned short, 10, 15, 0x7c00, 0x7e00> kiln_float16;\n"},
    Function{"kiln_bfloat16",
             "typedef kiln_small_float<unsigned short, 7, 127, 0x7f80, 0x7fc0> kiln_bfloat16;\n"},
    Function{"kiln_float8_e4m3fn",
             "typedef kiln_small_float<unsigned char, 3, 7, 0x7f, 0x7f> kiln_float8_e4m3fn;\n"},
    Function{"kiln_float8_e5m2",
             "typedef kiln_small_float<unsigned char, 2, 15, 0x7c, 0x7e> kiln_float8_e5m2;\n"},
    // cp.async of sm_80 and later; what is older copies at once, and has nothing to wait for.
    // So many bytes behind each of the two places, as the instruction has it.
    Function{"kiln_copy", R"(template <int kBytes, int kTo, int kFrom>
__device__ inline void kiln_copy(void* to, const void* from) {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_copy((char*)to + kTo, (const char*)from + kFrom, kBytes);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;"
                 : : "r"(place), "l"(from), "n"(kTo), "n"(kFrom) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], %4;"
                 : : "r"(place), "l"(from), "n"(kTo), "n"(kFrom), "n"(kBytes) : "memory");
  }
#else
  to = (char*)to + kTo;
  from = (const char*)from + kFrom;
  if (kBytes == 16) *(uint4*)to = *(const uint4*)from;
  else if (kBytes == 8) *(uint2*)to = *(const uint2*)from;
  else *(unsigned*)to = *(const unsigned*)from;
#endif
}
)"},
    // The same where something is; where nothing is, which is not read, zeros.
    Function{"kiln_copy_or_zero", R"(template <int kBytes, int kTo, int kFrom>
__device__ inline void kiln_copy_or_zero(void* to, const void* from, bool is_there) {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_copy((char*)to + kTo, is_there ? (const char*)from + kFrom : 0, kBytes);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  const int bytes = is_there ? kBytes : 0;
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, %2;"
                 : : "r"(place), "l"(from), "r"(bytes), "n"(kTo), "n"(kFrom) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], %5, %2;"
                 : : "r"(place), "l"(from), "r"(bytes), "n"(kTo), "n"(kFrom), "n"(kBytes)
                 : "memory");
  }
#else
  to = (char*)to + kTo;
  from = (const char*)from + kFrom;
  if (kBytes == 16) *(uint4*)to = is_there ? *(const uint4*)from : uint4{0, 0, 0, 0};
  else if (kBytes == 8) *(uint2*)to = is_there ? *(const uint2*)from : uint2{0, 0};
  else *(unsigned*)to = is_there ? *(const unsigned*)from : 0;
#endif
}
)"},
    // A pointer that moves by itself: the compiler would make one of several again, from which it
    // computes the others.
    Function{"kiln_moving", R"(__device__ inline const char* kiln_moving(const void* place) {
  const char* p = (const char*)place;
#ifndef KILN_CUDA_ON_HOST
  asm volatile("" : "+l"(p));
#endif
  return p;
}
)"},
    // ptxas (13.0) falls on sm_120 where addresses have constants of more than 32 bits in them.
    Function{"kiln_far",
             R"(__device__ inline unsigned char* kiln_far(unsigned char* place, long long bytes) {
#ifdef KILN_CUDA_ON_HOST
  return place + bytes;
#else
  asm volatile("add.s64 %0, %0, %1;" : "+l"(place) : "l"(bytes));
  return place;
#endif
}
)"},
    Function{"kiln_end_group", R"(__device__ inline void kiln_end_group() {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_end_group();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}
)"},
    Function{"kiln_await", R"(template <int kGroups>
__device__ inline void kiln_await() {
#ifdef KILN_CUDA_ON_HOST
  kiln_host_await(kGroups);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" : : "n"(kGroups) : "memory");
#endif
}
)"},
    // Where an element of shared memory lies whose 16 bytes change places (ir/swizzle.h). Bits of
    // `behind` are none of `place`, and known once loops are unrolled: those that change places
    // are an XOR, the others a constant of the instruction. In bytes, since no compiler moves a
    // shift past an XOR.
    Function{"kiln_swizzled", R"(template <int kFrom, int kTo, typename T>
__device__ inline T* kiln_swizzled(T* memory, int place, int behind) {
  const int field = (7 << kTo) * (int)sizeof(T);
  const int own = (place ^ (place >> kFrom & 7) << kTo) * (int)sizeof(T);
  const int moved = (behind ^ (behind >> kFrom & 7) << kTo) * (int)sizeof(T);
  return (T*)((char*)memory + (own ^ (moved & field)) + (moved & ~field));
}
)"},
    Function{"kiln_bits", R"(template <typename T, typename F>
__device__ inline T kiln_bits(F value) {
  static_assert(sizeof(T) == sizeof(F), "two types of one width");
  union { F from; T to; } same;
  same.from = value;
  return same.to;
}
)"},
    // By words, since types of 8 and 16 bits have no shuffle of their own; unrolled, since words
    // with an index would lie in memory.
    Function{"kiln_shuffle", R"(template <typename T>
__device__ inline T kiln_shuffle(T value, int distance, int width) {
  union { T value; unsigned words[(sizeof(T) + 3) / 4]; } moved;
  moved.words[0] = 0;
  moved.value = value;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) + 3) / 4; ++i)
    moved.words[i] = __shfl_down_sync(0xffffffffu, moved.words[i], distance, width);
  return moved.value;
}
)"},
    Function{"kiln_shuffle_lane", R"(template <typename T>
__device__ inline T kiln_shuffle_lane(T value, long long lane, int width) {
  union { T value; unsigned words[(sizeof(T) + 3) / 4]; } moved;
  moved.words[0] = 0;
  moved.value = value;
#pragma unroll
  for (int i = 0; i < int(sizeof(T) + 3) / 4; ++i)
    moved.words[i] = __shfl_sync(0xffffffffu, moved.words[i], (int)lane, width);
  return moved.value;
}
)"},
    Function{"kiln_nextafter", R"(template <typename T>
__device__ inline T kiln_nextafter(T a, T b) {
  const float from = a, to = b;
  if (from != from) return a;
  if (!(from < to || from > to)) return b;
  const unsigned sign = 1u << (8 * sizeof(T) - 1);
  if (from == 0) a.bits = (b.bits & sign) | 1u;
  else a.bits += (from < to) == (from > 0) ? 1 : -1;
  return a;
}
)"},
    Function{"kiln_pow", R"(template <typename T>
__device__ inline T kiln_pow(T a, T b) {
  if (T(-1) < T(0) && b < 0) return a == 1 || a == T(-1) ? (b % 2 == 0 ? T(1) : a) : T(0);
  unsigned long long result = 1, base = (unsigned long long)a;
  for (unsigned long long rest = (unsigned long long)b; rest != 0; rest >>= 1) {
    if (rest & 1) result *= base;
    base *= base;
  }
  return T(result);
}
)"},
    Function{"kiln_tf32", R"(__device__ inline float kiln_tf32(float a) {
  return a != a ? a : kiln_float_of_bits(kiln_bits_of_float(a) & 0xffffe000u);
}
)"},
    // One instruction, where exp2f has two multiplications and a comparison more for what would be
    // subnormal.
    Function{"kiln_flushed_power", R"(__device__ inline float kiln_flushed_power(float exponent) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  return power;
#else
  return exponent < -126.0f ? 0.0f : ::exp2f(exponent);
#endif
}
)"},
    // One instruction instead of four; of two zeros it is the sign that may differ.
    Function{"kiln_min", R"(template <typename T>
__device__ inline T kiln_min(T a, T b) {
  return a != a || !(b < a || b != b) ? a : b;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <>
__device__ inline float kiln_min<float>(float a, float b) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
  return least;
}
#endif
)"},
    Function{"kiln_max", R"(template <typename T>
__device__ inline T kiln_max(T a, T b) {
  return a != a || !(a < b || b != b) ? a : b;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <>
__device__ inline float kiln_max<float>(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}
#endif
)"},
    Function{"kiln_atomic_bits", R"(template <typename T, typename Bits, typename Change>
__device__ inline void kiln_atomic_bits(T* place, Change change) {
  union { T value; Bits bits; } seen, next;
  seen.bits = atomicCAS((Bits*)place, Bits(0), Bits(0));
  while (true) {
    next.value = change(seen.value);
    if (next.bits == seen.bits) return;
    const Bits now = atomicCAS((Bits*)place, seen.bits, next.bits);
    if (now == seen.bits) return;
    seen.bits = now;
  }
}
)"},
    Function{"kiln_atomic_min", R"(__device__ inline void kiln_atomic_min(float* place, float b) {
  kiln_atomic_bits<float, unsigned>(place, [=](float a) { return kiln_min(a, b); });
}
__device__ inline void kiln_atomic_min(double* place, double b) {
  kiln_atomic_bits<double, unsigned long long>(place, [=](double a) { return kiln_min(a, b); });
}
)"},
    Function{"kiln_atomic_max", R"(__device__ inline void kiln_atomic_max(float* place, float b) {
  kiln_atomic_bits<float, unsigned>(place, [=](float a) { return kiln_max(a, b); });
}
__device__ inline void kiln_atomic_max(double* place, double b) {
  kiln_atomic_bits<double, unsigned long long>(place, [=](double a) { return kiln_max(a, b); });
}
)"},
    Function{"kiln_shift_left", R"(template <typename T>
__device__ inline T kiln_shift_left(T a, T count) {
  return count >= 0 && count < T(8 * sizeof(T)) ? T((unsigned long long)a << count) : T(0);
}
)"},
    Function{"kiln_shift_right", R"(template <typename T>
__device__ inline T kiln_shift_right(T a, T count) {
  return count >= 0 && count < T(8 * sizeof(T)) ? T(a >> count) : a < 0 ? T(-1) : T(0);
}
)"},
    Function{"kiln_to_int", R"(template <typename T, typename F>
__device__ inline T kiln_to_int(F value, T smallest, T largest) {
  if (value != value) return 0;
  return value <= F(smallest) ? smallest : value >= F(largest) ? largest : T(value);
}
)"},
};

bool mentions(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == text.size() || text[end] != '_') return true;  // not a longer name
  }
  return false;
}

}  // namespace

std::string cuda_prelude(std::string_view code) {
  std::string result;
  std::string all(code);
  for (const std::span<const Function> functions :
       {matrix_functions(), std::span<const Function>(kFunctions)}) {
    for (auto function = functions.rbegin(); function != functions.rend(); ++function) {
      if (!mentions(all, function->name)) continue;
      result = fmt::format("{}\n{}", function->text, result);
      all += function->text;
    }
  }
  return result;
}

}  // namespace kiln::codegen
