// Counts by enumeration what the threads of a warp touch at once: words of shared memory by bank,
// and sectors of memory.
//
//   s[t*33], t < 32   ->  1 wavefront: each thread in a bank of its own
//   s[t*32]           ->  32 wavefronts: all in one
//   A[t*8] of float32 ->  32 sectors
//
// Banks are those of the CUDA C++ programming guide (shared memory of compute capability 5.x and
// later): 32 of 4 bytes; what several threads read of one word is read once.
#include "compiler/predict/warp_access.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/gpu_arch.h"
#include "compiler/ir/swizzle.h"

namespace kiln::predict {
namespace {

using ir::kBankBytes;
using ir::kBanks;

constexpr int64_t kThreads = ir::kWarp;
constexpr int64_t kBytesAtOnce = kBanks * kBankBytes;

/// The units of so many bytes that accesses at these places touch, each once.
std::vector<int64_t> units_of(std::span<const int64_t> places, int64_t bytes, int64_t unit) {
  std::vector<int64_t> units;
  for (const int64_t place : places)
    for (int64_t each = place / unit; each * unit < place + bytes; ++each)
      units.push_back(each);
  std::ranges::sort(units);
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

/// Adds what accesses of so many bytes at these places take of shared memory.
void add_wavefronts(std::span<const int64_t> places, int64_t bytes, WarpAccess& access) {
  const auto at_once = static_cast<size_t>(
      std::clamp<int64_t>(kBytesAtOnce / std::max(bytes, kBankBytes), 1, kThreads));
  for (size_t begin = 0; begin < places.size(); begin += at_once) {
    const auto together = places.subspan(begin, std::min(at_once, places.size() - begin));
    const std::vector<int64_t> words = units_of(together, bytes, kBankBytes);
    std::array<int64_t, kBanks> of_bank{};
    for (const int64_t word : words)
      ++of_bank[static_cast<size_t>(word % kBanks)];
    access.wavefronts += *std::ranges::max_element(of_bank);
    access.fewest += (static_cast<int64_t>(words.size()) + kBanks - 1) / kBanks;
  }
}

/// Bytes from the first element of the buffer to what each thread of a warp touches first.
std::vector<int64_t> places_of(const Touch& touch, const ThreadLoops& threads) {
  std::vector<int64_t> places;
  const auto byte_of = [&](int64_t element) {
    const bool is_swizzled = touch.buffer && touch.buffer->swizzle != 0;
    return (is_swizzled ? ir::place_in_memory(*touch.buffer, element) : element) *
           touch.element_bytes;
  };
  for (const int64_t element : touch.elements_of_warp)
    places.push_back(byte_of(element));
  int64_t count = places.empty() ? 1 : 0;
  for (const ThreadLoop& loop : threads)
    count *= std::max<int64_t>(loop.extent, 1);
  for (int64_t thread = 0; thread < std::min(count, kThreads); ++thread) {
    int64_t element = touch.first;
    int64_t rest = thread;
    for (const ThreadLoop& loop : threads) {
      const int64_t stride = loop.depth < touch.strides.size() ? touch.strides[loop.depth] : 0;
      const int64_t extent = std::max<int64_t>(loop.extent, 1);
      element += rest % extent * stride;
      rest /= extent;
    }
    places.push_back(byte_of(element));
  }
  // What lies before the first element, as of a window, is of no other sector for that.
  const int64_t least = *std::ranges::min_element(places);
  const int64_t shift = least < 0 ? (-least + kBytesAtOnce - 1) / kBytesAtOnce * kBytesAtOnce : 0;
  for (int64_t& place : places)
    place += shift;
  return places;
}

}  // namespace

WarpAccess warp_access(const Touch& touch, const ThreadLoops& threads) {
  const std::vector<int64_t> places = places_of(touch, threads);
  const int64_t bytes = touch.element_bytes * touch.lanes;
  WarpAccess access;
  add_wavefronts(places, bytes, access);
  access.sectors = static_cast<int64_t>(units_of(places, bytes, kSectorBytes).size());
  return access;
}

WarpAccess matrix_access(std::span<const int64_t> places, int64_t bytes) {
  WarpAccess access;
  add_wavefronts(places, bytes, access);
  return access;
}

}  // namespace kiln::predict
