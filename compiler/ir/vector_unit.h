#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::ir {

/// The registers for vectors that a CPU has, and what it does with products of short types.
struct VectorUnit {
  int64_t bytes = 64;
  int64_t registers = 32;
  bool adds_bytes = false;   // four products of bytes into an int32, with one instruction
  bool adds_halves = false;  // two of bfloat16 into a float32
  // The same of whole tiles (Intel AMX).
  bool multiplies_tiles_of_bytes = false;
  bool multiplies_tiles_of_halves = false;
  bool multiplies_tiles_of_float16 = false;

  bool operator==(const VectorUnit&) const = default;
};

/// Of the CPU of this name, with the features that it may name beyond. One that is not known has
/// those of every x86-64, SSE2's; without a name, for loops that are only looked at, those of
/// AVX-512.
VectorUnit vector_unit_of(std::string_view arch);

/// Whether kernels are planned for this CPU, but code of its instructions is not made (AArch64).
bool is_only_planned(std::string_view arch);

}  // namespace kiln::ir
