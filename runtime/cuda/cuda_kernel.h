#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/driver_objects.h"
#include "runtime/cuda/launch_size.h"
#include "runtime/device.h"

namespace kiln::cuda {

/// All that a call gives a kernel: its variant, and the values of its parameters in order.
struct CallValues {
  int variant = 0;
  std::vector<void*> tensors;
  std::vector<int64_t> scalars;
  void* workspace = nullptr;
  void* fault = nullptr;
  int64_t iteration = 0;  // of a loop over launches
  bool operator==(const CallValues&) const = default;

  /// Where each parameter lies, as a launch takes them; while this lives and stays as it is.
  std::vector<void*> addresses();
};

/// Code of an artifact on a device, with the functions of its launches.
class CudaKernel : public LoadedKernel {
 public:
  /// Machine code where the device runs it, else PTX. Throws InvalidArgument ARTIFACT_TARGET where
  /// neither will do; `device_name` is for the sentence.
  CudaKernel(const DriverApi& api, const DeviceProperties& device, const std::string& device_name,
             std::shared_ptr<const Artifact> artifact);
  const Artifact& artifact() const override { return *artifact_; }

  const std::vector<void*>& functions(int variant) const {
    return functions_[static_cast<size_t>(variant)];
  }

  /// What a check that fires sets for the launches after it, which do nothing then; none where no
  /// launch asks.
  std::optional<DevicePointer> stopped() const { return stopped_; }
  /// Whether it may be set. Only for the device, as below.
  bool& may_be_stopped() const { return may_be_stopped_; }

  /// What the call before this one was, and its launches as a graph once it came twice.
  struct Last {
    CallValues values;
    std::unique_ptr<Graph> graph;
  };
  /// Only by the device, which runs one call at a time.
  Last& last() const { return last_; }

 private:
  const std::shared_ptr<const Artifact> artifact_;
  const std::unique_ptr<Module> module_;
  std::vector<std::vector<void*>> functions_;
  std::optional<DevicePointer> stopped_;
  mutable bool may_be_stopped_ = false;
  mutable Last last_;
};

}  // namespace kiln::cuda
