// Counts how often a kernel ended its process; the third time refuses it until it has been left
// alone for a while. A circuit breaker for each kernel.
#include "server/engine/quarantine.h"

#include "runtime/core/called.h"
#include "runtime/core/error.h"

namespace kiln::server {

namespace {
// One may be chance and two the same chance retried.
constexpr int kDeaths = 3;
}  // namespace

bool Quarantine::blame(const std::string& key) {
  const std::lock_guard lock(mutex_);
  forget_old(Clock::now());
  Record& record = records_[key];
  record.last = Clock::now();
  empty_.store(false);
  return ++record.deaths >= kDeaths;
}

void Quarantine::absolve(const std::string& key) {
  if (empty_.load()) return;
  const std::lock_guard lock(mutex_);
  records_.erase(key);
  empty_.store(records_.empty());
}

void Quarantine::require_free(const std::string& key, const std::string& kernel) {
  if (empty_.load()) return;
  const std::lock_guard lock(mutex_);
  forget_old(Clock::now());
  const auto at = records_.find(key);
  if (at == records_.end() || at->second.deaths < kDeaths) return;
  fail(ErrorKind::Unsupported, "KERNEL_QUARANTINED",
       "{} ended its worker {} times; it is refused for {} s", called(kernel), at->second.deaths,
       std::chrono::duration_cast<std::chrono::seconds>(length_).count());
}

void Quarantine::forget_old(Clock::time_point now) {
  std::erase_if(records_, [&](const auto& record) { return record.second.last + length_ < now; });
  empty_.store(records_.empty());
}

}  // namespace kiln::server
