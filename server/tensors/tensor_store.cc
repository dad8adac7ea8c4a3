// Tensors by ids that nobody can guess. An id begins with the daemon's boot id, so that one of an
// earlier daemon is told apart from one that was freed: the first is worth uploading again.
//
//   "BOOT-24 hex digits":  own boot id  ->  NotFound     another  ->  HandleLost
#include "server/tensors/tensor_store.h"

#include <algorithm>
#include <tuple>

#include <sys/random.h>

#include "runtime/core/error.h"

namespace kiln::server {

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string random_hex(int bytes) {
  std::vector<unsigned char> random(static_cast<size_t>(bytes));
  KILN_CHECK(::getrandom(random.data(), random.size(), 0) == bytes);
  std::string text;
  for (const unsigned char byte : random)
    text += fmt::format("{:02x}", byte);
  return text;
}

std::shared_ptr<const Tensor> TensorStore::add(Tensor tensor) {
  if (tensor.id.empty()) tensor.id = boot_id_ + "-" + random_hex(12);
  auto stored = std::make_shared<const Tensor>(std::move(tensor));
  const std::lock_guard lock(mutex_);
  // Others of the tenant's may have come meanwhile.
  require_room_for(stored->tenant, stored->bytes);
  if (!entries_.try_emplace(stored->id, Entry{stored, Clock::now()}).second) {
    fail(ErrorKind::InvalidArgument, "TENSOR_NUMBER", "there is a tensor {} already", stored->id);
  }
  used_bytes_[stored->tenant] += stored->bytes;
  return stored;
}

void TensorStore::require_room(const std::string& tenant, int64_t bytes, int64_t coming) const {
  const std::lock_guard lock(mutex_);
  require_room_for(tenant, bytes, coming);
}

void TensorStore::require_room_for(const std::string& tenant, int64_t bytes, int64_t coming) const {
  const int64_t limit = quotas_->of(tenant).tensor_bytes;
  if (limit == 0) return;
  if (bytes > limit) {
    fail(ErrorKind::ResourceExhausted, "TENSOR_LIMIT",
         "a tensor of {} bytes is asked for, but this tenant may have {} in all its "
         "tensors",
         bytes, limit);
  }
  const auto at = used_bytes_.find(tenant);
  const int64_t used = coming + (at == used_bytes_.end() ? 0 : at->second);
  if (used + bytes <= limit) return;
  fail(ErrorKind::ResourceExhausted, "TENSOR_MEMORY",
       "the tensors of this tenant have {} bytes of the {} that it may have, and {} more are "
       "needed; "
       "free some",
       used, limit, bytes);
}

void TensorStore::note_freed(const Tensor& tensor) {
  const auto at = used_bytes_.find(tensor.tenant);
  if (at == used_bytes_.end()) return;  // it has only tensors without bytes
  if ((at->second -= tensor.bytes) == 0) used_bytes_.erase(at);
}

std::shared_ptr<const Tensor> TensorStore::find(const std::string& tenant, const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    if (at != entries_.end() && at->second.tensor->tenant == tenant) {
      at->second.used = Clock::now();
      return at->second.tensor;
    }
  }
  const bool ours = id.rfind(boot_id_ + "-", 0) == 0;
  // A text that only looks like an id of ours says nothing about a daemon before.
  if (!ours && id.size() == boot_id_.size() + 25 && id[boot_id_.size()] == '-') {
    fail(ErrorKind::HandleLost, "HANDLE_LOST",
         "tensor {} was lost when the daemon was started again; upload it once more", id);
  }
  fail(ErrorKind::NotFound, "TENSOR",
       "there is no tensor {}; it was freed, or its session has ended", id);
}

bool TensorStore::hand_over(const std::string& tenant, const std::string& id,
                            const std::string& session) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  if (at == entries_.end() || at->second.tensor->tenant != tenant) return false;
  if (at->second.tensor->session == session) return true;
  Tensor handed = *at->second.tensor;
  handed.session = session;
  at->second.tensor = std::make_shared<const Tensor>(std::move(handed));
  return true;
}

void TensorStore::renew(const std::string& id, std::shared_ptr<Slice> slice) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  Tensor renewed = *at->second.tensor;
  renewed.slice = std::move(slice);
  at->second.tensor = std::make_shared<const Tensor>(std::move(renewed));
}

int TensorStore::free(const std::string& tenant, std::span<const std::string> ids) {
  const std::lock_guard lock(mutex_);
  int freed = 0;
  for (const std::string& id : ids) {
    const auto at = entries_.find(id);
    if (at == entries_.end() || at->second.tensor->tenant != tenant) continue;
    note_freed(*at->second.tensor);
    entries_.erase(at);
    ++freed;
  }
  return freed;
}

void TensorStore::free_session(const std::string& session) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    const bool is_of_it = entry.second.tensor->session == session;
    if (is_of_it) note_freed(*entry.second.tensor);
    return is_of_it;
  });
}

void TensorStore::expire(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    const bool is_old =
        entry.second.tensor->session.empty() && entry.second.used + unowned_life_ < now;
    if (is_old) note_freed(*entry.second.tensor);
    return is_old;
  });
}

int64_t TensorStore::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}

Holdings TensorStore::list(const std::string& tenant, size_t limit) const {
  Holdings held{.limit_bytes = quotas_->of(tenant).tensor_bytes};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_)
      if (entry.tensor->tenant == tenant) held.largest.push_back(entry);
  }
  held.count = static_cast<int64_t>(held.largest.size());
  for (const Holdings::Held& each : held.largest)
    held.bytes += each.tensor->bytes;
  const auto shown =
      held.largest.begin() + static_cast<int64_t>(std::min(limit, held.largest.size()));
  std::partial_sort(
      held.largest.begin(), shown, held.largest.end(), [](const auto& a, const auto& b) {
        return std::tie(b.tensor->bytes, a.tensor->id) < std::tie(a.tensor->bytes, b.tensor->id);
      });
  held.largest.erase(shown, held.largest.end());
  return held;
}

}  // namespace kiln::server
