// Frees tensors behind the program's back, as many at once as were let go meanwhile. What is left
// when it stops goes with the session.
#include "client/cpp/free_queue.h"

#include <utility>

namespace kiln {
inline namespace client {
namespace detail {

void FreeQueue::push(std::string tensor) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  waiting_.push_back(std::move(tensor));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void FreeQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FreeQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const std::vector<std::string> tensors = std::exchange(waiting_, {});
    lock.unlock();
    free_(tensors);
    lock.lock();
  }
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
