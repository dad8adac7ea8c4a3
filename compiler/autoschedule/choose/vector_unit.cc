#include "compiler/autoschedule/choose/vector_unit.h"

#include <algorithm>
#include <array>

#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

constexpr VectorUnit kAvx2 = {.bytes = 32, .registers = 16};

constexpr std::array<std::string_view, 19> kAvx2Names = {
    "x86-64-v3", "haswell", "broadwell",        "skylake",      "znver1",
    "znver2",    "znver3",  "alderlake",        "raptorlake",   "meteorlake",
    "arrowlake", "bdver4",  "gracemont",        "sierraforest", "lunarlake",
    "core-avx2", "btver2",  "clearwaterforest", "grandridge"};

}  // namespace

VectorUnit vector_unit_of(std::string_view arch) {
  const std::string_view name = cpu_name_of(arch).cpu;
  if (std::ranges::find(kAvx2Names, name) != kAvx2Names.end()) return kAvx2;
  return {};
}

}  // namespace kiln::autoschedule
