// How devices copy whose memory the host can address: a copy is a copy. Of nothing, it may be given
// no address, which memcpy does not allow. Others override all.
#include "runtime/device.h"

#include <cstring>

namespace kiln {

void Device::copy_in(void* device, const void* host, int64_t bytes) {
  if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
}

void Device::copy_out(void* host, const void* device, int64_t bytes) {
  if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
}

void Device::copy_within(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace kiln
