// Functions that generated CUDA C calls for operators which C has in another sense: rounding
// division, minima that pass nan on, shifts by any count. As templates, so that a function serves
// all types, and only those that a kernel mentions are put in front of it. NVRTC needs no header
// for any of them.
#include "compiler/codegen/cuda_prelude.h"

#include <array>

#include <fmt/format.h>

namespace kiln::codegen {
namespace {

struct Function {
  std::string_view name;
  std::string_view text;
};

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
    Function{"kiln_bits", R"(template <typename T, typename F>
__device__ inline T kiln_bits(F value) {
  static_assert(sizeof(T) == sizeof(F), "two types of one width");
  union { F from; T to; } same;
  same.from = value;
  return same.to;
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
    Function{"kiln_min", R"(template <typename T>
__device__ inline T kiln_min(T a, T b) {
  return a != a || !(b < a || b != b) ? a : b;
}
)"},
    Function{"kiln_max", R"(template <typename T>
__device__ inline T kiln_max(T a, T b) {
  return a != a || !(a < b || b != b) ? a : b;
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
  for (auto function = kFunctions.rbegin(); function != kFunctions.rend(); ++function) {
    if (!mentions(all, function->name)) continue;
    result = fmt::format("{}\n{}", function->text, result);
    all += function->text;
  }
  return result;
}

}  // namespace kiln::codegen
