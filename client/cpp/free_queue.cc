// Frees tensors behind the program's back, as many at once as are let go within a moment: a call
// for each would cost as much as the one that made it. What is left when it stops goes with the
// session.
#include "client/cpp/free_queue.h"

#include <utility>

namespace kiln {
inline namespace client {
namespace detail {

namespace {
// From here on nothing more is waited for: others may need the room.
constexpr std::size_t kMany = 64;
constexpr std::size_t kManyBytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds kMoment{5};
}  // namespace

bool FreeQueue::has_many() const { return waiting_.size() >= kMany || bytes_ >= kManyBytes; }

void FreeQueue::push(std::string tensor, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  waiting_.push_back(std::move(tensor));
  bytes_ += bytes;
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  if (waiting_.size() == 1 || has_many()) changed_.notify_all();
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
    changed_.wait_for(lock, kMoment, [&] { return stopped_ || has_many(); });
    if (stopped_) return;
    bytes_ = 0;
    const std::vector<std::string> tensors = std::exchange(waiting_, {});
    lock.unlock();
    free_(tensors);
    lock.lock();
  }
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
