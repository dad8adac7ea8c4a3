#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "server/clock.h"

namespace kiln::server {

/// Remembers which kernels ended the worker they ran in (or the compiler that compiled them). After
/// three times in a row a kernel is refused for a while, so that it cannot keep others from their
/// work. One that ran to its end is not to blame for what befell its worker before.
class Quarantine {
 public:
  explicit Quarantine(Clock::duration length) : length_(length) {}

  /// True when this was one time too many.
  bool blame(const std::string& key);
  /// The kernel ran to its end.
  void absolve(const std::string& key);
  /// Throws Unsupported KERNEL_QUARANTINED.
  void require_free(const std::string& key, const std::string& kernel);

 private:
  struct Record {
    int deaths = 0;
    Clock::time_point last{};
  };
  void forget_old(Clock::time_point now);

  const Clock::duration length_;
  std::atomic<bool> empty_{true};  // nearly always: spares each call the lock
  std::mutex mutex_;
  std::map<std::string, Record> records_;
};

}  // namespace kiln::server
