// Memory of results that nobody looks at any more, for the next ones: a loop that downloads a
// tensor again and again lets go of an array as large as the one it is about to get.
#include "client/cpp/spare_memory.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include <sys/mman.h>

#include "client/cpp/mapping.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;

/// The mappings that arrays gave back, the oldest first.
class SpareMemory {
 public:
  /// One of exactly this size; null where there is none.
  std::unique_ptr<Mapping> take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const auto& mapping) { return mapping->size() == bytes; };
    const auto at = std::ranges::find_if(mappings_, same);
    if (at == mappings_.end()) return nullptr;
    std::unique_ptr<Mapping> mapping = std::move(*at);
    mappings_.erase(at);
    bytes_ -= bytes;
    return mapping;
  }

  void give(std::unique_ptr<Mapping> mapping) {
    if (mapping->size() > kMostBytes) return;
    // Whatever lacks memory may have the pages; nobody asks for what is in them.
    if (::madvise(mapping->data(), mapping->size(), MADV_FREE) != 0) return;
    const std::lock_guard lock(mutex_);
    bytes_ += mapping->size();
    mappings_.push_back(std::move(mapping));
    for (; bytes_ > kMostBytes; mappings_.pop_front())
      bytes_ -= mappings_.front()->size();
  }

 private:
  std::mutex mutex_;
  std::deque<std::unique_ptr<Mapping>> mappings_;
  std::size_t bytes_ = 0;
};

/// Never destroyed, since arrays of a program's globals may outlive it.
SpareMemory& spare_memory() {
  static auto* const spare = new SpareMemory;
  return *spare;
}

}  // namespace

std::shared_ptr<std::byte[]> memory_to_fill(std::size_t bytes) {
  if (bytes < 2 * kHugePage) return std::make_shared_for_overwrite<std::byte[]>(bytes);
  std::unique_ptr<Mapping> mapping = spare_memory().take(bytes);
  if (!mapping) mapping = fresh_mapping(bytes);
  std::byte* const data = mapping->data();
  // Should the pointer's own block not be had, its constructor gives the mapping back.
  return {data, [owner = mapping.release()](std::byte* /*data*/) {
            spare_memory().give(std::unique_ptr<Mapping>(owner));
          }};
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
