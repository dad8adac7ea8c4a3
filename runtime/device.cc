// How devices copy whose memory the host can address: a copy is a copy. Of nothing, it may be given
// no address, which memcpy does not allow. Others override both.
#include "runtime/device.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kiln {

void Device::copy_in(void* device, const void* host, int64_t bytes) {
  if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
}

void Device::copy_out(void* host, const void* device, int64_t bytes) {
  if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
}

// By way of the host, a piece at a time.
void Device::copy_within(void* to, const void* from, int64_t bytes) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::vector<uint8_t> piece(static_cast<size_t>(std::min(bytes, kPiece)));
  for (int64_t done = 0; done < bytes; done += kPiece) {
    const int64_t count = std::min(kPiece, bytes - done);
    copy_out(piece.data(), static_cast<const uint8_t*>(from) + done, count);
    copy_in(static_cast<uint8_t*>(to) + done, piece.data(), count);
  }
}

}  // namespace kiln
