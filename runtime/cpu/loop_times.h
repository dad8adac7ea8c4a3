#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace kiln {

/// What an iteration of a loop took when the loop ran last, for a few hundred loops: one that is
/// not met again for long makes room for others. Any number of threads.
class LoopTimes {
 public:
  using Duration = std::chrono::duration<float>;

  /// Nothing for a null key, and where it is not known.
  std::optional<Duration> of(const void* key) const {
    const Slot& slot = slots_[place_of(key)];
    if (key == nullptr || slot.key.load(std::memory_order_acquire) != key) return std::nullopt;
    return Duration(slot.seconds.load(std::memory_order_relaxed));
  }

  void keep(const void* key, Duration iteration) {
    if (key == nullptr) return;
    Slot& slot = slots_[place_of(key)];
    slot.seconds.store(iteration.count(), std::memory_order_relaxed);
    slot.key.store(key, std::memory_order_release);
  }

 private:
  static constexpr size_t kSlots = 512;
  struct Slot {
    std::atomic<const void*> key{nullptr};
    std::atomic<float> seconds{0};
  };
  static size_t place_of(const void* key) {
    // Functions begin at multiples of 16.
    return (reinterpret_cast<uintptr_t>(key) >> 4) % kSlots;
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace kiln
