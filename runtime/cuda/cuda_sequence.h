#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/cuda/cuda_call.h"
#include "runtime/cuda/device_work.h"
#include "runtime/device.h"

namespace kiln::cuda {

/// Kernels that are started together: the host waits for the last of them only.
class CudaSequence : public KernelSequence {
 public:
  /// `work` outlives it. Throws as CudaCall.
  CudaSequence(DeviceWork& work, const std::vector<SequenceKernel>& kernels);
  ~CudaSequence() override;
  CudaSequence(const CudaSequence&) = delete;
  CudaSequence& operator=(const CudaSequence&) = delete;

  void run(std::span<const std::vector<void*>> tensors, std::span<const DeviceCopy> copies,
           const std::atomic<int32_t>* cancelled) override;

 private:
  /// What belongs to the context.
  struct Parts {
    Parts(DeviceWork& work, const std::vector<SequenceKernel>& kernels);
    Pinned faults;  // one a kernel
    std::deque<CudaCall> calls;
    std::deque<Launches> recorded;  // the last used in front
  };

  Launches& recorded_for(std::span<const PreparedCall> calls);

  DeviceWork& work_;
  std::optional<Parts> parts_;
};

}  // namespace kiln::cuda
