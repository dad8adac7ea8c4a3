// Reads of the machine code of each launch what its loops, or a program on tiles, leave to the
// compiler.
//
//   a main loop of 771 instructions, 512 of them FFMA  ->  a product takes 1.5 instructions
//   124 of 192 HMMA, of 2048 products each             ->  0.76 instructions for 1024 products
#include "compiler/read_code.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/main_loop.h"
#include "compiler/codegen/occupancy.h"
#include "compiler/predict/predict_gpu.h"
#include "compiler/predict/predict_tiles.h"

namespace kiln {
namespace {

using codegen::CubinKernel;
using codegen::MainLoop;
using predict::LaunchFacts;
using Unit = LaunchFacts::Unit;

/// An instruction of tensor cores: who they are told by, the products that one has for a warp from
/// sm_80 on (PTX ISA, shapes of mma), and the bytes of a factor.
struct MatrixKind {
  std::string_view name;
  Unit unit;
  double products;
  int64_t element_bytes;
};

constexpr MatrixKind kMatrixKinds[] = {
    {"HMMA", Unit::Warps, 16 * 8 * 16, 2},
    {"IMMA", Unit::Warps, 16 * 8 * 32, 1},
    {"QMMA", Unit::Warps, 16 * 8 * 32, 1},
};
constexpr double kProductsOnTuring = 16 * 8 * 8;

/// Of a warp: what it moves to or from shared memory takes so many turns of all banks.
double shared_cycles(const MainLoop& loop) {
  constexpr double kWarp = 32;
  double cycles = 0;
  for (const MainLoop::Access& access : loop.accesses) {
    if (access.kind == "LDG" || access.kind == "STG") continue;
    const double bytes = kWarp * static_cast<double>(access.bytes);
    cycles += static_cast<double>(access.count) * std::max(bytes / autoschedule::kSharedBytes, 1.0);
  }
  return cycles;
}

int64_t threads_of(const Launch& launch, std::span<const int64_t> scalars) {
  int64_t threads = 1;
  for (const SizeExpr& extent : launch.block)
    threads *= extent.evaluate(scalars);
  return threads;
}

LaunchFacts facts_of(const CubinKernel& kernel, const Launch& launch, std::string_view arch,
                     std::span<const int64_t> scalars) {
  const MainLoop loop = codegen::main_loop_of(kernel.code, arch);
  LaunchFacts facts;
  facts.blocks_at_once =
      codegen::occupancy_of(kernel, threads_of(launch, scalars),
                            launch.shared_bytes.evaluate(scalars), ir::gpu_arch(arch))
          .blocks;
  if (!loop.is_loop) {
    facts.instructions = kernel.instructions;
    return facts;
  }
  const auto arithmetic = static_cast<double>(loop.arithmetic);
  facts.share = loop.share();
  facts.spills = static_cast<double>(loop.spills) / arithmetic;
  const auto* kind = std::ranges::find(kMatrixKinds, loop.kind, &MatrixKind::name);
  if (kind == std::end(kMatrixKinds)) return facts;
  facts.unit = kind->unit;
  facts.products = ir::capability_of(arch) < 80 ? kProductsOnTuring : kind->products;
  facts.element_bytes = kind->element_bytes;
  facts.shared_cycles = shared_cycles(loop) / arithmetic;
  return facts;
}

/// Of launches whose functions are in a cubin.
std::vector<LaunchFacts> facts_of(std::string_view cubin, const std::vector<Launch>& launches,
                                  std::string_view arch, std::span<const int64_t> scalars) {
  const std::vector<CubinKernel> kernels = codegen::kernels_of_cubin(cubin);
  std::vector<LaunchFacts> facts;
  for (const Launch& launch : launches) {
    const auto found = std::ranges::find(kernels, launch.entry, &CubinKernel::name);
    facts.push_back(found == kernels.end() ? LaunchFacts{}
                                           : facts_of(*found, launch, arch, scalars));
  }
  return facts;
}

/// An instruction of tensor cores in code made of tiles: how many warps start it together, and its
/// rows. It has all columns of a block, up to 256, and 32 bytes of each factor along the sum.
struct TileKind {
  std::string_view name;
  double warps;
  int64_t rows;
};

constexpr TileKind kTileKinds[] = {
    {"HGMMA", 4, 64}, {"IGMMA", 4, 64}, {"QGMMA", 4, 64}, {"UTCMMA", 1, 128}};
constexpr int64_t kMostColumns = 256;
constexpr double kStepsOfBytes = 16;  // of 16 bits; those of fewer bits count as a part

/// The rows and columns that a block multiplies at once.
std::pair<int64_t, int64_t> sides_of(const std::vector<tile::Instruction>& body,
                                     const tile::Program& program) {
  for (const tile::Instruction& each : body) {
    if (const auto* loop = std::get_if<tile::For>(&each.what)) {
      const auto sides = sides_of(loop->body, program);
      if (sides.first > 0) return sides;
    }
    if (std::holds_alternative<tile::Mma>(each.what))
      return {program.values[each.operands[0]].shape[0], program.values[each.operands[1]].shape[1]};
  }
  return {0, 0};
}

/// Cycles of all schedulers for 1024 products. An access of the stack also takes a cycle of the
/// one unit that all of them share.
double issue_of(const MainLoop& loop, const tile::Program& program) {
  if (!loop.is_loop || loop.arithmetic == 0) return 0;
  const double each = (static_cast<double>(loop.instructions) +
                       (autoschedule::kSchedulers - 1) * static_cast<double>(loop.spills)) /
                      static_cast<double>(loop.arithmetic);
  const auto* kind = std::ranges::find(kTileKinds, loop.kind, &TileKind::name);
  if (kind == std::end(kTileKinds)) {
    const auto* single = std::ranges::find(kMatrixKinds, loop.kind, &MatrixKind::name);
    if (single == std::end(kMatrixKinds)) return 0;
    return each / autoschedule::kSchedulers * 1024 / (16 * 8 * kStepsOfBytes);
  }
  const auto [rows, columns] = sides_of(program.body, program);
  const double products = static_cast<double>(std::min(rows, kind->rows)) *
                          static_cast<double>(std::min(columns, kMostColumns)) * kStepsOfBytes;
  return each * kind->warps / autoschedule::kSchedulers * 1024 / products;
}

}  // namespace

predict::Prediction prediction_of_tile_code(const TileCode& tiles, const std::string& arch,
                                            const autoschedule::GpuMachine& machine,
                                            std::span<const int64_t> sizes) {
  const std::vector<CubinKernel> kernels = codegen::kernels_of_cubin(tiles.cubin);
  const auto found = std::ranges::find(kernels, tiles.entry, &CubinKernel::name);
  if (found == kernels.end()) return predict::predict_tiles(tiles.sequence, sizes, machine);
  predict::TileFacts facts{
      .issue = issue_of(codegen::main_loop_of(found->code, arch), tiles.sequence.last())};
  if (found->threads > 0) {
    const codegen::Occupancy occupancy =
        codegen::occupancy_of(*found, found->threads, 0, ir::gpu_arch(arch));
    facts.blocks_at_once = std::max<int64_t>(occupancy.blocks, 1);
  }
  return predict::predict_tiles(tiles.sequence, sizes, machine, facts);
}

predict::Prediction prediction_of_code(const ir::Kernel& loops, const Artifact& artifact,
                                       const autoschedule::GpuMachine& machine,
                                       std::span<const int64_t> sizes) {
  // Sizes come first; what launches are does not depend on strides.
  std::vector<int64_t> scalars(sizes.begin(), sizes.end());
  for (const Parameter& parameter : artifact.parameters)
    scalars.resize(scalars.size() + parameter.shape.size());
  const Variant& variant = artifact.variants.front();
  const std::vector<LaunchFacts> facts =
      facts_of(artifact.code, variant.launches, artifact.arch, scalars);
  return predict::predict_gpu(loops, sizes, machine, ir::gpu_arch(artifact.arch), facts);
}

}  // namespace kiln
