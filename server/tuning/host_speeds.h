#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "kiln/internal/worker.pb.h"

namespace kiln::server {

/// What was measured on this host for predictions, in a file beside the tuning records: measured
/// at the first predictions after the host has started. Figures of another host, of before it
/// started, or of other cores of it are as none. May be used from any thread.
class HostSpeeds {
 public:
  /// `boot`: what tells this host since it started from all others; empty: nothing is kept.
  explicit HostSpeeds(const std::filesystem::path& folder, std::string boot = host_boot());

  /// `setting`: the CPU and the threads that kernels run on ("znver4, 2 threads").
  std::optional<internal::HostSpeed> find(const std::string& setting) const;
  void keep(const std::string& setting, const internal::HostSpeed& speed);

  /// The number that Linux gives each start of a host, in a container too; empty where it is not
  /// to be read.
  static std::string host_boot();

 private:
  const std::filesystem::path path_;
  const std::string boot_;
  mutable std::mutex mutex_;
  std::optional<internal::HostSpeed> known_;
};

/// "measured on this host: 3.71 GHz, bytes a cycle: L2 60, ..": for people.
std::string text_of(const internal::HostSpeed& speed);

}  // namespace kiln::server
