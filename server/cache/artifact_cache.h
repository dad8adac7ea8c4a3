#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/core/artifact.h"

namespace kiln::server {

/// A compiled kernel with what it was compiled from.
struct CachedArtifact {
  std::string form;   // the request in canonical form: equal forms, equal artifacts
  std::string bytes;  // serialize(artifact)
  std::shared_ptr<const Artifact> artifact;
};

/// Reads `bytes`. Throws what deserialize_artifact() throws.
std::shared_ptr<const CachedArtifact> cached_artifact(std::string form, std::string bytes);

/// Artifacts in memory, the last used ones up to a number of bytes.
class ArtifactCache {
 public:
  explicit ArtifactCache(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// Nothing when the key is unknown, or known for another form.
  std::shared_ptr<const CachedArtifact> find(const std::string& key, const std::string& form);
  void put(const std::string& key, std::shared_ptr<const CachedArtifact> entry);
  int64_t bytes() const;
  /// The memory that an entry takes, about.
  static int64_t cost_of(const CachedArtifact& entry);

 private:
  struct Slot {
    std::shared_ptr<const CachedArtifact> entry;
    std::list<std::string>::iterator use;
  };

  const int64_t limit_bytes_;
  mutable std::mutex mutex_;
  int64_t bytes_ = 0;
  std::list<std::string> uses_;  // keys, last used first
  std::unordered_map<std::string, Slot> slots_;
};

}  // namespace kiln::server
