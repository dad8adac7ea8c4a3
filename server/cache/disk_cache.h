#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/cache/cache_level.h"

namespace kiln::server {

/// Artifacts on disk: one file an entry, FOLDER/artifacts/ab/KEY.kart.
///
/// What cannot be read is deleted, logged and counted, what cannot be written is logged. Several
/// daemons may share a folder. One that cannot be written serves what is in it.
class DiskCache : public CacheLevel {
 public:
  /// Reads the names and sizes of what is there. `folder` is made when it is missing.
  DiskCache(std::filesystem::path folder, int64_t limit_bytes);

  v1::CacheLevel level() const override { return v1::CACHE_LEVEL_DISK; }
  std::optional<std::string> find(const std::string& key, const std::string& form) override;
  void put(const std::string& key, const std::string& form, const std::string& artifact) override;
  void reject(const std::string& key, const std::string& why) override;

  /// Empty: the folder can be read and written; else why not.
  const std::string& problem() const { return problem_; }
  const std::filesystem::path& folder() const { return folder_; }
  int64_t bytes() const;
  int64_t corrupt() const { return corrupt_.load(); }

 private:
  struct Slot {
    int64_t bytes = 0;
    std::list<std::string>::iterator use;
  };
  std::filesystem::path path_of(const std::string& key) const;
  void scan();
  void note_use(const std::string& key, int64_t bytes);
  void forget(const std::string& key);
  void evict();

  const std::filesystem::path folder_;
  const int64_t limit_bytes_;
  std::string problem_;
  std::atomic<int64_t> corrupt_{0};
  std::atomic<int64_t> next_file_{0};
  mutable std::mutex mutex_;
  int64_t bytes_ = 0;
  std::list<std::string> uses_;  // keys, last used first
  std::unordered_map<std::string, Slot> slots_;
};

}  // namespace kiln::server
