#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace kiln::fake {

/// The memory of the fake devices, which is the host's: what is allocated, where copies may go.
class Memory {
 public:
  enum class Kind { Device, Pinned };
  /// 0 when a device would then have more than its `limit`.
  uint64_t allocate(Kind kind, int device, uint64_t bytes, uint64_t limit);
  void clear();
  bool free(Kind kind, uint64_t pointer);
  /// Whether all these bytes lie in one allocation.
  bool holds(uint64_t pointer, uint64_t bytes) const;
  /// Whether it is pinned memory, which alone is copied without waiting.
  bool is_pinned(const void* pointer) const;
  int count(Kind kind) const;

 private:
  struct Block {
    Kind kind;
    int device;
    std::vector<unsigned char> bytes;
  };
  const Block* find(uint64_t pointer) const;

  std::map<uint64_t, Block> blocks_;  // by their first byte
};

}  // namespace kiln::fake
