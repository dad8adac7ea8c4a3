#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/ipc/memfd.h"
#include "server/tensors/device_copy.h"

namespace kiln::server {

/// Memory that the front end owns and workers map. It outlives every worker.
struct Arena {
  Arena(uint64_t number, int64_t bytes);
  /// Memory of somebody else's, which nobody can write.
  Arena(uint64_t number, Fd sealed, int64_t bytes);

  const uint64_t number;
  const Fd fd;
  const Mapping mapping;

  int64_t bytes() const { return mapping.bytes(); }
  /// Processes outside of the service may see it: it must not be written any more, and a worker
  /// that has not mapped it yet can only read it.
  bool is_frozen() const { return frozen.load(); }

  mutable std::atomic<bool> frozen{false};  // by the pool
};

class ArenaPool;

/// A part of an arena, 64-byte aligned, given back by the destructor.
class Slice {
 public:
  Slice(std::shared_ptr<ArenaPool> pool, std::shared_ptr<const Arena> arena, int64_t offset,
        int64_t bytes);
  ~Slice();
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;

  uint8_t* data() const { return arena_->mapping.data() + offset_; }
  int64_t bytes() const { return bytes_; }
  const std::shared_ptr<const Arena>& arena() const { return arena_; }
  int64_t offset() const { return offset_; }

  /// Counts up with the contents, as far as this process writes them or has them written.
  uint64_t version() const { return version_.load(); }
  /// The contents are new; a device's copy is not any more.
  void written();
  /// What a device keeps of it, or null. Its `is_newer` says where the contents are.
  std::shared_ptr<DeviceCopy> copy() const;
  void set_copy(std::shared_ptr<DeviceCopy> copy);

 private:
  const std::shared_ptr<ArenaPool> pool_;
  const std::shared_ptr<const Arena> arena_;
  const int64_t offset_;
  const int64_t bytes_;
  std::atomic<uint64_t> version_{1};
  mutable std::mutex mutex_;
  std::shared_ptr<DeviceCopy> copy_;
};

/// Hands out slices of arenas. Memory given back stays warm for the next call: touching fresh pages
/// costs ten times what copying into used ones does. Slices of kHugePage or more lie in huge pages,
/// as far as the system has them: memory is read up to a third faster there.
class ArenaPool : public std::enable_shared_from_this<ArenaPool> {
 public:
  struct Options {
    int64_t limit_bytes = int64_t{4} << 30;   // of all slices
    int64_t arena_bytes = int64_t{16} << 20;  // larger slices get an arena of their own
    int64_t warm_bytes = int64_t{512} << 20;  // unused arenas that are kept
    // CPUs by the memory that is near to them. With several, the pages of a large slice are of all
    // of these nodes in turn, as the threads that compute begin with it.
    std::vector<std::vector<int>> nodes;
  };
  explicit ArenaPool(const Options& options) : options_(options) {}

  /// Contents are those of whoever had it before. Throws ResourceExhausted TENSOR_MEMORY past the
  /// limit, TENSOR_LIMIT where no room would do, HOST_MEMORY when the host has no more.
  std::shared_ptr<Slice> allocate(int64_t bytes);
  /// The same, but huge pages are left for use(): memory that nobody writes is not taken yet.
  std::shared_ptr<Slice> reserve(int64_t bytes);
  /// These bytes of a reserved slice are about to be written.
  void use(const Slice& slice, int64_t offset, int64_t bytes);

  /// As allocate(), in an arena of which nobody but this owner ever sees anything.
  std::shared_ptr<Slice> allocate_for(const std::string& owner, int64_t bytes);
  /// The same as reserve().
  std::shared_ptr<Slice> reserve_for(const std::string& owner, int64_t bytes);
  /// A slice of memory that is_sealed_memory(); it counts towards the limit.
  std::shared_ptr<Slice> adopt(Fd sealed, int64_t bytes);
  /// Makes the slice fit to be shown to its owner, and frozen. False when others may see its arena.
  bool freeze(const Slice& slice, const std::string& owner);
  /// The owner is gone: what it alone had, nobody is shown any more.
  void forget_owner(const std::string& owner);
  /// Gives the memory that is kept warm back to the system.
  void cool_down();

  int64_t used_bytes() const;
  /// Arenas that exist, used or warm.
  std::vector<uint64_t> arenas() const;
  /// Counts those that exist no more.
  uint64_t drops() const { return drops_.load(); }

 private:
  friend class Slice;
  struct Holding {
    std::shared_ptr<const Arena> arena;
    std::map<int64_t, int64_t> free;  // offset -> bytes, never adjacent
    int64_t used = 0;
    std::string owner;       // empty: anybody's
    std::vector<bool> huge;  // by kHugePage: those that were asked for in one piece
  };

  /// Whether some of these pages were not asked for in one piece before; now they are.
  bool is_first_use(uint64_t arena, int64_t first, int64_t end);

  void give_back(const Arena& arena, int64_t offset, int64_t bytes);

  // With the lock held.
  void require_room(int64_t bytes) const;
  Holding& add_arena(std::shared_ptr<const Arena> arena);
  std::shared_ptr<Slice> take(Holding& holding, int64_t offset, int64_t size);
  Holding* find_unused(const std::string& owner, int64_t arena_bytes);
  void drop_cold_arenas(int64_t warm_bytes);

  const Options options_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Holding> holdings_;  // ordered, so that old arenas fill up first
  uint64_t next_arena_ = 1;
  int64_t used_ = 0;
  std::atomic<uint64_t> drops_{0};
};

}  // namespace kiln::server
