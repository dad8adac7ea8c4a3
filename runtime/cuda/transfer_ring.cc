// Copies by way of a ring of pinned memory: while the device copies one slot, the processor fills
// or empties the next. A copy from or to memory that may be moved is not asynchronous: the driver
// copies it to pinned memory of its own first, in the same steps but one after the other.
//
//   host -> slot 0 | slot 1 | slot 2 | slot 3 | slot 0 once the device has read it ...
#include "runtime/cuda/transfer_ring.h"

#include <algorithm>
#include <cstring>

#include "runtime/cuda/driver_errors.h"

namespace kiln::cuda {
namespace {

constexpr int64_t kSlotBytes = int64_t{2} << 20;

constexpr const char* kIn = "copy to the device";
constexpr const char* kOut = "copy from the device";
constexpr const char* kWithin = "copy on the device";

}  // namespace

TransferRing::Slot::Slot(const DriverApi& api)
    : memory(api, kSlotBytes), done(api, Event::Timing::Off) {}

TransferRing::TransferRing(const DriverApi& api)
    : api_(api), stream_(api), slots_{Slot(api), Slot(api), Slot(api), Slot(api)} {}

void TransferRing::copy_in(DevicePointer device, const void* host, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto* from = static_cast<const char*>(host);
  for (int64_t at = 0, i = 0; at < bytes; at += kSlotBytes, ++i) {
    Slot& slot = slots_[static_cast<size_t>(i) % slots_.size()];
    const auto part = static_cast<size_t>(std::min(kSlotBytes, bytes - at));
    slot.done.wait(kIn);
    std::memcpy(slot.memory.data(), from + at, part);
    check(api_,
          api_.copy_in(device + static_cast<DevicePointer>(at), slot.memory.data(), part,
                       stream_.handle()),
          kIn);
    slot.done.record(stream_);
  }
  if (bytes > 0) stream_.wait(kIn);
}

void TransferRing::copy_out(void* host, DevicePointer device, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto* to = static_cast<char*>(host);
  const auto ring = static_cast<int64_t>(slots_.size());
  const int64_t parts = (bytes + kSlotBytes - 1) / kSlotBytes;
  // Part i is emptied when part i + ring is about to take its slot, or nothing more comes.
  for (int64_t i = 0; i < parts + ring; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i % ring)];
    if (const int64_t full = i - ring; full >= 0 && full < parts) {
      const int64_t at = full * kSlotBytes;
      slot.done.wait(kOut);
      std::memcpy(to + at, slot.memory.data(),
                  static_cast<size_t>(std::min(kSlotBytes, bytes - at)));
    }
    if (i >= parts) continue;
    const int64_t at = i * kSlotBytes;
    check(api_,
          api_.copy_out(slot.memory.data(), device + static_cast<DevicePointer>(at),
                        static_cast<size_t>(std::min(kSlotBytes, bytes - at)), stream_.handle()),
          kOut);
    slot.done.record(stream_);
  }
}

void TransferRing::copy_within(DevicePointer to, DevicePointer from, int64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  check(api_, api_.copy_within(to, from, static_cast<size_t>(bytes), stream_.handle()), kWithin);
  stream_.wait(kWithin);
}

}  // namespace kiln::cuda
