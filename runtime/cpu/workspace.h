#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace kiln {

struct FreeMemory {
  void operator()(void* memory) const noexcept;
};
/// Memory aligned to a cache line.
using AlignedMemory = std::unique_ptr<uint8_t, FreeMemory>;

/// Throws ResourceExhausted DEVICE_MEMORY. Of 0 bytes: a valid pointer all the same.
AlignedMemory allocate_aligned(int64_t bytes);

/// Scratch memory for calls, kept for the next one up to a bound. Thread-safe.
class WorkspacePool {
 public:
  /// A block for one call; goes back to the pool when destroyed.
  class Lease {
   public:
    Lease(WorkspacePool& pool, AlignedMemory memory, int64_t bytes)
        : pool_(&pool), memory_(std::move(memory)), bytes_(bytes) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (memory_) pool_->give_back(std::move(memory_), bytes_);
    }
    uint8_t* data() const { return memory_.get(); }

   private:
    WorkspacePool* pool_;
    AlignedMemory memory_;
    int64_t bytes_;
  };

  /// At least this many bytes. Throws ResourceExhausted DEVICE_MEMORY.
  Lease acquire(int64_t bytes);

 private:
  struct Block {
    AlignedMemory memory;
    int64_t bytes;
  };
  void give_back(AlignedMemory memory, int64_t bytes);

  std::mutex mutex_;
  std::vector<Block> free_;
  int64_t kept_bytes_ = 0;
};

}  // namespace kiln
