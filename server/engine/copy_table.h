#pragma once

#include <map>
#include <memory>
#include <string>

#include "kiln/internal/worker.pb.h"
#include "runtime/core/error.h"
#include "server/tensors/arena_pool.h"

namespace kiln::server {

/// What the worker of one device keeps of slices. Its owner locks.
class CopyTable {
 public:
  explicit CopyTable(std::string device) : device_(std::move(device)) {}

  /// The copy of `slice` here, which is made known to it if it has none. The slice may have one
  /// elsewhere only if that is not newer.
  std::shared_ptr<DeviceCopy> of(Slice& slice);
  /// The numbers that the worker need not keep any more.
  internal::DropTensors take_freed();
  /// The worker ended: what only it had is lost, the rest is copied again.
  void lose_all();

 private:
  const std::string device_;
  uint64_t next_number_ = 1;
  const std::shared_ptr<FreedCopies> freed_ = std::make_shared<FreedCopies>();
  std::map<uint64_t, std::weak_ptr<DeviceCopy>> copies_;
};

/// HandleLost TENSOR_LOST: the newest contents of a tensor ended with the worker of `device`.
Error tensor_lost(const std::string& device);
/// Throws that where it is so.
void require_not_lost(const Slice& slice);

}  // namespace kiln::server
