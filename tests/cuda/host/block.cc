// Runs a block: each of its threads is a context with a stack of its own, which is left where the
// thread waits for others. A barrier is over once no thread that has not ended is short of it, an
// exchange within a warp once all lanes of its mask that have not ended have come with the same
// mask. Whoever waits for what cannot come is a deadlock.
//
// Threads take turns millions of times: swapcontext, which asks the kernel for the mask of signals,
// would take more than half of the time of kernels whose threads meet often.
#include "tests/cuda/host/block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <sys/mman.h>

#include "tests/cuda/host/checks.h"

// Keeps what a function may not change on the stack, and where that ends in `from`; goes on where
// `to` did so.
extern "C" [[gnu::visibility("hidden")]] void kiln_switch_stacks(void** from, void* to);
asm(R"(
  .pushsection .text
  .hidden kiln_switch_stacks
  .globl kiln_switch_stacks
  .type kiln_switch_stacks, @function
kiln_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size kiln_switch_stacks, . - kiln_switch_stacks
  .popsection
)");

namespace kiln::host {
namespace {

// The 512 KB that a thread of a GPU may have of its own, four times: what the host's compiler keeps
// of an unrolled kernel beside them is as much again. Pages that no thread touches cost nothing.
constexpr size_t kStackBytes = size_t{2} << 20;
constexpr size_t kGuardBytes = 4096;  // at the low end, where a stack that is too small would end
constexpr int kLaunchFailed = 719;

// Asked for at each access: without a call.
[[gnu::tls_model("initial-exec")]] thread_local Block* running = nullptr;

/// Those of the largest block yet, which later ones have again: a process has thousands of
/// launches.
char* stacks_of(size_t threads) {
  static char* stacks = nullptr;
  static size_t count = 0;
  if (threads <= count) return stacks;
  if (count > 0) ::munmap(stacks, kStackBytes * count);
  void* const made = ::mmap(nullptr, kStackBytes * threads, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) std::abort();
  stacks = static_cast<char*>(made);
  count = threads;
  for (size_t i = 0; i < threads; ++i)
    ::mprotect(stacks + i * kStackBytes, kGuardBytes, PROT_NONE);
  return stacks;
}

/// As if `start` had been left before its first instruction: six registers, where to go on, and
/// where nobody returns to.
void* left_at(void (*start)(), char* stack_end) {
  auto** const end = reinterpret_cast<void**>(stack_end);
  std::fill_n(end - 8, 8, nullptr);
  end[-2] = reinterpret_cast<void*>(start);
  return end - 8;
}

std::string triple(const unsigned (&values)[3]) {
  return "(" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + ", " +
         std::to_string(values[2]) + ")";
}

}  // namespace

Block::Block(const KilnHostLaunch& launch, void (*kernel)(void**), void** parameters)
    : kernel_(kernel), parameters_(parameters) {
  std::copy_n(launch.grid, 3, block_.grid);
  std::copy_n(launch.block, 3, block_.threads);
  const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  fibers_.resize(threads);
  values_.resize((threads + kWarp - 1) / kWarp);
  stacks_ = stacks_of(threads);
  own_memory(stacks_, kStackBytes * threads);
}

void Block::enter() {
  running->kernel_(running->parameters_);
  running->wait(Fiber::State::Ended);
}

void Block::wait(Fiber::State state) {
  Fiber& fiber = *current_;
  fiber.state = state;
  kiln_switch_stacks(&fiber.stack, scheduler_);
}

void Block::resume(Fiber& fiber) {
  current_ = &fiber;
  kiln_switch_stacks(&scheduler_, fiber.stack);
}

bool Block::run(unsigned x, unsigned y, unsigned z) {
  running = this;
  const unsigned place[3] = {x, y, z};
  std::copy_n(place, 3, block_.index);
  for (unsigned i = 0; i < fibers_.size(); ++i) {
    Fiber& fiber = fibers_[i];
    const unsigned row = i / block_.threads[0];
    fiber.thread = {{i % block_.threads[0], row % block_.threads[1], row / block_.threads[1]}};
    fiber.number = i;
    fiber.state = Fiber::State::Ready;
    fiber.groups = {{}};
    fiber.stack = left_at(&Block::enter, stacks_ + (i + 1) * kStackBytes);
  }
  do {
    for (Fiber& fiber : fibers_) {
      if (fiber.state == Fiber::State::Ready) resume(fiber);
      if (!violation().empty()) return false;
    }
  } while (release_warps() || release_barrier());
  const auto waits = std::ranges::find_if(
      fibers_, [](const Fiber& fiber) { return fiber.state != Fiber::State::Ended; });
  if (waits == fibers_.end()) return true;
  violate("deadlock: thread " + std::to_string(waits->number) + " of block " +
          triple(block_.index) + " waits for lanes of its warp that do not come");
  return false;
}

bool Block::release_warps() {
  bool any = false;
  for (size_t first = 0; first < fibers_.size(); first += kWarp) {
    const size_t lanes = std::min<size_t>(kWarp, fibers_.size() - first);
    for (size_t lane = 0; lane < lanes; ++lane) {
      const Fiber& fiber = fibers_[first + lane];
      if (fiber.state != Fiber::State::AtWarp) continue;
      // Lanes that the block does not have are in nobody's way.
      const unsigned everyone = lanes == kWarp ? ~0u : (1u << lanes) - 1;
      const unsigned mask = fiber.mask & everyone;
      bool all = true;
      for (size_t other = 0; other < lanes; ++other) {
        const Fiber& there = fibers_[first + other];
        if ((mask >> other & 1) == 0) continue;
        const bool has_come = there.state == Fiber::State::AtWarp && there.mask == fiber.mask;
        all = all && (has_come || there.state == Fiber::State::Ended);
      }
      if (!all) continue;
      met_warp(static_cast<unsigned>(first / kWarp));
      if (fibers_.size() <= kWarp && mask == everyone) met_block();
      for (size_t other = 0; other < lanes; ++other) {
        if ((mask >> other & 1) == 0) continue;
        // Of a lane that has ended nobody knows the value.
        const bool has_ended = fibers_[first + other].state == Fiber::State::Ended;
        values_[first / kWarp][other] = has_ended ? ~uint64_t{0} : fibers_[first + other].value;
        if (!has_ended) fibers_[first + other].state = Fiber::State::Ready;
      }
      any = true;
    }
  }
  return any;
}

bool Block::release_barrier() {
  const auto is_short = [](const Fiber& fiber) { return fiber.state == Fiber::State::AtWarp; };
  if (std::ranges::any_of(fibers_, is_short)) return false;
  bool any = false;
  for (Fiber& fiber : fibers_) {
    if (fiber.state != Fiber::State::AtBarrier) continue;
    fiber.state = Fiber::State::Ready;
    any = true;
  }
  if (any) met_block();
  return any;
}

unsigned current_thread() { return running->current().number; }
void end_thread() {
  running->wait(Fiber::State::Ended);
  std::abort();  // nobody resumes it
}

}  // namespace kiln::host

