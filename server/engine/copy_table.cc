// Numbers copies, and knows of each what becomes of it when the worker ends. The arenas of the
// front end outlive workers, so of a tensor that was uploaded nothing is lost; what a call wrote
// and nobody fetched was in the memory of the device alone.
#include "server/engine/copy_table.h"

namespace kiln::server {

std::shared_ptr<DeviceCopy> CopyTable::of(Slice& slice) {
  const std::shared_ptr<DeviceCopy> known = slice.copy();
  if (known != nullptr && known->freed == freed_) return known;
  const auto copy = std::make_shared<DeviceCopy>(device_, next_number_++, freed_);
  copies_[copy->number] = copy;
  slice.set_copy(copy);
  return copy;
}

internal::DropTensors CopyTable::take_freed() {
  internal::DropTensors message;
  for (const uint64_t number : freed_->take()) {
    // Of a worker before this one it is gone already.
    if (copies_.erase(number) != 0) message.add_residents(number);
  }
  return message;
}

void CopyTable::lose_all() {
  for (const auto& [number, weak] : copies_) {
    const std::shared_ptr<DeviceCopy> copy = weak.lock();
    if (copy == nullptr) continue;
    if (copy->is_newer) copy->is_lost = true;
    copy->version = 0;
  }
  std::erase_if(copies_, [](const auto& entry) { return entry.second.expired(); });
}

Error tensor_lost(const std::string& device) {
  return Error(
      ErrorKind::HandleLost, "TENSOR_LOST",
      fmt::format("a tensor was lost when the worker of {} ended: it was a result that only "
                  "the device had; compute it again",
                  device));
}

void require_not_lost(const Slice& slice) {
  const std::shared_ptr<DeviceCopy> copy = slice.copy();
  if (copy != nullptr && copy->is_newer && copy->is_lost) throw tensor_lost(copy->device);
}

}  // namespace kiln::server
