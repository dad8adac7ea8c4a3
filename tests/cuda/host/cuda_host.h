// What the fake NVRTC puts before CUDA C to compile it for the host: the words of CUDA that
// generated code uses. One fiber runs each thread of a block; threads.h says how they meet.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/cuda/host/threads.h"

#define KILN_CUDA_ON_HOST 1

// Of the fake driver; not of the kernel, whose accesses are watched.
#define KILN_HOST_ONLY __attribute__((no_sanitize("thread")))

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ static const
// One copy for a block, since blocks run one after another, in a part of memory that can be found.
#define __shared__ static __attribute__((section("kiln_shared")))

struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

// As CUDA has it, each is a variable; here they are asked for, since threads take turns. By value,
// so that no access to them is watched.
KILN_HOST_ONLY inline uint3 kiln_triple(const unsigned (&values)[3]) {
  return {values[0], values[1], values[2]};
}
#define threadIdx kiln_triple(kiln_thread()->index)
#define blockIdx kiln_triple(kiln_block()->index)
#define blockDim kiln_triple(kiln_block()->threads)
#define gridDim kiln_triple(kiln_block()->grid)

KILN_HOST_ONLY inline void __syncthreads() { kiln_meet_block(); }
KILN_HOST_ONLY inline void __syncwarp(unsigned mask = ~0u) { kiln_meet_warp(mask, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T>
KILN_HOST_ONLY inline uint64_t kiln_to_bits(T value) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T>
KILN_HOST_ONLY inline T kiln_from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// What `lane` of this warp has in `value`; its own where the lane takes no part.
template <typename T>
KILN_HOST_ONLY inline T kiln_of_lane(unsigned mask, T value, int lane) {
  return kiln_from_bits<T>(kiln_meet_warp(mask, kiln_to_bits(value))[lane & 31]);
}
template <typename T>
KILN_HOST_ONLY inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const int own = kiln_lane();
  return kiln_of_lane(mask, value, (own & ~(width - 1)) + (lane & (width - 1)));
}
template <typename T>
KILN_HOST_ONLY inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int own = kiln_lane();
  const bool inside = (own & (width - 1)) + static_cast<int>(by) < width;
  return kiln_of_lane(mask, value, inside ? own + static_cast<int>(by) : own);
}
template <typename T>
KILN_HOST_ONLY inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int own = kiln_lane();
  const bool inside = (own & (width - 1)) >= static_cast<int>(by);
  return kiln_of_lane(mask, value, inside ? own - static_cast<int>(by) : own);
}
template <typename T>
KILN_HOST_ONLY inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
  const int other = kiln_lane() ^ with;
  const bool inside = (other & ~(width - 1)) == (kiln_lane() & ~(width - 1));
  return kiln_of_lane(mask, value, inside ? other : kiln_lane());
}
KILN_HOST_ONLY inline unsigned __ballot_sync(unsigned mask, int is_so) {
  const uint64_t* const all = kiln_meet_warp(mask, is_so != 0);
  unsigned result = 0;
  for (int lane = 0; lane < 32; ++lane)
    result |= (mask >> lane & 1) != 0 && all[lane] != 0 ? 1u << lane : 0;
  return result;
}
KILN_HOST_ONLY inline unsigned __activemask() { return ~0u; }

/// ldmatrix: of four times eight rows, whose addresses the lanes give eight by eight, each lane
/// gets two neighbours a matrix; turned, the two are below each other.
KILN_HOST_ONLY inline void kiln_rows_of_lanes(const void* row, const char* (&rows)[32]) {
  const uint64_t* const all = kiln_meet_warp(~0u, reinterpret_cast<uint64_t>(row));
  for (int lane = 0; lane < 32; ++lane)
    rows[lane] = reinterpret_cast<const char*>(all[lane]);
}
inline void kiln_host_load_matrices(unsigned* to, const void* row, bool turned) {
  const char* rows[32];
  kiln_rows_of_lanes(row, rows);
  const int lane = kiln_lane();
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned short pair[2];
    for (int i = 0; i < 2; ++i) {
      const int along = lane % 4 * 2 + i;
      const char* const from = rows[matrix * 8 + (turned ? along : lane / 4)];
      pair[i] = reinterpret_cast<const unsigned short*>(from)[turned ? lane / 4 : along];
    }
    to[matrix] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
}

/// The words in which the lanes of a warp hold the factors of an mma: four of rows, two of columns.
KILN_HOST_ONLY inline void kiln_gather_factors(unsigned (&words)[6][32], const unsigned* rows,
                                               const unsigned* columns) {
  for (int word = 0; word < 6; ++word) {
    const uint64_t* const all = kiln_meet_warp(~0u, word < 4 ? rows[word] : columns[word - 4]);
    for (int lane = 0; lane < 32; ++lane)
      words[word][lane] = static_cast<unsigned>(all[lane]);
  }
}

