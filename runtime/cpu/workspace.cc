// Memory for tensors and workspaces, in huge pages where it is large enough: kernels step through
// rows that lie in other pages each, and the TLB reaches some thousand of 4 KiB. Blocks of past
// calls are kept, since fresh memory costs a page fault wherever it is first touched.
#include "runtime/cpu/workspace.h"

#include <algorithm>
#include <cstdlib>

#include <sys/mman.h>

#include "runtime/core/error.h"

namespace kiln {
namespace {

constexpr size_t kAlignment = 64;                    // bytes: a cache line
constexpr size_t kHugePage = size_t{2} << 20;        // of x86-64
constexpr int64_t kAddressSpace = int64_t{1} << 47;  // asking for more is not worth a call
constexpr int64_t kKeptBytes = int64_t{256} << 20;   // by all free blocks together

}  // namespace

void FreeMemory::operator()(void* memory) const noexcept { std::free(memory); }

AlignedMemory allocate_aligned(int64_t bytes) {
  KILN_CHECK(bytes >= 0);
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  const size_t unit = size < kHugePage ? kAlignment : kHugePage;
  const size_t rounded = (size + unit - 1) / unit * unit;
  AlignedMemory memory;
  if (bytes <= kAddressSpace) {
    memory.reset(static_cast<uint8_t*>(std::aligned_alloc(unit, rounded)));
  }
  // A wish: a system without such pages gives small ones.
  if (memory && unit == kHugePage) static_cast<void>(madvise(memory.get(), rounded, MADV_HUGEPAGE));
  if (!memory) {
    fail(ErrorKind::ResourceExhausted, "DEVICE_MEMORY", "cpu:0 has no {} bytes of memory left",
         bytes);
  }
  return memory;
}

WorkspacePool::Lease WorkspacePool::acquire(int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    // One far larger than asked for is left to those who need it.
    const auto fitting = std::find_if(free_.begin(), free_.end(), [&](const Block& block) {
      return block.bytes >= bytes && block.bytes / 4 <= bytes + 4096;
    });
    if (fitting != free_.end()) {
      Block block = std::move(*fitting);
      free_.erase(fitting);
      kept_bytes_ -= block.bytes;
      return {*this, std::move(block.memory), block.bytes};
    }
  }
  return {*this, allocate_aligned(bytes), bytes};
}

void WorkspacePool::give_back(AlignedMemory memory, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kKeptBytes) return;
  while (!free_.empty() && kept_bytes_ + bytes > kKeptBytes) {  // the oldest go first
    kept_bytes_ -= free_.front().bytes;
    free_.erase(free_.begin());
  }
  kept_bytes_ += bytes;
  free_.push_back({std::move(memory), bytes});
}

}  // namespace kiln
