#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "server/clock.h"
#include "server/quotas.h"

namespace kiln::server {

/// The time that tenants with a quota of device seconds have had. Any thread may use it.
class DeviceTime {
 public:
  explicit DeviceTime(SharedQuotas quotas) : quotas_(std::move(quotas)) {}

  /// Throws ResourceExhausted DEVICE_SECONDS while the tenant has had more than it may.
  void require(const std::string& tenant, Clock::time_point now);
  /// A call of the tenant's has had a device for so long.
  void charge(const std::string& tenant, double seconds, Clock::time_point now);

 private:
  struct Account {
    double left = 0;  // seconds, below 0 after a call that took more than there was
    Clock::time_point seen;
  };
  Account& account_of(const std::string& tenant, double quota, Clock::time_point now);

  const SharedQuotas quotas_;
  std::mutex mutex_;
  std::map<std::string, Account> accounts_;
};

}  // namespace kiln::server
