// Artifacts in memory, least recently used ones first to go. The key is a hash, so the whole form
// is compared: a collision is a miss, never another kernel's code.
#include "server/cache/artifact_cache.h"

namespace kiln::server {

std::shared_ptr<const CachedArtifact> cached_artifact(std::string form, std::string bytes) {
  auto entry = std::make_shared<CachedArtifact>();
  entry->artifact = std::make_shared<const Artifact>(deserialize_artifact(bytes));
  entry->form = std::move(form);
  entry->bytes = std::move(bytes);
  return entry;
}

int64_t ArtifactCache::cost_of(const CachedArtifact& entry) {
  // The bytes, and about as much again for the artifact read from them.
  return static_cast<int64_t>(entry.form.size() + 2 * entry.bytes.size());
}

int64_t ArtifactCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::shared_ptr<const CachedArtifact> ArtifactCache::find(const std::string& key,
                                                          const std::string& form) {
  const std::lock_guard lock(mutex_);
  const auto at = slots_.find(key);
  if (at == slots_.end() || at->second.entry->form != form) return nullptr;
  uses_.splice(uses_.begin(), uses_, at->second.use);
  return at->second.entry;
}

void ArtifactCache::put(const std::string& key, std::shared_ptr<const CachedArtifact> entry) {
  const std::lock_guard lock(mutex_);
  const auto at = slots_.find(key);
  if (at != slots_.end()) {
    bytes_ -= cost_of(*at->second.entry);
    uses_.erase(at->second.use);
    slots_.erase(at);
  }
  bytes_ += cost_of(*entry);
  uses_.push_front(key);
  slots_[key] = {std::move(entry), uses_.begin()};
  // One always stays, however large: whoever put it there is about to use it.
  while (bytes_ > limit_bytes_ && uses_.size() > 1) {
    const auto oldest = slots_.find(uses_.back());
    bytes_ -= cost_of(*oldest->second.entry);
    slots_.erase(oldest);
    uses_.pop_back();
  }
}

}  // namespace kiln::server
