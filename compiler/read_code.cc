// Reads of the machine code of each launch what its loops leave to the compiler.
//
//   a main loop of 771 instructions, 512 of them FFMA  ->  a product takes 1.5 instructions
//   124 of 192 HMMA, of 2048 products each             ->  0.76 instructions for 1024 products
#include "compiler/read_code.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "compiler/codegen/cubin.h"
#include "compiler/codegen/main_loop.h"
#include "compiler/codegen/occupancy.h"
#include "compiler/predict/predict_gpu.h"

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

}  // namespace

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
