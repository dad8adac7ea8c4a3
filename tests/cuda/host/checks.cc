// Finds races, accesses beside memory and reads of what nobody wrote. Kernels are compiled as for
// the thread sanitizer, which calls a function for each access; these are ours. A byte of memory
// knows who wrote and read it last, and since which barrier: two accesses of different threads, one
// of them a write, must have a meeting of these threads between them. So one order of execution is
// enough: what is looked for is the missing meeting, not its effect.
//
// After V. Serebryany, T. Iskhodzhanov: ThreadSanitizer, data race detection in practice (2009).
#include "tests/cuda/host/checks.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include <dlfcn.h>

#include "tests/cuda/host/block.h"

namespace kiln::host {
namespace {

constexpr int32_t kSeveral = -2;
constexpr uint32_t kNever = 0;

/// Who touched a byte last: the thread of the block, the block, and the meetings of the block and
/// of the warp that were the last before. Of block kNever: nobody.
struct Touch {
  int32_t thread = 0;
  uint32_t block = kNever;
  uint32_t meeting = 0;
  uint32_t warp_meeting = 0;
};
struct Byte {
  Touch write;
  Touch read;
  bool is_written = false;
  bool is_atomic = false;  // the last write
  bool is_coming = false;  // that write has begun, and not arrived
};
struct Free {
  void operator()(Byte* bytes) const { std::free(bytes); }
};
struct Range {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  // All zeros at first, so that pages of it take memory once there is a touch in them.
  std::unique_ptr<Byte[], Free> touched;
  bool is_written = false;  // each byte, before the launch
};

struct Launch {
  std::map<uint64_t, Range> memory;
  Range shared;
  uint64_t stacks_begin = 0;
  uint64_t stacks_bytes = 0;
  uint32_t launch_base = 1;  // the number of its first block
  uint32_t block = 1;        // never 0, and never that of a launch before
  uint32_t meeting = 1;
  std::array<uint32_t, 32> warp_meetings{};
  std::string violation;
};

Launch under_way;
Launch& launch() { return under_way; }

Range range_of(uint64_t begin, uint64_t bytes) {
  auto* const touched = static_cast<Byte*>(std::calloc(bytes + 1, sizeof(Byte)));
  if (touched == nullptr) std::abort();
  return {begin, bytes, std::unique_ptr<Byte[], Free>(touched)};
}

Range* find(uint64_t address) {
  Launch& now = launch();
  if (address - now.shared.begin < now.shared.bytes) return &now.shared;
  auto at = now.memory.upper_bound(address);
  if (at == now.memory.begin()) return nullptr;
  --at;
  return address - at->second.begin < at->second.bytes ? &at->second : nullptr;
}

enum class Kind { Read, Write, Atomic };

const char* verb(Kind kind) {
  return kind == Kind::Read ? "reads" : kind == Kind::Write ? "writes" : "changes";
}

/// Whether nothing orders an access of this thread after `before`.
bool is_unordered(const Touch& before, unsigned thread, bool is_shared) {
  const Launch& now = launch();
  if (before.block < now.launch_base) return false;
  if (before.block != now.block) return !is_shared;  // blocks have no order
  if (before.thread == static_cast<int32_t>(thread)) return false;
  if (before.meeting != now.meeting) return false;
  const unsigned warp = thread / kWarp;
  const bool same_warp = before.thread >= 0 && static_cast<unsigned>(before.thread) / kWarp == warp;
  return !same_warp || before.warp_meeting == now.warp_meetings[warp];
}

void report(Kind kind, const char* before, const Touch& other, const Range& range, uint64_t address,
            bool is_shared) {
  const KilnHostBlock& block = *kiln_block();
  std::string where = is_shared ? "shared memory" : "memory";
  violate("race: thread " + std::to_string(current_thread()) + " of block " +
          std::to_string(block.index[0]) + " " + verb(kind) + " byte " +
          std::to_string(address - range.begin) + " of " + where + " of " +
          std::to_string(range.bytes) + " bytes, which " +
          (other.thread == kSeveral ? std::string("several threads")
                                    : "thread " + std::to_string(other.thread)) +
          (other.block == launch().block ? "" : " of another block") + " " + before +
          " with nothing between");
}

void check_byte(Byte& byte, Kind kind, const Touch& touch, const Range& range, uint64_t address,
                bool is_shared) {
  const Launch& now = launch();
  const auto thread = static_cast<unsigned>(touch.thread);
  const bool both_atomic = kind == Kind::Atomic && byte.is_atomic;
  if (!both_atomic && is_unordered(byte.write, thread, is_shared))
    report(kind, "writes", byte.write, range, address, is_shared);
  // What shared memory holds, this block has written.
  const bool is_written =
      is_shared ? byte.write.block == now.block : byte.is_written || range.is_written;
  if (kind == Kind::Read && is_written && byte.is_coming) {
    violate("late: thread " + std::to_string(current_thread()) + " of block " +
            std::to_string(kiln_block()->index[0]) + " reads byte " +
            std::to_string(address - range.begin) + " of shared memory, which a copy that thread " +
            std::to_string(byte.write.thread) + " has not awaited is to write");
  }
  if (kind == Kind::Read && !is_written) {
    violate("uninitialised: thread " + std::to_string(current_thread()) + " of block " +
            std::to_string(kiln_block()->index[0]) + " reads byte " +
            std::to_string(address - range.begin) + " of " +
            (is_shared ? "shared memory" : "memory") + " of " + std::to_string(range.bytes) +
            " bytes, which nobody has written");
  }
  if (kind == Kind::Read) {
    const bool joins = byte.read.block == now.block && byte.read.meeting == now.meeting &&
                       byte.read.thread != touch.thread;
    const bool other_block =
        byte.read.block >= now.launch_base && byte.read.block != now.block && !is_shared;
    byte.read = touch;
    if (joins || other_block) byte.read.thread = kSeveral;
    if (other_block) byte.read.block = now.launch_base;  // whoever writes it is another block
    return;
  }
  if (!both_atomic && is_unordered(byte.read, thread, is_shared))
    report(kind, "reads", byte.read, range, address, is_shared);
  byte.write = touch;
  byte.is_written = true;
  byte.is_coming = false;
  byte.is_atomic = kind == Kind::Atomic;
}

/// Part of the code, and not what lies behind the shared memory of a block.
bool is_constant(const void* pointer) {
  constexpr uint64_t kBehind = 4096;
  const Range& shared = launch().shared;
  if (reinterpret_cast<uint64_t>(pointer) - shared.begin < shared.bytes + kBehind) return false;
  Dl_info info;
  return ::dladdr(pointer, &info) != 0;
}

/// An access that is a violation does not happen, nor what would follow: it would be to memory of
/// this process, or by a value that nobody wrote.
void access(const void* pointer, uint64_t bytes, Kind kind) {
  Launch& now = launch();
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (address - now.stacks_begin < now.stacks_bytes) return;
  Range* const range = find(address);
  if (range == nullptr || bytes > range->begin + range->bytes - address) {
    if (range == nullptr && kind == Kind::Read && is_constant(pointer)) return;
    const std::string beside = range == nullptr ? std::string("no memory of the device")
                                                : "byte " + std::to_string(address - range->begin) +
                                                      " of " + std::to_string(range->bytes);
    violate("out of bounds: thread " + std::to_string(current_thread()) + " of block " +
            std::to_string(kiln_block()->index[0]) + " " + verb(kind) + " " +
            std::to_string(bytes) + " bytes at " + beside);
    end_thread();
  }
  const bool is_shared = range == &now.shared;
  const uint64_t first = address - range->begin;
  const unsigned thread = current_thread();
  const Touch touch = {static_cast<int32_t>(thread), now.block, now.meeting,
                       now.warp_meetings[thread / kWarp]};
  for (uint64_t at = first; at < first + bytes; ++at)
    check_byte(range->touched[at], kind, touch, *range, address, is_shared);
  if (!now.violation.empty()) end_thread();
}

}  // namespace

void add_memory(uint64_t begin, uint64_t bytes) { launch().memory[begin] = range_of(begin, bytes); }
void remove_memory(uint64_t begin) { launch().memory.erase(begin); }

void note_written(uint64_t begin, uint64_t bytes) {
  Range* const range = find(begin);
  if (range == nullptr || bytes == 0) return;
  const uint64_t first = begin - range->begin;
  if (first == 0 && bytes == range->bytes) {
    range->is_written = true;
    return;
  }
  for (uint64_t at = first; at < first + bytes; ++at)
    range->touched[at].is_written = true;
}

void begin_launch(const char* shared_begin, const char* shared_end) {
  Launch& now = launch();
  now.launch_base = ++now.block;
  const auto begin = reinterpret_cast<uint64_t>(shared_begin);
  const auto bytes = static_cast<uint64_t>(shared_end - shared_begin);
  if (now.shared.begin != begin || now.shared.bytes != bytes) now.shared = range_of(begin, bytes);
  now.violation.clear();
}

void begin_block(uint64_t number) {
  Launch& now = launch();
  if (number > 0) ++now.block;
  ++now.meeting;
  std::memset(reinterpret_cast<void*>(now.shared.begin), 0xff, now.shared.bytes);
}

void met_block() { ++launch().meeting; }
void met_warp(unsigned warp) { ++launch().warp_meetings[warp]; }

void begin_write(void* to, uint64_t bytes) {
  access(to, bytes, Kind::Write);
  Range& shared = launch().shared;
  const uint64_t first = reinterpret_cast<uint64_t>(to) - shared.begin;
  if (first >= shared.bytes) return violate("a copy in the background is not to shared memory");
  for (uint64_t at = first; at < first + bytes; ++at)
    shared.touched[at].is_coming = true;
  std::memset(to, 0xff, bytes);
}
void note_read(const void* from, uint64_t bytes) { access(from, bytes, Kind::Read); }
void note_write(const void* to, uint64_t bytes) { access(to, bytes, Kind::Write); }

void own_memory(const char* begin, size_t bytes) {
  launch().stacks_begin = reinterpret_cast<uint64_t>(begin);
  launch().stacks_bytes = bytes;
}

const std::string& violation() { return launch().violation; }
void violate(const std::string& what) {
  if (launch().violation.empty()) launch().violation = what;
}

}  // namespace kiln::host

// What the thread sanitizer has watched code call.
extern "C" {

void kiln_note_atomic(void* address, unsigned bytes, void*) {
  kiln::host::access(address, bytes, kiln::host::Kind::Atomic);
}

#define WATCH(bytes)                                                                           \
  void __tsan_read##bytes(void* p) { kiln::host::access(p, bytes, kiln::host::Kind::Read); }   \
  void __tsan_write##bytes(void* p) { kiln::host::access(p, bytes, kiln::host::Kind::Write); } \
  void __tsan_unaligned_read##bytes(void* p) { __tsan_read##bytes(p); }                        \
  void __tsan_unaligned_write##bytes(void* p) { __tsan_write##bytes(p); }
WATCH(1)
WATCH(2)
WATCH(4)
WATCH(8)
WATCH(16)
#undef WATCH

// What g++ calls.
// NOLINTBEGIN(bugprone-reserved-identifier)
void __tsan_read_range(void* p, unsigned long bytes) {
  kiln::host::access(p, bytes, kiln::host::Kind::Read);
}
void __tsan_write_range(void* p, unsigned long bytes) {
  kiln::host::access(p, bytes, kiln::host::Kind::Write);
}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
// NOLINTEND(bugprone-reserved-identifier)
}
