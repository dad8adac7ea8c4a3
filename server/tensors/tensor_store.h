#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/dtype.h"
#include "server/clock.h"
#include "server/quotas.h"
#include "server/tensors/arena_pool.h"

namespace kiln::server {

/// A tensor that stays on the service between calls. Row-major and compact, in memory of the host;
/// of what a device with memory of its own keeps, the slice knows.
struct Tensor {
  std::string id;
  std::string tenant;
  std::string session;           // empty: the session of callers that have none
  std::string device = "cpu:0";  // where the client put it
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  std::shared_ptr<Slice> slice;
};

/// What a tenant keeps.
struct Holdings {
  struct Held {
    std::shared_ptr<const Tensor> tensor;
    Clock::time_point used;
  };
  std::vector<Held> largest;
  int64_t count = 0;        // of all of them
  int64_t bytes = 0;        // of all of them
  int64_t limit_bytes = 0;  // 0: none
};

/// "(3,)", "(2, 3)".
std::string shape_text(std::span<const int64_t> shape);

/// The tensors of all sessions, by id. To a tenant those of others do not exist. Whoever holds a
/// Tensor may use its memory, freed or not.
class TensorStore {
 public:
  /// Tensors without a session are freed when nobody used them for `unowned_life`. Those of one
  /// tenant have as many bytes as its quota at most.
  TensorStore(std::string boot_id, Clock::duration unowned_life,
              SharedQuotas quotas = shared_quotas({}))
      : boot_id_(std::move(boot_id)), unowned_life_(unowned_life), quotas_(std::move(quotas)) {}

  /// Throws ResourceExhausted TENSOR_MEMORY unless the tenant may have so many bytes more beside
  /// its tensors and those that are `coming`, TENSOR_LIMIT where it never may.
  void require_room(const std::string& tenant, int64_t bytes, int64_t coming = 0) const;
  /// Stores `tensor` under its id, or a new one, which nobody can guess. Throws InvalidArgument
  /// TENSOR_NUMBER when there is one of this id, and what require_room() throws.
  std::shared_ptr<const Tensor> add(Tensor tensor);
  /// Throws NotFound TENSOR, or HandleLost HANDLE_LOST for one of an earlier daemon.
  std::shared_ptr<const Tensor> find(const std::string& tenant, const std::string& id);
  /// It belongs to this session from now on; false where find() throws.
  bool hand_over(const std::string& tenant, const std::string& id, const std::string& session);
  /// The tensor has its contents there from now on; nothing when it was freed meanwhile.
  void renew(const std::string& id, std::shared_ptr<Slice> slice);
  /// How many of these existed.
  int free(const std::string& tenant, std::span<const std::string> ids);
  void free_session(const std::string& session);
  void expire(Clock::time_point now);
  int64_t count() const;
  /// What the tenant has, the `limit` largest of them by size and then by id. It is no use of them.
  Holdings list(const std::string& tenant, size_t limit) const;

 private:
  using Entry = Holdings::Held;

  // With the lock held.
  void require_room_for(const std::string& tenant, int64_t bytes, int64_t coming = 0) const;
  void note_freed(const Tensor& tensor);

  const std::string boot_id_;
  const Clock::duration unowned_life_;
  const SharedQuotas quotas_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, int64_t> used_bytes_;  // by tenant
  std::unordered_map<std::string, Entry> entries_;
};

/// 2 * `bytes` hex digits from the system's random source.
std::string random_hex(int bytes);

}  // namespace kiln::server
