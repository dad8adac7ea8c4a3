// Looks up whole requests by their bytes. Full, it is emptied: no list of uses to keep, and what is
// asked often is back at once.
#include "server/engine/request_memo.h"

namespace kiln::server {

std::optional<std::string> RequestMemo::find(const std::string& request) const {
  const std::lock_guard lock(mutex_);
  const auto at = kernels_.find(request);
  return at == kernels_.end() ? std::nullopt : std::optional(at->second);
}

void RequestMemo::put(std::string request, std::string kernel_id) {
  const size_t bytes = request.size() + kernel_id.size();
  if (bytes > limit_bytes_) return;
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > limit_bytes_) {
    kernels_.clear();
    bytes_ = 0;
  }
  if (kernels_.insert_or_assign(std::move(request), std::move(kernel_id)).second) bytes_ += bytes;
}

}  // namespace kiln::server
