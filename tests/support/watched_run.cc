// Runs code that a sanitizer's pass went over (compiler/codegen), with the accesses judged here: in
// which region, by which iteration. Iterations run one after the other, and two that touch one byte
// of which one writes it are a race, whichever threads would have run them (happens-before without
// locks).
//
//   parallel i: A[i] = ..; .. = A[i + 1]  ->  iteration 1 writes what 0 has read
#include "tests/support/watched_run.h"

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include <fmt/format.h>
#include <pthread.h>

#include "runtime/core/error.h"
#include "runtime/core/fired_check.h"
#include "runtime/cpu/object_loader.h"
#include "runtime/cpu/workspace.h"
#include "tests/support/run_on_cpu.h"

namespace kiln::testing {
namespace {

constexpr int kThreads = 2;
constexpr int32_t kCheckFired = 1;
constexpr int64_t kNobody = -1;
constexpr int64_t kSeveral = -2;
/// Bytes on both sides of an argument, so that what lies a little outside of it is nearest to it.
constexpr size_t kMargin = 256;

/// Who touched a byte in the parallel loop under way.
struct Touched {
  int64_t loop = 0;
  int64_t writer = kNobody;
  int64_t reader = kNobody;
};

/// Memory that the call was given.
struct Region {
  std::string name;
  uintptr_t begin = 0;
  size_t bytes = 0;
  bool is_written = false;  // or only read
  int thread = -1;          // whose it is; -1: everybody's
  std::vector<Touched> touched = {};
};

class Watch {
 public:
  Watch() {
    pthread_attr_t attributes;
    void* stack = nullptr;
    size_t bytes = 0;
    KILN_CHECK(::pthread_getattr_np(::pthread_self(), &attributes) == 0);
    KILN_CHECK(::pthread_attr_getstack(&attributes, &stack, &bytes) == 0);
    ::pthread_attr_destroy(&attributes);
    stack_begin_ = reinterpret_cast<uintptr_t>(stack);
    stack_end_ = stack_begin_ + bytes;
  }

  void add(std::string name, const void* begin, size_t bytes, bool is_written, int thread = -1) {
    regions_.push_back(
        {std::move(name), reinterpret_cast<uintptr_t>(begin), bytes, is_written, thread});
    regions_.back().touched.resize(is_written && thread < 0 ? bytes : 0);
  }

  void access(uintptr_t address, size_t bytes, bool writes) {
    ++accesses;
    if (address >= stack_begin_ && address < stack_end_) return;
    for (Region& region : regions_) {
      if (address < region.begin || address + bytes > region.begin + region.bytes) continue;
      if (writes && !region.is_written) stop(fmt::format("writes to {}", region.name));
      if (region.thread >= 0 && region.thread != thread_)
        stop(fmt::format("thread {} touches {}", thread_, region.name));
      if (iteration_ != kNobody && !region.touched.empty())
        meet(region, address - region.begin, bytes, writes);
      return;
    }
    stop(outside(address, bytes, writes));
  }

  int32_t run_parallel(KilnFrame* frame, KilnParallelBody body, void* captures, int64_t count) {
    // A loop inside an iteration is a part of that.
    const bool is_outermost = iteration_ == kNobody;
    if (is_outermost) ++loop_;
    int32_t result = 0;
    for (int64_t i = 0; i < count && result == 0; ++i) {
      ++parallel_iterations;
      if (is_outermost) iteration_ = i;
      if (is_outermost) thread_ = static_cast<int>(i % kThreads);
      result = body(frame, captures, i, i + 1, thread_);
    }
    if (is_outermost) {
      iteration_ = kNobody;
      thread_ = 0;
    }
    return result;
  }

  std::jmp_buf leave;
  std::string mistake;
  int64_t accesses = 0;
  int64_t parallel_iterations = 0;

 private:
  /// Compiled code has no clean-up that would have to run.
  [[noreturn]] void stop(std::string what) {
    mistake = std::move(what);
    std::longjmp(leave, 1);
  }

