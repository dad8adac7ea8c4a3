#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/driver_objects.h"

namespace kiln::cuda {

/// The memory of a device that this process has: what one call frees the next one gets without the
/// device having to come to rest. Bounded by a budget. Any thread may use it.
class MemoryPool {
 public:
  /// `name` is the device's, for sentences.
  MemoryPool(const DriverApi& api, const DeviceProperties& device, std::string name,
             int64_t budget);

  /// Ready for every stream; of 0 bytes none. Throws ResourceExhausted DEVICE_MEMORY.
  DevicePointer allocate(int64_t bytes);
  /// No work that uses it may be under way.
  void free(DevicePointer pointer, int64_t bytes);

  int64_t used_bytes() const { return used_.load(); }

 private:
  Result take(DevicePointer* pointer, int64_t bytes) const;

  const DriverApi& api_;
  const std::string name_;
  const int64_t budget_;
  const Stream stream_;   // in whose order memory comes and goes
  void* pool_ = nullptr;  // none: the device has no such pools
  std::atomic<int64_t> used_{0};
};

/// Memory of a pool, freed by its destructor.
class Memory {
 public:
  Memory(MemoryPool& pool, int64_t bytes)
      : pool_(pool), bytes_(bytes), pointer_(pool.allocate(bytes)) {}
  ~Memory() { pool_.free(pointer_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() const { return reinterpret_cast<void*>(pointer_); }
  int64_t bytes() const { return bytes_; }

 private:
  MemoryPool& pool_;
  const int64_t bytes_;
  const DevicePointer pointer_;
};

}  // namespace kiln::cuda
