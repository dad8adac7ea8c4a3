// Which vector registers the CPU of a name has. LLVM knows that too, but choosing a schedule needs
// no LLVM: a test compares these lists with LLVM's.
#include "compiler/autoschedule/recognise/vector_unit.h"

#include <algorithm>
#include <array>

#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

constexpr VectorUnit kAvx512 = {.bytes = 64, .registers = 32};
constexpr VectorUnit kAvx = {.bytes = 32, .registers = 16};
constexpr VectorUnit kSse = {.bytes = 16, .registers = 16};

constexpr std::array<std::string_view, 18> kAvx512Names = {"x86-64-v4",
                                                           "skylake-avx512",
                                                           "skx",
                                                           "cascadelake",
                                                           "cooperlake",
                                                           "cannonlake",
                                                           "icelake-client",
                                                           "rocketlake",
                                                           "icelake-server",
                                                           "tigerlake",
                                                           "sapphirerapids",
                                                           "emeraldrapids",
                                                           "graniterapids",
                                                           "knl",
                                                           "knm",
                                                           "znver4",
                                                           "znver5",
                                                           "graniterapids-d"};

constexpr std::array<std::string_view, 28> kAvxNames = {
    "x86-64-v3",   "sandybridge", "corei7-avx",   "ivybridge",       "core-avx-i", "haswell",
    "core-avx2",   "broadwell",   "skylake",      "btver2",          "bdver1",     "bdver2",
    "bdver3",      "bdver4",      "znver1",       "znver2",          "znver3",     "alderlake",
    "raptorlake",  "meteorlake",  "arrowlake",    "arrowlake-s",     "lunarlake",  "gracemont",
    "pantherlake", "grandridge",  "sierraforest", "clearwaterforest"};

}  // namespace

VectorUnit vector_unit_of(std::string_view arch) {
  const std::string_view name = cpu_name_of(arch).cpu;
  if (name.empty() || std::ranges::find(kAvx512Names, name) != kAvx512Names.end()) return kAvx512;
  return std::ranges::find(kAvxNames, name) != kAvxNames.end() ? kAvx : kSse;
}

}  // namespace kiln::autoschedule
