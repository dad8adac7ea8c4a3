// Looks at all uploads from time to time, so that a transfer needs no timer of its own.
//
//   enter; touch at 1 s; nothing more  ->  ended at 1 s + limit
#include "server/tensors/idle_transfers.h"

#include <utility>

namespace kiln::server {

void IdleTransfers::Transfer::touch() {
  const std::lock_guard lock(mutex_);
  touched_ = Clock::now();
}

void IdleTransfers::Transfer::leave() {
  const std::lock_guard lock(mutex_);
  end_ = nullptr;
}

bool IdleTransfers::Transfer::has_left() const {
  const std::lock_guard lock(mutex_);
  return !end_;
}

void IdleTransfers::Transfer::end_if_idle(Clock::time_point since) {
  const std::lock_guard lock(mutex_);
  // With the lock, so that it cannot leave, and be gone, meanwhile.
  if (end_ && touched_ < since) std::exchange(end_, nullptr)();
}

std::shared_ptr<IdleTransfers::Transfer> IdleTransfers::enter(std::function<void()> end) {
  auto transfer = std::make_shared<Transfer>(std::move(end));
  const std::lock_guard lock(mutex_);
  transfers_.push_back(transfer);
  return transfer;
}

void IdleTransfers::expire(Clock::time_point now) {
  std::list<std::shared_ptr<Transfer>> present;
  {
    const std::lock_guard lock(mutex_);
    transfers_.remove_if([](const auto& transfer) { return transfer->has_left(); });
    present = transfers_;
  }
  for (const std::shared_ptr<Transfer>& transfer : present)
    transfer->end_if_idle(now - limit_);
}

}  // namespace kiln::server
