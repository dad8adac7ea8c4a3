// Loads an artifact: machine code of another architecture than the device's is no use, but the PTX
// that it was made from can be compiled by the driver, which takes a while and is kept by it.
//
//   made for sm_80, device 8.6: its machine code    device 9.0: its PTX    device 7.5: refused
//
// Code made of tiles stands beside it, and is taken where the device and its driver take it.
#include "runtime/cuda/cuda_kernel.h"

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

/// Null where there is none, or this driver or device has no use for it. What it uses, the
/// architecture alone has: of another one of the same major number it is no code.
std::unique_ptr<Module> load_tile(const DriverApi& api, const DeviceProperties& device,
                                  const Artifact& artifact) {
  int version = 0;
  if (artifact.tile_code.empty() || !runs_on(artifact.arch + "a", device.capability) ||
      api.driver_version(&version) != 0 || version < kOldestTileDriver) {
    return nullptr;
  }
  try {
    return std::make_unique<Module>(api, artifact.tile_code);
  } catch (const Error& error) {
    if (error.reason() != "DEVICE_CODE") throw;
    return nullptr;  // of an assembler that is newer than the driver
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
      tile_module_(load_tile(api, device, *artifact_)),
      variants_(artifact_->variants) {
  for (Variant& variant : variants_) {
    const bool is_tiled = tile_module_ != nullptr && !variant.tile_launches.empty();
    if (is_tiled) {
      variant.launches = variant.tile_launches;
      variant.workspace_bytes = variant.tile_workspace_bytes;
      variant.loops.clear();
    }
    std::vector<void*>& functions = functions_.emplace_back();
    for (const Launch& launch : variant.launches)
      functions.push_back((is_tiled ? tile_module_ : module_)->function(launch.entry));
  }
  if (!artifact_->checks.empty()) stopped_ = module_->variable("kiln_stopped");
}

}  // namespace kiln::cuda