  void meet(Region& region, size_t at, size_t bytes, bool writes) {
    for (size_t byte = at; byte < at + bytes; ++byte) {
      Touched& touched = region.touched[byte];
      if (touched.loop != loop_) touched = {loop_, kNobody, kNobody};
      const auto is_other = [&](int64_t who) { return who != kNobody && who != iteration_; };
      if (is_other(touched.writer) || (writes && is_other(touched.reader))) {
        stop(fmt::format("iteration {} of a parallel loop {} byte {} of {}, which another {}",
                         iteration_, writes ? "writes" : "reads", byte, region.name,
                         is_other(touched.writer) ? "writes" : "reads"));
      }
      if (writes) touched.writer = iteration_;
      if (!writes) touched.reader = is_other(touched.reader) ? kSeveral : iteration_;
    }
  }

  std::string outside(uintptr_t address, size_t bytes, bool writes) const {
    const auto distance = [&](const Region& region) {
      return address < region.begin ? region.begin - address
                                    : address + bytes - region.begin - region.bytes;
    };
    const Region& nearest = *std::min_element(
        regions_.begin(), regions_.end(),
        [&](const Region& a, const Region& b) { return distance(a) < distance(b); });
    return fmt::format("{} {} bytes, {} bytes {} of {}, which has {}", writes ? "writes" : "reads",
                       bytes, distance(nearest),
                       address < nearest.begin ? "before the start" : "past the end", nearest.name,
                       nearest.bytes);
  }

