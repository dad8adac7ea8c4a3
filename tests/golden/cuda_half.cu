struct KilnFault {
  int check;
  int reserved;
  long long index;
  long long extent;
};

__device__ inline float kiln_float_of_bits(unsigned bits) {
  union { unsigned from; float to; } same;
  same.from = bits;
  return same.to;
}
__device__ inline unsigned kiln_bits_of_float(float value) {
  union { float from; unsigned to; } same;
  same.from = value;
  return same.to;
}

template <typename Bits, int kMantissa, int kBias, unsigned kOverflow, unsigned kNan>
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

typedef kiln_small_float<unsigned short, 10, 15, 0x7c00, 0x7e00> kiln_float16;

typedef kiln_small_float<unsigned short, 7, 127, 0x7f80, 0x7fc0> kiln_bfloat16;

template <typename T>
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

extern "C" __global__ void __launch_bounds__(64) kiln_narrow_0(const kiln_float16* __restrict__ A, const kiln_bfloat16* __restrict__ B, kiln_float16* __restrict__ C, int n, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const int blockIdx_x = blockIdx.x;
  const int threadIdx_x = threadIdx.x;
  if (blockIdx_x * 64 + threadIdx_x < n) {
    C[blockIdx_x * 64 + threadIdx_x] = kiln_float16::of((float)kiln_float16::of(kiln_max<float>((float)kiln_float16::of((float)A[blockIdx_x * 64 + threadIdx_x] * 1.5f), 0.0f)) + (float)kiln_float16::of((float)B[blockIdx_x * 64 + threadIdx_x]));
  }
}

extern "C" __global__ void __launch_bounds__(64) kiln_compact_0(const kiln_float16* __restrict__ A, const kiln_bfloat16* __restrict__ B, kiln_float16* __restrict__ C, long long n, long long, long long, long long, unsigned char* workspace, KilnFault* fault) {
  const long long blockIdx_x = blockIdx.x;
  const long long threadIdx_x = threadIdx.x;
  if (blockIdx_x * 64 + threadIdx_x < n) {
    C[blockIdx_x * 64 + threadIdx_x] = kiln_float16::of((float)kiln_float16::of(kiln_max<float>((float)kiln_float16::of((float)A[blockIdx_x * 64 + threadIdx_x] * 1.5f), 0.0f)) + (float)kiln_float16::of((float)B[blockIdx_x * 64 + threadIdx_x]));
  }
}
