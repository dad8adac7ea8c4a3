#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
inline namespace client {
namespace detail {

/// Tensors to free, told to the service by a thread of its own, so that a handle that goes out of
/// scope waits for nobody. The thread starts with the first tensor.
class FreeQueue {
 public:
  /// `free` gets all that were pushed since it was last called.
  explicit FreeQueue(std::function<void(const std::vector<std::string>&)> free)
      : free_(std::move(free)) {}
  ~FreeQueue() { stop(); }
  FreeQueue(const FreeQueue&) = delete;
  FreeQueue& operator=(const FreeQueue&) = delete;

  void push(std::string tensor, std::size_t bytes);
  /// What is still queued is dropped: it goes with the session.
  void stop();

 private:
  void work();
  bool has_many() const;  // with the lock held

  const std::function<void(const std::vector<std::string>&)> free_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> waiting_;
  std::size_t bytes_ = 0;  // of what waits
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace detail
}  // namespace client
}  // namespace kiln