  std::vector<Region> regions_;
  uintptr_t stack_begin_ = 0;
  uintptr_t stack_end_ = 0;
  int64_t loop_ = 0;
  int64_t iteration_ = kNobody;
  int thread_ = 0;
};

/// What the calls that the passes put into code report to.
thread_local Watch* current = nullptr;

template <size_t kBytes>
void reads(uintptr_t address) {
  current->access(address, kBytes, false);
}
template <size_t kBytes>
void writes(uintptr_t address) {
  current->access(address, kBytes, true);
}
void reads_so_many(uintptr_t address, uintptr_t bytes) { current->access(address, bytes, false); }
void writes_so_many(uintptr_t address, uintptr_t bytes) { current->access(address, bytes, true); }
int32_t reads_atomically(const int32_t* address, int) {
  current->access(reinterpret_cast<uintptr_t>(address), sizeof *address, false);
  return __atomic_load_n(address, __ATOMIC_RELAXED);
}
void ignores(void*) {}

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

// clang-format off
#define SIZED(bytes)                                             \
  {"__asan_load" #bytes "_noabort", address_of(reads<bytes>)},   \
  {"__asan_store" #bytes "_noabort", address_of(writes<bytes>)}, \
  {"__tsan_read" #bytes, address_of(reads<bytes>)},              \
  {"__tsan_write" #bytes, address_of(writes<bytes>)},            \
  {"__tsan_unaligned_read" #bytes, address_of(reads<bytes>)},    \
  {"__tsan_unaligned_write" #bytes, address_of(writes<bytes>)}
// clang-format on

const ProcessSymbol kCalls[] = {
    SIZED(1),
    SIZED(2),
    SIZED(4),
    SIZED(8),
    SIZED(16),
    {"__asan_loadN_noabort", address_of(reads_so_many)},
    {"__asan_storeN_noabort", address_of(writes_so_many)},
    {"__asan_handle_no_return", address_of(ignores)},
    {"__tsan_atomic32_load", address_of(reads_atomically)},
    {"__tsan_func_entry", address_of(ignores)},
    {"__tsan_func_exit", address_of(ignores)},
};

#undef SIZED

ObjectLoader& loader() {
  static const std::unique_ptr<ObjectLoader> only = make_object_loader(kCalls);
  return *only;
}

int32_t parallel_for(KilnFrame* frame, KilnParallelBody body, void* captures, int64_t count) {
  return static_cast<Watch*>(frame->pool)->run_parallel(frame, body, captures, count);
}

size_t rounded(int64_t bytes) { return static_cast<size_t>((bytes + 63) / 64 * 64); }

/// False when the watch ended it.
bool runs(KilnEntry entry, KilnFrame& frame, Watch& watch, int32_t& result) {
  current = &watch;
  if (setjmp(watch.leave) != 0) return false;
  result = entry(&frame);
  return true;
}

}  // namespace

WatchedRun run_watched(const Artifact& artifact, const std::vector<HostTensor>& tensors,
                       const std::map<std::string, int64_t>& sizes) {
  const KernelNames names = plain_names(artifact);
  std::vector<ArgumentSlot> slots;
  for (size_t i = 0; i < tensors.size(); ++i)
    slots.push_back({!artifact.parameters[i].is_output, {tensors[i].type, tensors[i].shape, {}}});
  const BoundCall bound = bind_arguments(artifact, names, slots, sizes);
  const Variant& variant = artifact.variants[0];
  const auto object = loader().load(artifact.code, {variant.launches[0].entry});

  Watch watch;
  std::vector<HostTensor> memory = tensors;
  std::vector<AlignedMemory> blocks;
  std::vector<void*> pointers;
  for (size_t i = 0; i < memory.size(); ++i) {
    const bool is_output = artifact.parameters[i].is_output;
    if (is_output) memory[i] = zeros(artifact.parameters[i].type, bound.shapes[i]);
    const size_t bytes = memory[i].bytes.size();
    blocks.push_back(allocate_aligned(static_cast<int64_t>(bytes + 2 * kMargin)));
    pointers.push_back(blocks[i].get() + kMargin);
    std::ranges::copy(memory[i].bytes, static_cast<std::byte*>(pointers[i]));
    watch.add(fmt::format("argument {}", i), pointers[i], bytes, is_output);
  }
  const auto shared = rounded(variant.workspace_bytes.evaluate(bound.scalars));
  const auto own = rounded(variant.workspace_bytes_per_thread.evaluate(bound.scalars));
  const AlignedMemory workspace = allocate_aligned(static_cast<int64_t>(shared + kThreads * own));
  auto* const begin = static_cast<uint8_t*>(workspace.get());
  watch.add("the workspace", begin, shared, true);
  for (int thread = 0; thread < kThreads; ++thread)
    watch.add(fmt::format("the workspace of thread {}", thread), begin + shared + thread * own, own,
              true, thread);
  static constexpr int32_t kNever = 0;
  watch.add("the sizes", bound.scalars.data(), bound.scalars.size() * sizeof(int64_t), false);
  watch.add("the arguments", pointers.data(), pointers.size() * sizeof(void*), false);
  watch.add("the flag of cancelling", &kNever, sizeof kNever, false);

  KilnFrame frame{};
  frame.tensors = pointers.data();
  frame.scalars = bound.scalars.data();
  frame.workspace = begin;
  frame.thread_workspace = begin + shared;
  frame.thread_workspace_bytes = static_cast<int64_t>(own);
  frame.parallel_for = parallel_for;
  frame.pool = &watch;
  frame.cancelled = &kNever;
  int32_t status = 0;
  const bool ended = runs(object->entries()[0], frame, watch, status);

  WatchedRun result;
  result.mistake = watch.mistake;
  result.accesses = watch.accesses;
  result.parallel_iterations = watch.parallel_iterations;
  if (ended && status == kCheckFired)
    fail_check({frame.fired_check, frame.fired_index, frame.fired_extent}, artifact, &names);
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!artifact.parameters[i].is_output) continue;
    std::copy_n(static_cast<const std::byte*>(pointers[i]), memory[i].bytes.size(),
                memory[i].bytes.begin());
    result.outputs.push_back(std::move(memory[i]));
  }
  return result;
}

}  // namespace kiln::testing