/// mma.m16n8k16: the sums of a lane are two neighbours of row lane / 4, and those eight rows below.
template <typename T>
KILN_HOST_ONLY inline void kiln_host_multiply(float& a, float& b, float& c, float& d,
                                              const unsigned* rows, const unsigned* columns) {
  unsigned words[6][32];
  kiln_gather_factors(words, rows, columns);
  // Of element (row, k): which lane has it, in which word and half.
  const auto value = [&](int first, int line, int step, int word) {
    const unsigned both = words[first + word][line % 8 * 4 + step % 8 / 2];
    T element;
    const auto half = static_cast<unsigned short>(step % 2 == 0 ? both : both >> 16);
    std::memcpy(&element, &half, sizeof half);
    return static_cast<float>(element);
  };
  float* const sums[4] = {&a, &b, &c, &d};
  for (int i = 0; i < 4; ++i) {
    const int row = kiln_lane() / 4 + i / 2 * 8;
    const int column = kiln_lane() % 4 * 2 + i % 2;
    for (int step = 0; step < 16; ++step) {
      *sums[i] += value(0, row, step, row / 8 + step / 8 * 2) * value(4, column, step, step / 8);
    }
  }
}

/// mma.m16n8k8 of tf32: a lane has a row or a column, and a step, of each matrix. The lower 13 bits
/// of a factor are not read.
KILN_HOST_ONLY inline void kiln_host_multiply_tf32(float& a, float& b, float& c, float& d,
                                                   const unsigned* rows, const unsigned* columns) {
  unsigned words[6][32];
  kiln_gather_factors(words, rows, columns);
  const auto value = [&](int word, int lane) {
    const unsigned bits = words[word][lane] & 0xffffe000u;
    float element;
    std::memcpy(&element, &bits, sizeof bits);
    return element;
  };
  float* const sums[4] = {&a, &b, &c, &d};
  for (int i = 0; i < 4; ++i) {
    const int row = kiln_lane() / 4 + i / 2 * 8;
    const int column = kiln_lane() % 4 * 2 + i % 2;
    for (int step = 0; step < 8; ++step) {
      *sums[i] += value(row / 8 + step / 4 * 2, row % 8 * 4 + step % 4) *
                  value(4 + step / 4, column * 4 + step % 4);
    }
  }
}

template <typename T>
KILN_HOST_ONLY inline T kiln_from_byte(unsigned char byte) {
  static_assert(sizeof(T) == 1);
  T value;
  std::memcpy(&value, &byte, 1);
  return value;
}
/// Of integers it wraps around.
KILN_HOST_ONLY inline int kiln_plus_product(int sum, int x, int y) {
  return static_cast<int>(static_cast<unsigned>(sum) + static_cast<unsigned>(x * y));
}
KILN_HOST_ONLY inline double kiln_plus_product(double sum, double x, double y) {
  return sum + x * y;
}

/// mma.m16n8k32, of two types of 8 bits: a word has four steps of a row or a column.
template <typename A, typename B, typename Sum>
KILN_HOST_ONLY inline void kiln_host_multiply_bytes(Sum& a, Sum& b, Sum& c, Sum& d,
                                                    const unsigned* rows, const unsigned* columns) {
  unsigned words[6][32];
  kiln_gather_factors(words, rows, columns);
  const auto byte = [&](int word, int line, int step) {
    return static_cast<unsigned char>(words[word][line % 8 * 4 + step % 16 / 4] >> step % 4 * 8);
  };
  Sum* const sums[4] = {&a, &b, &c, &d};
  for (int i = 0; i < 4; ++i) {
    const int row = kiln_lane() / 4 + i / 2 * 8;
    const int column = kiln_lane() % 4 * 2 + i % 2;
    for (int step = 0; step < 32; ++step) {
      const auto x = kiln_from_byte<A>(byte(row / 8 + step / 16 * 2, row, step));
      const auto y = kiln_from_byte<B>(byte(4 + step / 16, column, step));
      *sums[i] = kiln_plus_product(*sums[i], static_cast<Sum>(x), static_cast<Sum>(y));
    }
  }
}

/// What a tensor core of sm_89 keeps of a sum of 8-bit floats: 13 bits behind the first.
KILN_HOST_ONLY inline float kiln_short_sum(double sum) {
  int exponent = 0;
  const double fraction = std::frexp(sum, &exponent);
  return static_cast<float>(std::ldexp(std::trunc(std::ldexp(fraction, 14)), exponent - 14));
}
/// Of 8-bit floats: the products are added to what is there as one number, which is cut short.
template <typename A, typename B>
KILN_HOST_ONLY inline void kiln_host_multiply_float8(float& a, float& b, float& c, float& d,
                                                     const unsigned* rows,
                                                     const unsigned* columns) {
  double sums[4] = {a, b, c, d};
  kiln_host_multiply_bytes<A, B>(sums[0], sums[1], sums[2], sums[3], rows, columns);
  float* const to[4] = {&a, &b, &c, &d};
  for (int i = 0; i < 4; ++i)
    *to[i] = kiln_short_sum(sums[i]);
}

