#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/driver_objects.h"

namespace kiln::cuda {

/// Copies in one direction between memory of the host and of the device, while the device computes
/// and copies the other way. Any thread may copy; copies take turns.
class TransferRing {
 public:
  explicit TransferRing(const DriverApi& api);

  /// Each is done when it returns.
  void copy_in(DevicePointer device, const void* host, int64_t bytes);
  void copy_out(void* host, DevicePointer device, int64_t bytes);
  void copy_within(DevicePointer to, DevicePointer from, int64_t bytes);

 private:
  /// The device copies by itself only from and to pinned memory.
  struct Slot {
    explicit Slot(const DriverApi& api);
    Pinned memory;
    Event done;
  };

  const DriverApi& api_;
  std::mutex mutex_;
  const Stream stream_;
  std::array<Slot, 4> slots_;
};

}  // namespace kiln::cuda
