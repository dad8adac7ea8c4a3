// Device time by tenant: a bucket that fills evenly and holds a minute's worth (token bucket;
// Turner, 1986). What a call will take is not known before, so it begins while there is anything
// left, and what it took beyond that is waited for.
//
//   6 s a minute; a call of 9 s  ->  3 s too much, the next may begin 30 s later
#include "server/engine/device_time.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {
constexpr double kMinute = 60;
}  // namespace

DeviceTime::Account& DeviceTime::account_of(const std::string& tenant, double quota,
                                            Clock::time_point now) {
  const auto [at, is_new] = accounts_.try_emplace(tenant, Account{.left = quota, .seen = now});
  Account& account = at->second;
  const double passed = seconds_between(account.seen, now);
  account.left = std::min(quota, account.left + passed * quota / kMinute);
  account.seen = now;
  return account;
}

void DeviceTime::require(const std::string& tenant, Clock::time_point now) {
  const double quota = quotas_->of(tenant).device_seconds;
  if (quota <= 0) return;
  const std::lock_guard lock(mutex_);
  const double left = account_of(tenant, quota, now).left;
  if (left > 0) return;
  fail(ErrorKind::ResourceExhausted, "DEVICE_SECONDS",
       "the calls of this tenant have had devices for longer than the {:g} s a minute that it may; "
       "the next may begin in {:.1f} s",
       quota, -left * kMinute / quota);
}

void DeviceTime::charge(const std::string& tenant, double seconds, Clock::time_point now) {
  const double quota = quotas_->of(tenant).device_seconds;
  if (quota <= 0) return;
  const std::lock_guard lock(mutex_);
  account_of(tenant, quota, now).left -= seconds;
}

}  // namespace kiln::server
