// Loads an artifact: machine code of another architecture than the device's is no use, but the PTX
// that it was made from can be compiled by the driver, which takes a while and is kept by it.
//
//   made for sm_80, device 8.6: its machine code    device 9.0: its PTX    device 7.5: refused
//
// Code made of tiles stands beside it, and is taken where the device and its driver take it, and
// have memory for the copies that it wants.
#include "runtime/cuda/cuda_kernel.h"

#include <span>
#include <utility>

#include "runtime/core/error.h"

namespace kiln::cuda {
namespace {

std::unique_ptr<Module> load(const DriverApi& api, const DeviceProperties& device,
                             const std::string& device_name, const Artifact& artifact) {
  const bool has_ptx = !artifact.ptx.empty() && compiles_on(artifact.arch, device.capability);
  if (runs_on(artifact.arch, device.capability)) {
    try {
      return std::make_unique<Module>(api, artifact.code);
    } catch (const Error& error) {
      // Machine code of a compiler that is newer than the driver.
      if (!has_ptx || error.reason() != "DEVICE_CODE") throw;
    }
  }
  if (!has_ptx) {
    const std::string arch = arch_of(device.capability);
    fail(ErrorKind::InvalidArgument, "ARTIFACT_TARGET",
         "the kernel was compiled for {}, but {} is {}; compile it for {}", artifact.arch,
         device_name, arch, arch);
  }
  return std::make_unique<Module>(api, artifact.ptx);
}

/// Of CUDA 13, the first that knows Tile IR.
constexpr int kOldestTileDriver = 13000;

/// Of each launch; none where this driver or device has no use for them. What they use, the
/// architecture alone has: of another one of the same major number they are no code.
std::vector<std::unique_ptr<Module>> load_tiles(const DriverApi& api,
                                                const DeviceProperties& device,
                                                const std::string& arch,
                                                std::span<const std::string> tile_code) {
  int version = 0;
  if (!runs_on(arch + "a", device.capability) || api.driver_version(&version) != 0 ||
      version < kOldestTileDriver) {
    return {};
  }
  try {
    std::vector<std::unique_ptr<Module>> modules;
    for (const std::string& cubin : tile_code)
      modules.push_back(std::make_unique<Module>(api, cubin));
    return modules;
  } catch (const Error& error) {
    if (error.reason() != "DEVICE_CODE") throw;
    return {};  // of an assembler that is newer than the driver
  }
}

}  // namespace

std::vector<void*> CallValues::addresses() {
  std::vector<void*> result;
  result.reserve(tensors.size() + scalars.size() + 3);
  for (void*& tensor : tensors)
    result.push_back(&tensor);
  for (int64_t& scalar : scalars)
    result.push_back(&scalar);
  result.push_back(&workspace);
  result.push_back(&fault);
  result.push_back(&iteration);
  return result;
}

CudaKernel::CudaKernel(const DriverApi& api, const DeviceProperties& device,
                       const std::string& device_name, std::shared_ptr<const Artifact> artifact)
    : artifact_(std::move(artifact)),
      module_(load(api, device, device_name, *artifact_)),
      variants_(artifact_->variants) {
  for (const Variant& variant : artifact_->variants) {
    std::vector<void*>& functions = functions_.emplace_back();
    for (const Launch& launch : variant.launches)
      functions.push_back(module_->function(launch.entry));
  }
  without_tiles_.resize(variants_.size());
  for (size_t i = 0; i < artifact_->variants.size(); ++i) {
    variants_[i].tile_code.clear();  // the artifact has it
    std::vector<std::unique_ptr<Module>> modules =
        load_tiles(api, device, artifact_->arch, artifact_->variants[i].tile_code);
    if (modules.empty()) continue;
    without_tiles_[i] = static_cast<int>(variants_.size());
    variants_.push_back(variants_[i]);
    functions_.push_back(functions_[i]);
    without_tiles_.push_back(std::nullopt);
    Variant& variant = variants_[i];
    variant.launches = variant.tile_launches;
    variant.workspace_bytes = variant.tile_workspace_bytes;
    variant.loops.clear();
    functions_[i].clear();
    for (size_t launch = 0; launch < modules.size(); ++launch) {
      functions_[i].push_back(modules[launch]->function(variant.launches[launch].entry));
      tile_modules_.push_back(std::move(modules[launch]));
    }
  }
  if (!artifact_->checks.empty()) stopped_ = module_->variable("kiln_stopped");
}

}  // namespace kiln::cuda
