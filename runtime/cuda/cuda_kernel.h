#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/driver_objects.h"
#include "runtime/cuda/launches.h"
#include "runtime/device.h"

namespace kiln::cuda {

/// Code of an artifact on a device, with the functions of its launches. Its tile code is used where
/// the driver takes it.
class CudaKernel : public LoadedKernel {
 public:
  /// Machine code where the device runs it, else PTX. Throws InvalidArgument ARTIFACT_TARGET where
  /// neither will do; `device_name` is for the sentence.
  CudaKernel(const DriverApi& api, const DeviceProperties& device, const std::string& device_name,
             std::shared_ptr<const Artifact> artifact);
  const Artifact& artifact() const override { return *artifact_; }

  /// With the launches that are started here, which may be those of its tile code.
  const Variant& variant(int number) const { return variants_[static_cast<size_t>(number)]; }
  /// The number here of the same variant without tile code; nothing where it has none of that.
  std::optional<int> without_tiles(int number) const {
    return without_tiles_[static_cast<size_t>(number)];
  }

  const std::vector<void*>& functions(int variant) const {
    return functions_[static_cast<size_t>(variant)];
  }

  /// What a check that fires sets for the launches after it, which do nothing then; none where no
  /// launch asks.
  std::optional<DevicePointer> stopped() const { return stopped_; }
  /// Whether it may be set. Only for the device, which runs one call at a time.
  bool& may_be_stopped() const { return may_be_stopped_; }

  /// Those of the call before this one. Only for the device, as above.
  Launches& last() const { return last_; }

 private:
  const std::shared_ptr<const Artifact> artifact_;
  const std::unique_ptr<Module> module_;
  std::vector<std::unique_ptr<Module>> tile_modules_;  // of variants that run on tiles here
  std::vector<Variant> variants_;  // those of the artifact, then what they are without tiles
  std::vector<std::vector<void*>> functions_;
  std::vector<std::optional<int>> without_tiles_;
  std::optional<DevicePointer> stopped_;
  mutable bool may_be_stopped_ = false;
  mutable Launches last_;
};

}  // namespace kiln::cuda