/// prmt: each four bits of `which` name one of eight bytes.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
  const uint64_t bytes = low | static_cast<uint64_t>(high) << 32;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return result;
}

/// cp.async: it arrives where its thread awaits it, and not before.
inline void kiln_host_copy(void* to, const void* from, unsigned bytes) {
  kiln_begin_copy(to, from, bytes);
}
inline void kiln_host_end_group() { kiln_end_copies(); }
inline void kiln_host_await(unsigned groups) { kiln_await_copies(groups); }

/// An access that others may meet. Threads take turns only where they meet, so it is one piece.
template <typename T, typename Change>
KILN_HOST_ONLY inline T kiln_atomic(T* address, Change change) {
  kiln_note_atomic(address, sizeof(T), __builtin_return_address(0));
  const T old = *address;
  *address = change(old);
  return old;
}
template <typename T>
KILN_HOST_ONLY inline T atomicAdd(T* address, std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T old) { return static_cast<T>(old + value); });
}
template <typename T>
KILN_HOST_ONLY inline T atomicMax(T* address, std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T old) { return old < value ? value : old; });
}
template <typename T>
KILN_HOST_ONLY inline T atomicMin(T* address, std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T old) { return value < old ? value : old; });
}
template <typename T>
KILN_HOST_ONLY inline T atomicAnd(T* address, std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T old) { return static_cast<T>(old & value); });
}
template <typename T>
KILN_HOST_ONLY inline T atomicOr(T* address, std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T old) { return static_cast<T>(old | value); });
}
template <typename T>
KILN_HOST_ONLY inline T atomicXor(T* address, std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T old) { return static_cast<T>(old ^ value); });
}
template <typename T>
KILN_HOST_ONLY inline T atomicExch(T* address, std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T) { return value; });
}
template <typename T>
KILN_HOST_ONLY inline T atomicCAS(T* address, std::type_identity_t<T> expected,
                                  std::type_identity_t<T> value) {
  return kiln_atomic(address, [=](T old) { return old == expected ? value : old; });
}

template <typename T>
inline T __ldg(const T* address) {
  return *address;
}
/// As the one of GPUs, it may meet an access that changes the place: it reads before or after it.
template <typename T>
KILN_HOST_ONLY inline T __ldcg(const T* address) {
  return *address;
}
template <typename To, typename From>
KILN_HOST_ONLY inline To kiln_reinterpret(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline int __float_as_int(float value) { return kiln_reinterpret<int>(value); }
inline float __int_as_float(int value) { return kiln_reinterpret<float>(value); }
inline unsigned __float_as_uint(float value) { return kiln_reinterpret<unsigned>(value); }
inline float __uint_as_float(unsigned value) { return kiln_reinterpret<float>(value); }
inline long long __double_as_longlong(double value) { return kiln_reinterpret<long long>(value); }
inline double __longlong_as_double(long long value) { return kiln_reinterpret<double>(value); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
inline double rsqrt(double value) { return 1.0 / std::sqrt(value); }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(int value) {
  return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value));
}
inline int __clzll(long long value) {
  return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}
using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;

/// A kernel as the fake driver starts it: with the values that `parameters` points to.
namespace kiln_host {

template <typename... Parameters, size_t... I>
KILN_HOST_ONLY void call(void (*kernel)(Parameters...), void** parameters,
                         std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<Parameters>*>(parameters[I])...);
}

template <auto kernel>
struct Launcher;
template <typename... Parameters, void (*kernel)(Parameters...)>
struct Launcher<kernel> {
  static constexpr int count = sizeof...(Parameters);
  KILN_HOST_ONLY static void run(void** parameters) {
    call(kernel, parameters, std::index_sequence_for<Parameters...>());
  }
};

}  // namespace kiln_host

/// Where the driver finds a kernel of this name.
#define KILN_HOST_KERNEL(name)                                                                \
  extern "C" KILN_HOST_ONLY int name##_run(const KilnHostLaunch& launch, void** parameters) { \
    return kiln_run_grid(launch, &kiln_host::Launcher<&name>::run, parameters,                \
                         __start_kiln_shared, __stop_kiln_shared);                            \
  }                                                                                           \
  extern "C" const KilnHostKernel name##_on_host;                                             \
  const KilnHostKernel name##_on_host = {kiln_host::Launcher<&name>::count, &name##_run};
