// Every allocation is a vector of its own, filled with a pattern that is not zero and no number, so
// that what nobody has written is noticed.
#include "tests/cuda/fake/memory.h"

#include <algorithm>

#include "tests/cuda/host/checks.h"

namespace kiln::fake {
namespace {

constexpr unsigned char kNeverWritten = 0xff;

}  // namespace

uint64_t Memory::allocate(Kind kind, int device, uint64_t bytes, uint64_t limit) {
  uint64_t used = 0;
  for (const auto& [pointer, block] : blocks_) {
    if (kind == Kind::Device && block.kind == kind && block.device == device)
      used += block.bytes.size();
  }
  if (bytes > limit || used > limit - bytes) return 0;
  Block block{kind, device, std::vector<unsigned char>(std::max<uint64_t>(bytes, 1))};
  std::fill(block.bytes.begin(), block.bytes.end(), kNeverWritten);
  const auto pointer = reinterpret_cast<uint64_t>(block.bytes.data());
  host::add_memory(pointer, block.bytes.size());
  // What the host reaches itself, it may have written.
  if (kind == Kind::Pinned) host::note_written(pointer, block.bytes.size());
  blocks_.emplace(pointer, std::move(block));
  return pointer;
}

void Memory::clear() {
  for (const auto& [pointer, block] : blocks_)
    host::remove_memory(pointer);
  blocks_.clear();
}

bool Memory::free(Kind kind, uint64_t pointer) {
  const auto at = blocks_.find(pointer);
  if (at == blocks_.end() || at->second.kind != kind) return false;
  host::remove_memory(pointer);
  blocks_.erase(at);
  return true;
}

const Memory::Block* Memory::find(uint64_t pointer) const {
  auto at = blocks_.upper_bound(pointer);
  if (at == blocks_.begin()) return nullptr;
  --at;
  return pointer < at->first + at->second.bytes.size() ? &at->second : nullptr;
}

bool Memory::holds(uint64_t pointer, uint64_t bytes) const {
  const Block* const block = find(pointer);
  if (block == nullptr) return false;
  const auto first = reinterpret_cast<uint64_t>(block->bytes.data());
  return bytes <= first + block->bytes.size() - pointer;
}

bool Memory::is_pinned(const void* pointer) const {
  const Block* const block = find(reinterpret_cast<uint64_t>(pointer));
  return block != nullptr && block->kind == Kind::Pinned;
}

int Memory::count(Kind kind) const {
  return static_cast<int>(std::count_if(blocks_.begin(), blocks_.end(), [&](const auto& block) {
    return block.second.kind == kind;
  }));
}

}  // namespace kiln::fake
