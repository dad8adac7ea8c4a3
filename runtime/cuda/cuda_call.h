#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/kernel_abi.h"
#include "runtime/cuda/device_work.h"
#include "runtime/cuda/memory_pool.h"
#include "runtime/device.h"

namespace kiln::cuda {

/// What a kernel called at certain sizes needs besides its tensors. It may run any number of times,
/// one at a time.
class CudaCall {
 public:
  /// `fault` is memory of the host that the device writes; both outlive this. Throws
  /// ResourceExhausted LAUNCH_SIZE for what no launch can be, and DEVICE_MEMORY.
  CudaCall(DeviceWork& work, const SequenceKernel& call, const Pinned& fault, size_t place);

  /// Before each run: nothing is left that a check found.
  void clear_checks() const;
  /// To be given to the queue now.
  PreparedCall prepare(std::span<void* const> tensors) const;
  /// Once it has run. Throws InvalidArgument INDEX_OUT_OF_RANGE where a check has fired.
  void finish() const;

 private:
  /// What is started, and what its launches leave for each other.
  struct Started {
    int variant = 0;
    std::unique_ptr<Memory> workspace;
  };
  static Started started(DeviceWork& work, const SequenceKernel& call);

  const CudaKernel& kernel() const { return static_cast<const CudaKernel&>(*call_.kernel); }

  DeviceWork& work_;
  const SequenceKernel call_;
  const std::string called_;
  const Started started_;
  const std::vector<LaunchSize> sizes_;
  KilnDeviceFault& fault_;
  void* const fault_of_device_;
};

/// Throws Cancelled where it is not 0.
void refuse_cancelled(const std::atomic<int32_t>* cancelled);

}  // namespace kiln::cuda
