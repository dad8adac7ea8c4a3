// What a tenant has uploaded under a digest, for who uploads it again.
//
//   alice has D in arena 7;  alice asks for D  ->  arena 7;  bob asks for D  ->  nothing
#include "server/tensors/known_contents.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::server {

void KnownContents::note(const std::string& tenant, const std::string& digest, int64_t bytes,
                         const std::shared_ptr<Slice>& slice) {
  KILN_CHECK(slice->arena()->is_frozen());
  const std::lock_guard lock(mutex_);
  slices_[Key(tenant, digest, bytes)] = slice;
  if (slices_.size() < clean_at_) return;
  std::erase_if(slices_, [](const auto& entry) { return entry.second.expired(); });
  clean_at_ = std::max<size_t>(64, 2 * slices_.size());
}

std::shared_ptr<Slice> KnownContents::find(const std::string& tenant, const std::string& digest,
                                           int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = slices_.find(Key(tenant, digest, bytes));
  return at == slices_.end() ? nullptr : at->second.lock();
}

}  // namespace kiln::server
