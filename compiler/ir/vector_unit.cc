// Which vector registers and instructions the CPU of a name has. LLVM knows that too, but choosing
// a schedule needs no LLVM: a test compares these lists with LLVM's.
#include "compiler/ir/vector_unit.h"

#include <algorithm>
#include <array>
#include <span>

#include "runtime/core/cpu_name.h"

namespace kiln::ir {
namespace {

constexpr VectorUnit kAvx512 = {.bytes = 64, .registers = 32};
constexpr VectorUnit kAvx = {.bytes = 32, .registers = 16};
constexpr VectorUnit kSse = {.bytes = 16, .registers = 16};
// With UDOT, USDOT and BFDOT. Registers of SVE are as long on a Neoverse V2, and of a V1 twice
// that.
constexpr VectorUnit kNeon = {
    .bytes = 16, .registers = 32, .adds_bytes = true, .adds_halves = true};

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

// With AVX512-VNNI, or with AVX-VNNI.
constexpr std::array<std::string_view, 21> kByteNames = {
    "cascadelake",    "cooperlake",    "icelake-client", "rocketlake",   "icelake-server",
    "tigerlake",      "alderlake",     "sapphirerapids", "raptorlake",   "meteorlake",
    "arrowlake",      "arrowlake-s",   "lunarlake",      "gracemont",    "pantherlake",
    "emeraldrapids",  "graniterapids", "grandridge",     "sierraforest", "clearwaterforest",
    "graniterapids-d"};
constexpr std::array<std::string_view, 2> kZenNames = {"znver4", "znver5"};
constexpr std::array<std::string_view, 5> kHalfNames = {
    "cooperlake", "sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"};

constexpr std::array<std::string_view, 4> kTileNames = {"sapphirerapids", "emeraldrapids",
                                                        "graniterapids", "graniterapids-d"};
constexpr std::array<std::string_view, 2> kNeonNames = {"neoverse-v1", "neoverse-v2"};
constexpr std::array<std::string_view, 2> kFloat16TileNames = {"graniterapids", "graniterapids-d"};

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

VectorUnit vector_unit_of(std::string_view arch) {
  if (is_only_planned(arch)) return kNeon;
  const CpuName name = cpu_name_of(arch);
  VectorUnit unit = kSse;
  if (name.cpu.empty() || has(kAvx512Names, name.cpu)) {
    unit = kAvx512;
  } else if (has(kAvxNames, name.cpu)) {
    unit = kAvx;
  }
  const auto has_feature = [&](std::string_view feature) { return has(name.features, feature); };
  const bool is_zen = has(kZenNames, name.cpu);
  unit.adds_bytes =
      is_zen || has(kByteNames, name.cpu) || has_feature("avx512vnni") || has_feature("avxvnni");
  unit.adds_halves = is_zen || has(kHalfNames, name.cpu) || has_feature("avx512bf16");
  const bool has_tiles = has(kTileNames, name.cpu);
  unit.multiplies_tiles_of_bytes = has_tiles || has_feature("amx-int8");
  unit.multiplies_tiles_of_halves = has_tiles || has_feature("amx-bf16");
  unit.multiplies_tiles_of_float16 = has(kFloat16TileNames, name.cpu) || has_feature("amx-fp16");
  return unit;
}

bool is_only_planned(std::string_view arch) { return has(kNeonNames, cpu_name_of(arch).cpu); }

}  // namespace kiln::ir
