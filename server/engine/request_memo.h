#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace kiln::server {

/// Which kernel a compile request of the very same bytes got: decoding and checking a request anew
/// takes longer than all else that an answer from memory needs.
class RequestMemo {
 public:
  explicit RequestMemo(size_t limit_bytes = size_t{8} << 20) : limit_bytes_(limit_bytes) {}

  /// The id of the kernel.
  std::optional<std::string> find(const std::string& request) const;
  /// Forgets everything first when the requests would take more than the limit.
  void put(std::string request, std::string kernel_id);

 private:
  const size_t limit_bytes_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::unordered_map<std::string, std::string> kernels_;  // ids, by request
};

}  // namespace kiln::server
