// Artifacts on disk, safe against power cuts and other daemons: an entry is written under a name of
// its own and renamed, and every read checks length, checksum and form. Which were used last is the
// time of the file, so that it outlives the daemon.
//
//   FOLDER/artifacts/ab/abcd...kart:  an entry as cache_entry.h has it
#include "server/cache/disk_cache.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "server/cache/cache_entry.h"
#include "server/not_kept.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kExtension = ".kart";
constexpr auto kAbandoned = std::chrono::hours(1);  // a temporary file of a daemon that died

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string contents((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  return contents;
}

}  // namespace

DiskCache::DiskCache(fs::path folder, int64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {
  std::error_code error;
  fs::create_directories(folder_ / "artifacts", error);
  if (error || ::access((folder_ / "artifacts").c_str(), W_OK | X_OK) != 0) {
    problem_ =
        not_kept("compiled kernels", folder_, error ? error.message() : std::strerror(errno));
    spdlog::warn("{}", problem_);
  }
  scan();
}

fs::path DiskCache::path_of(const std::string& key) const {
  return folder_ / "artifacts" / key.substr(0, 2) / (key + std::string(kExtension));
}

void DiskCache::scan() {
  struct Found {
    std::string key;
    int64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Found> found;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder_ / "artifacts", error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;  // a file that goes away meanwhile is no matter
    if (!at->is_regular_file(ignored)) continue;
    const fs::file_time_type used = at->last_write_time(ignored);
    if (at->path().extension() == kExtension) {
      found.push_back(
          {at->path().stem().string(), static_cast<int64_t>(at->file_size(ignored)), used});
    } else if (used + kAbandoned < fs::file_time_type::clock::now()) {
      fs::remove(at->path(), ignored);
    }
  }
  // Oldest first, so that note_use() leaves the newest in front.
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.used < b.used; });
  for (const Found& entry : found)
    note_use(entry.key, entry.bytes);
  evict();
}

std::optional<std::string> DiskCache::find(const std::string& key, const std::string& form) {
  const fs::path path = path_of(key);
  std::optional<std::string> contents = read_file(path);
  if (!contents) {
    forget(key);
    return std::nullopt;
  }
  if (const std::string damage = damage_of(*contents); !damage.empty()) {
    reject(key, damage);
    return std::nullopt;
  }
  if (!is_of_form(*contents, form)) return std::nullopt;
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  note_use(key, static_cast<int64_t>(contents->size()));
  keep_artifact(*contents);
  return contents;
}

void DiskCache::put(const std::string& key, const std::string& form, const std::string& artifact) {
  if (!problem_.empty()) return;
  const std::string entry = pack_entry(form, artifact);
  const fs::path path = path_of(key);
  const fs::path temporary =
      path.parent_path() / fmt::format(".{}.{}.{}", key, ::getpid(), next_file_.fetch_add(1));
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(temporary, std::ios::binary);
  file.write(entry.data(), static_cast<std::streamsize>(entry.size()));
  file.close();
  if (file) fs::rename(temporary, path, error);
  if (!file || error) {
    spdlog::warn("cannot write the cache entry {}: {}", path.string(),
                 error ? error.message() : std::strerror(errno));
    fs::remove(temporary, error);
    return;
  }
  note_use(key, static_cast<int64_t>(entry.size()));
  evict();
}

void DiskCache::reject(const std::string& key, const std::string& why) {
  corrupt_.fetch_add(1);
  const fs::path path = path_of(key);
  spdlog::warn("the cache entry {} is of no use ({}); the kernel is compiled again", path.string(),
               why);
  std::error_code ignored;
  fs::remove(path, ignored);
  forget(key);
}

void DiskCache::note_use(const std::string& key, int64_t bytes) {
  forget(key);
  const std::lock_guard lock(mutex_);
  uses_.push_front(key);
  slots_[key] = {bytes, uses_.begin()};
  bytes_ += bytes;
}

void DiskCache::forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = slots_.find(key);
  if (at == slots_.end()) return;
  bytes_ -= at->second.bytes;
  uses_.erase(at->second.use);
  slots_.erase(at);
}

void DiskCache::evict() {
  std::vector<std::string> old;
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ <= limit_bytes_) return;
    // A tenth more than needed, so that not every entry evicts another.
    for (auto at = uses_.rbegin(); at != uses_.rend() && bytes_ > limit_bytes_ / 10 * 9; ++at) {
      const auto slot = slots_.find(*at);
      bytes_ -= slot->second.bytes;
      slots_.erase(slot);
      old.push_back(*at);
    }
    // The oldest stand at the back, so these are the ones that went.
    uses_.resize(slots_.size());
  }
  std::error_code ignored;
  for (const std::string& key : old)
    fs::remove(path_of(key), ignored);
}

int64_t DiskCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace kiln::server
