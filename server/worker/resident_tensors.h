#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "kiln/internal/worker.pb.h"
#include "runtime/core/error.h"
#include "runtime/device.h"
#include "server/task_queue.h"

namespace kiln::server {

/// A part of the front end's memory, which stays mapped as long as somebody has this.
struct HostPlace {
  std::shared_ptr<const void> arena;
  uint8_t* data = nullptr;
};

/// Tensors that a device with memory of its own keeps between calls, under the front end's numbers.
/// They come and go in threads of their own, while calls run. Any thread may use it.
class ResidentTensors {
 public:
  /// Tells the front end, from any thread, and why it could not be.
  using Answer = std::function<void(const internal::FromWorker&, const std::optional<Error>&)>;
  ResidentTensors(Device& device, Answer answer) : device_(device), answer_(std::move(answer)) {}
  ResidentTensors(const ResidentTensors&) = delete;
  ResidentTensors& operator=(const ResidentTensors&) = delete;

  struct Found {
    std::shared_ptr<DeviceBuffer> buffer;
    bool is_new = false;  // without contents
  };
  /// Memory for a tensor of so many bytes, with what it has if it is known. Waits for what is being
  /// staged.
  Found get(uint64_t resident, int64_t bytes);
  /// Memory that somebody uses goes once that is over.
  void drop(uint64_t resident);

  // Never wait; what becomes of it is an answer.
  void stage(uint64_t resident, HostPlace from, int64_t bytes);
  void fetch(const internal::Fetch& message, HostPlace into);

 private:
  struct Tensor {
    std::shared_ptr<DeviceBuffer> buffer;  // null: it has none yet
    int staging = 0;
  };

  std::shared_ptr<DeviceBuffer> find(uint64_t resident);
  std::shared_ptr<DeviceBuffer> buffer_to_fill(uint64_t resident, int64_t bytes);
  std::optional<Error> stage_now(uint64_t resident, const HostPlace& from, int64_t bytes);
  std::optional<Error> fetch_now(const internal::Fetch& message, const HostPlace& into);

  Device& device_;
  const Answer answer_;
  std::mutex mutex_;
  std::condition_variable staged_;
  std::map<uint64_t, Tensor> tensors_;
  // Last: their threads use all of the above.
  TaskQueue in_;
  TaskQueue out_;
};

}  // namespace kiln::server
