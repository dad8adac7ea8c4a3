// Loads an artifact: machine code of another architecture than the device's is no use, but the PTX
// that it was made from can be compiled by the driver, which takes a while and is kept by it.
//
//   made for sm_80, device 8.6: its machine code    device 9.0: its PTX    device 7.5: refused
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
    : artifact_(std::move(artifact)), module_(load(api, device, device_name, *artifact_)) {
  for (const Variant& variant : artifact_->variants) {
    std::vector<void*>& functions = functions_.emplace_back();
    for (const Launch& launch : variant.launches)
      functions.push_back(module_->function(launch.entry));
  }
  if (!artifact_->checks.empty()) stopped_ = module_->variable("kiln_stopped");
}

}  // namespace kiln::cuda
