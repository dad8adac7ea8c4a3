#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kiln::server {

/// Numbers of copies that nobody needs any more. Any thread may use it.
class FreedCopies {
 public:
  void add(uint64_t number) {
    const std::lock_guard lock(mutex_);
    numbers_.push_back(number);
  }
  std::vector<uint64_t> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(numbers_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> numbers_;
};

/// What a device with memory of its own keeps of a slice, under a number. Freed with the slice, or
/// when another device gets a copy of its own.
struct DeviceCopy {
  DeviceCopy(std::string device, uint64_t number, std::shared_ptr<FreedCopies> freed)
      : device(std::move(device)), number(number), freed(std::move(freed)) {}
  ~DeviceCopy() { freed->add(number); }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  /// A call wrote it.
  void note_written() {
    writes.fetch_add(1);
    is_lost = false;
    is_newer = true;
  }

  const std::string device;  // "cuda:0"
  const uint64_t number;
  const std::shared_ptr<FreedCopies> freed;
  /// The contents of the slice that it was made from (Slice::version()); 0: it has none yet.
  std::atomic<uint64_t> version{0};
  /// How many calls wrote it.
  std::atomic<uint64_t> writes{0};
  /// The last one has; what lies in the slice is older.
  std::atomic<bool> is_newer{false};
  /// The device's process ended while it was newer.
  std::atomic<bool> is_lost{false};
};

}  // namespace kiln::server
