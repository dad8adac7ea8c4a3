#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/cuda/cuda_kernel.h"
#include "runtime/cuda/driver_objects.h"
#include "runtime/cuda/launch_journal.h"
#include "runtime/cuda/launch_size.h"
#include "runtime/cuda/launches.h"
#include "runtime/device.h"

namespace kiln::cuda {

/// A call with all that its launches need.
struct PreparedCall {
  const CudaKernel* kernel = nullptr;
  std::string called;  // what the user calls it
  CallValues values;
  std::vector<LaunchSize> sizes;  // of the launches of its variant
};

/// The order in which a device computes. Where a kernel has broken something, the sentence names
/// the launches before it.
class LaunchQueue {
 public:
  explicit LaunchQueue(const DriverApi& api);

  /// To be held from before what a kernel leaves behind is cleared until it was looked at.
  std::mutex& one_at_a_time() { return running_; }

  /// Copies, then runs the calls one after the other, to the end of the last. Returns the seconds
  /// from the first launch to the end of the last. Where a launch is refused, those before it have
  /// ended when it throws.
  double run(std::span<PreparedCall> calls, std::span<const DeviceCopy> copies, Launches& last);

  /// A fault is told by whatever asks the driver next.
  template <typename Body>
  void noting_launches(Body&& body) const {
    try {
      body();
    } catch (Error& error) {
      add_launches(error);
      throw;
    }
  }

 private:
  void start(std::span<PreparedCall> calls, Launches& last);
  void launch(PreparedCall& call);
  void add_launches(Error& error) const;

  const DriverApi& api_;
  const Stream compute_;
  Event begin_;
  Event end_;
  std::mutex running_;
  mutable std::mutex journal_mutex_;
  LaunchJournal journal_;
};

}  // namespace kiln::cuda
