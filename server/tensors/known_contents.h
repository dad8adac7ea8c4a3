#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "server/tensors/arena_pool.h"

namespace kiln::server {

/// Memory by the digest of its contents, which cannot change any more, as long as a tensor lies in
/// it. Each tenant's alone: nobody learns what another one has. Any thread may use it.
class KnownContents {
 public:
  /// The first `bytes` of the slice, which lies in a frozen arena, have this digest: it was
  /// computed here.
  void note(const std::string& tenant, const std::string& digest, int64_t bytes,
            const std::shared_ptr<Slice>& slice);
  /// Null unless the tenant has a tensor with these contents.
  std::shared_ptr<Slice> find(const std::string& tenant, const std::string& digest,
                              int64_t bytes) const;

 private:
  using Key = std::tuple<std::string, std::string, int64_t>;  // tenant, digest, bytes
  mutable std::mutex mutex_;
  std::map<Key, std::weak_ptr<Slice>> slices_;
  size_t clean_at_ = 64;  // entries, when those whose memory is gone are forgotten
};

}  // namespace kiln::server
