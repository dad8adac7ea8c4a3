// Allocates from the driver's pool of the device, which is told to keep what is freed: by default
// it gives memory back to the system whenever a stream comes to rest, and takes milliseconds to get
// it again. What it keeps but nobody uses goes when an allocation finds no room, which is then
// tried once more. Devices without such pools are asked for memory directly.
#include "runtime/cuda/memory_pool.h"

#include "runtime/core/error.h"
#include "runtime/cuda/driver_errors.h"

namespace kiln::cuda {
namespace {

constexpr Result kOutOfMemory = 2;

}  // namespace

MemoryPool::MemoryPool(const DriverApi& api, const DeviceProperties& device, std::string name,
                       int64_t budget)
    : api_(api), name_(std::move(name)), budget_(budget), stream_(api) {
  if (!device.has_memory_pools) return;
  check(api_, api_.default_pool(&pool_, device.handle), "find the memory pool of the device");
  uint64_t keep_all = UINT64_MAX;
  check(api_, api_.set_pool_attribute(pool_, kPoolReleaseThreshold, &keep_all),
        "set up the memory pool of the device");
}

Result MemoryPool::take(DevicePointer* pointer, int64_t bytes) const {
  const auto size = static_cast<size_t>(bytes);
  if (pool_ == nullptr) return api_.allocate(pointer, size);
  Result result = api_.allocate_in_order(pointer, size, stream_.handle());
  if (result == kOutOfMemory) {
    stream_.wait("free memory");
    check(api_, api_.trim_pool(pool_, 0), "free memory");
    result = api_.allocate_in_order(pointer, size, stream_.handle());
  }
  // Other streams may use it once this one has come past the allocation.
  if (result == 0) stream_.wait("allocate memory");
  return result;
}

DevicePointer MemoryPool::allocate(int64_t bytes) {
  if (bytes == 0) return 0;
  const int64_t before = used_.fetch_add(bytes);
  DevicePointer pointer = 0;
  try {
    if (bytes > budget_ - before) {
      fail(ErrorKind::ResourceExhausted, "DEVICE_MEMORY",
           "{} has no room for {} bytes: {} of its {} are in use", name_, bytes, before, budget_);
    }
    check(api_, take(&pointer, bytes), fmt::format("allocate {} bytes", bytes));
  } catch (...) {
    used_.fetch_sub(bytes);
    throw;
  }
  return pointer;
}

void MemoryPool::free(DevicePointer pointer, int64_t bytes) {
  if (pointer == 0) return;
  if (pool_ != nullptr) {
    api_.free_in_order(pointer, stream_.handle());
  } else {
    api_.free(pointer);
  }
  used_.fetch_sub(bytes);
}

}  // namespace kiln::cuda
