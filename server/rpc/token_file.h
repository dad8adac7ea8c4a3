#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "server/clock.h"

namespace kiln::server {

/// Bearer tokens and whose they are, from a file that may change while the daemon runs. A line is
/// TOKEN, or TENANT TOKEN; a tenant may have several. Any thread may use it.
class TokenFile {
 public:
  /// Throws InvalidArgument CONFIG.
  explicit TokenFile(std::string path);

  /// Whose token this is (empty: of nobody in particular); nothing when it is none.
  std::optional<std::string> tenant_of(std::string_view token);

 private:
  struct Entry {
    std::string tenant;
    std::string token;
  };
  /// What changes when the file does.
  struct Version {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    bool operator==(const Version&) const = default;
  };

  std::optional<Version> version() const;
  static std::vector<Entry> read(const std::string& path);
  /// With the lock held. What cannot be read leaves everything as it is.
  void reload_if_changed(Clock::time_point now);

  const std::string path_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::optional<Version> version_;
  Clock::time_point looked_ = Clock::now();
};

}  // namespace kiln::server
