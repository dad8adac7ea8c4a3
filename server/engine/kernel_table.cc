// Kernels by the id that clients have, least recently used ones first to go. Workers know a kernel
// by its number, which is never used twice, so that one that fell out cannot be taken for its
// successor.
#include "server/engine/kernel_table.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::server {

std::shared_ptr<const KernelEntry> KernelTable::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto at = slots_.find(id);
  if (at == slots_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, at->second.use);
  return at->second.entry;
}

std::shared_ptr<const KernelEntry> KernelTable::get(const std::string& id) {
  std::shared_ptr<const KernelEntry> entry = find(id);
  if (!entry) {
    fail(ErrorKind::NotFound, "KERNEL", "kernel {} is not known here, or no more; compile it again",
         id.substr(0, 80));
  }
  return entry;
}

/// What the entry keeps alive; entries of one artifact count it each, so that the sum is never too
/// small.
int64_t KernelTable::cost_of(const KernelEntry& entry) {
  return ArtifactCache::cost_of(*entry.compiled) + static_cast<int64_t>(entry.request.size());
}

void KernelTable::erase(const std::string& id) {
  const auto at = slots_.find(id);
  bytes_ -= cost_of(*at->second.entry);
  const auto count = counts_.find(at->second.entry->tenant);
  if (--count->second == 0) counts_.erase(count);
  uses_.erase(at->second.use);
  slots_.erase(at);
}

std::shared_ptr<const KernelEntry> KernelTable::put(KernelEntry entry) {
  const std::lock_guard lock(mutex_);
  const auto at = slots_.find(entry.id);
  if (at != slots_.end()) {
    // Others may have made the same entry meanwhile; its number is the one that workers know.
    if (at->second.entry->compiled->form == entry.compiled->form) return at->second.entry;
    erase(std::string(at->first));
  }
  entry.number = next_number_++;
  auto stored = std::make_shared<const KernelEntry>(std::move(entry));
  uses_.push_front(stored->id);
  slots_[stored->id] = {stored, uses_.begin()};
  bytes_ += cost_of(*stored);
  ++counts_[stored->tenant];
  make_room_for(*stored);
  return stored;
}

/// The one that was just asked for stays, however large.
void KernelTable::make_room_for(const KernelEntry& entry) {
  const std::string& tenant = entry.tenant;
  const size_t most = limits_.quotas->of(tenant).kernels;
  if (most != 0 && counts_.at(tenant) > most) {
    const auto oldest = std::find_if(uses_.rbegin(), uses_.rend(), [&](const std::string& id) {
      return slots_.at(id).entry->tenant == tenant;
    });
    erase(std::string(*oldest));
  }
  while (slots_.size() > 1 && (slots_.size() > limits_.kernels || bytes_ > limits_.bytes))
    erase(std::string(uses_.back()));
}

std::shared_ptr<const KernelEntry> KernelTable::number(KernelEntry entry) {
  const std::lock_guard lock(mutex_);
  entry.number = next_number_++;
  return std::make_shared<const KernelEntry>(std::move(entry));
}

}  // namespace kiln::server