using kiln::host::Block;
using kiln::host::Fiber;

extern "C" {

const KilnHostThread* kiln_thread() { return &kiln::host::running->current().thread; }
const KilnHostBlock* kiln_block() { return &kiln::host::running->description(); }
int kiln_lane() {
  return static_cast<int>(kiln::host::running->current().number % kiln::host::kWarp);
}

void kiln_begin_copy(void* to, const void* from, unsigned bytes) {
  if (from != nullptr) kiln::host::note_read(from, bytes);
  kiln::host::begin_write(to, bytes);
  kiln::host::LateCopy copy{.to = to, .bytes = {}, .count = bytes};
  if (from != nullptr) std::memcpy(copy.bytes.data(), from, bytes);
  if (reinterpret_cast<uint64_t>(to) % bytes != 0 || reinterpret_cast<uint64_t>(from) % bytes != 0)
    kiln::host::violate("a copy in the background is not aligned to what it moves");
  kiln::host::running->current().groups.back().push_back(copy);
}

void kiln_end_copies() { kiln::host::running->current().groups.emplace_back(); }

void kiln_await_copies(unsigned groups) {
  auto& all = kiln::host::running->current().groups;
  while (all.size() > groups + 1) {
    for (const kiln::host::LateCopy& copy : all.front()) {
      kiln::host::note_write(copy.to, copy.count);
      std::memcpy(copy.to, copy.bytes.data(), copy.count);
    }
    all.erase(all.begin());
  }
}

void kiln_meet_block() { kiln::host::running->wait(Fiber::State::AtBarrier); }

const uint64_t* kiln_meet_warp(unsigned mask, uint64_t value) {
  Block& block = *kiln::host::running;
  Fiber& fiber = block.current();
  fiber.mask = mask;
  fiber.value = value;
  block.wait(Fiber::State::AtWarp);
  return block.values_of_warp();
}

int kiln_run_grid(const KilnHostLaunch& launch, void (*kernel)(void**), void** parameters,
                  char* shared_begin, char* shared_end) {
  kiln::host::begin_launch(shared_begin, shared_end);
  Block block(launch, kernel, parameters);
  uint64_t number = 0;
  for (unsigned z = 0; z < launch.grid[2]; ++z) {
    for (unsigned y = 0; y < launch.grid[1]; ++y) {
      for (unsigned x = 0; x < launch.grid[0]; ++x) {
        kiln::host::begin_block(number++);
        if (!block.run(x, y, z)) return kiln::host::kLaunchFailed;
      }
    }
  }
  return 0;
}
}
