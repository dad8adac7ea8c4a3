#pragma once

#include <memory>
#include <span>
#include <string>

#include <kiln/runtime.h>

#include "runtime/core/exported_kernel.h"
#include "runtime/device.h"

namespace kiln {

/// A kernel of a file, loaded onto a device of this process. Any number of threads may call it.
class LoadedArtifact {
 public:
  /// Throws NotFound ARTIFACT_FILE, what deserialize_exported() throws, InvalidArgument
  /// ARTIFACT_TARGET where this host cannot run it, Unavailable NO_DEVICE.
  LoadedArtifact(const std::string& path, int threads, int gpu);

  const Artifact& artifact() const { return kernel_->artifact(); }
  const KernelNames& names() const { return names_; }

  /// Throws InvalidArgument, as bind_arguments() does.
  BoundCall bind(std::span<const KilnTensor> tensors, std::span<const KilnSize> sizes) const;
  /// The seconds that the kernel took. Throws what bind() and Device::run() throw.
  double call(std::span<const KilnTensor> tensors, std::span<const KilnSize> sizes) const;

 private:
  double run(std::span<void* const> addresses, const BoundCall& bound) const;
  /// The same with copies of the memory on the device.
  double run_on_gpu(std::span<void* const> addresses, const BoundCall& bound) const;

  KernelNames names_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<LoadedKernel> kernel_;
};

}  // namespace kiln
