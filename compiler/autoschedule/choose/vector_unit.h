#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::autoschedule {

/// The registers for vectors that a CPU has.
struct VectorUnit {
  int64_t bytes = 64;
  int64_t registers = 32;
};

/// Of the CPU of this name, where it is known to have AVX2 and no more; else those of AVX-512.
VectorUnit vector_unit_of(std::string_view arch);

}  // namespace kiln::autoschedule
