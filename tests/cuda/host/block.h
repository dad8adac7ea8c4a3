#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/cuda/host/threads.h"

namespace kiln::host {

constexpr unsigned kWarp = 32;

/// What a thread copies in the background, and has not awaited.
struct LateCopy {
  void* to = nullptr;
  std::array<char, 16> bytes{};
  unsigned count = 0;
};

/// A thread of a block, which runs until it meets others or ends.
struct Fiber {
  enum class State { Ready, AtBarrier, AtWarp, Ended };
  KilnHostThread thread{};
  unsigned number = 0;  // within its block
  State state = State::Ready;
  unsigned mask = 0;                                 // of lanes it waits for
  uint64_t value = 0;                                // what it brings
  std::vector<std::vector<LateCopy>> groups = {{}};  // the last one is open
  void* stack = nullptr;                             // where it was left
};

/// The block that runs; blocks do so one after another.
class Block {
 public:
  Block(const KilnHostLaunch& launch, void (*kernel)(void**), void** parameters);

  /// Runs its threads to the end. False after a violation, which violations() has.
  bool run(unsigned x, unsigned y, unsigned z);

  const KilnHostBlock& description() const { return block_; }
  Fiber& current() { return *current_; }
  /// Lets others run until they have met.
  void wait(Fiber::State state);
  const uint64_t* values_of_warp() const { return values_[current_->number / kWarp].data(); }

 private:
  static void enter();
  void resume(Fiber& fiber);
  bool release_warps();
  bool release_barrier();

  void (*const kernel_)(void**);
  void** const parameters_;
  KilnHostBlock block_{};
  std::vector<Fiber> fibers_;
  std::vector<std::array<uint64_t, kWarp>> values_;  // that the lanes of each warp brought last
  char* stacks_ = nullptr;
  void* scheduler_ = nullptr;
  Fiber* current_ = nullptr;
};

/// The number, within its block, of the thread that runs.
unsigned current_thread();
/// Ends it where it stands.
[[noreturn]] void end_thread();

}  // namespace kiln::host
