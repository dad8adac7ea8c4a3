// The functions that objects may be linked against: those of the C library that code generation
// calls for operators, those that LLVM inserts by itself (memcpy, memset), and conversions of half
// floats.
#include "runtime/cpu/math_symbols.h"

#include <cmath>
#include <cstring>

// Conversions of half floats where the CPU has no instruction; libgcc has them without a header.
// Only their addresses are taken, so their types, which not every compiler knows, are left out.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void __extendhfsf2();
void __truncsfhf2();
void __truncdfhf2();
}
// NOLINTEND(bugprone-reserved-identifier)

namespace kiln {
namespace {

template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

// clang-format off
#define UNARY(name)                                              \
  {#name, address(static_cast<double (*)(double)>(::name))},     \
  {#name "f", address(static_cast<float (*)(float)>(::name##f))}
#define BINARY(name)                                                    \
  {#name, address(static_cast<double (*)(double, double)>(::name))},    \
  {#name "f", address(static_cast<float (*)(float, float)>(::name##f))}
// clang-format on

// What C has for one and for two numbers, but for what keeps a state (lgamma).
const ProcessSymbol kSymbols[] = {
    UNARY(exp),
    UNARY(exp2),
    UNARY(exp10),
    UNARY(log),
    UNARY(log2),
    UNARY(log10),
    UNARY(log1p),
    UNARY(expm1),
    UNARY(cbrt),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(asin),
    UNARY(acos),
    UNARY(atan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(tanh),
    UNARY(asinh),
    UNARY(acosh),
    UNARY(atanh),
    UNARY(erf),
    UNARY(erfc),
    UNARY(tgamma),
    UNARY(floor),
    UNARY(ceil),
    UNARY(trunc),
    UNARY(rint),
    UNARY(nearbyint),
    UNARY(roundeven),
    UNARY(round),
    BINARY(atan2),
    BINARY(pow),
    BINARY(fmod),
    BINARY(remainder),
    BINARY(fdim),
    BINARY(hypot),
    {"ldexp", address(static_cast<double (*)(double, int)>(::ldexp))},
    {"ldexpf", address(static_cast<float (*)(float, int)>(::ldexpf))},
    {"fma", address(static_cast<double (*)(double, double, double)>(::fma))},
    {"fmaf", address(static_cast<float (*)(float, float, float)>(::fmaf))},
    {"memcpy", address(static_cast<void* (*)(void*, const void*, size_t)>(::memcpy))},
    {"memmove", address(static_cast<void* (*)(void*, const void*, size_t)>(::memmove))},
    {"memset", address(static_cast<void* (*)(void*, int, size_t)>(::memset))},
    {"__extendhfsf2", address(__extendhfsf2)},
    {"__truncsfhf2", address(__truncsfhf2)},
    {"__truncdfhf2", address(__truncdfhf2)},
};

#undef UNARY
#undef BINARY

}  // namespace

std::span<const ProcessSymbol> process_symbols() { return kSymbols; }

}  // namespace kiln
