#pragma once

#include <map>
#include <mutex>
#include <string>

#include "server/clock.h"

namespace kiln::server {

/// Remembers which kernels ended the worker they ran in (or the compiler that compiled them). After
/// three times a kernel is refused for a while, so that it cannot keep others from their work.
class Quarantine {
 public:
  explicit Quarantine(Clock::duration length) : length_(length) {}

  /// True when this was one time too many.
  bool blame(const std::string& key);
  /// Throws Unsupported KERNEL_QUARANTINED.
  void require_free(const std::string& key, const std::string& kernel);

 private:
  struct Record {
    int deaths = 0;
    Clock::time_point last{};
  };
  void forget_old(Clock::time_point now);

  const Clock::duration length_;
  std::mutex mutex_;
  std::map<std::string, Record> records_;
};

}  // namespace kiln::server
