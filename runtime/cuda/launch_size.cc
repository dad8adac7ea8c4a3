// How large a launch is at the sizes of a call, and whether the device allows it: what is not known
// before the call, no pass can have refused.
#include "runtime/cuda/launch_size.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::cuda {
namespace {

std::array<unsigned, 3> evaluate(const std::vector<SizeExpr>& extents,
                                 std::span<const int64_t> scalars, std::string_view what,
                                 const std::array<int64_t, 3>& limits) {
  std::array<unsigned, 3> result = {1, 1, 1};
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t value = extents[d].evaluate(scalars);
    if (value < 0 || value > limits[d]) {
      fail(ErrorKind::ResourceExhausted, "LAUNCH_SIZE",
           "{} {} would have {} entries; the limit of the device is {}", what, "xyz"[d], value,
           limits[d]);
    }
    result[d] = static_cast<unsigned>(value);
  }
  return result;
}

}  // namespace

bool LaunchSize::is_empty() const {
  return std::ranges::count(grid, 0u) + std::ranges::count(block, 0u) > 0;
}

LaunchSize launch_size(const Launch& launch, std::span<const int64_t> scalars,
                       const DeviceProperties& device) {
  LaunchSize result;
  result.grid = evaluate(launch.grid, scalars, "the grid along", device.grid);
  result.block = evaluate(launch.block, scalars, "a block of threads along", device.block);

  const auto [x, y, z] = result.block;
  const int64_t threads = int64_t{x} * y * z;
  if (threads > device.threads_of_block) {
    fail(ErrorKind::ResourceExhausted, "LAUNCH_SIZE",
         "a block would have {} threads ({} x {} x {}); the limit of the device is {}; bind axes "
         "that are split by a constant to threadIdx",
         threads, x, y, z, device.threads_of_block);
  }
  const int64_t shared = launch.shared_bytes.evaluate(scalars);
  if (shared < 0 || shared > device.shared_bytes_of_block) {
    fail(ErrorKind::ResourceExhausted, "LAUNCH_SIZE",
         "a block would have {} bytes of shared memory; the limit of the device is {}", shared,
         device.shared_bytes_of_block);
  }
  result.shared_bytes = static_cast<unsigned>(shared);
  return result;
}

}  // namespace kiln::cuda
