#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "server/engine/compiler_pool.h"
#include "server/engine/device_queue.h"
#include "server/engine/kernel_table.h"

namespace kiln::server {

/// A tiny kernel that is compiled once and run now and then, so that a worker which answers but
/// computes nothing, or nonsense, is noticed. It is nobody's: it stands in no cache, and among no
/// calls.
class Canary {
 public:
  struct Parts {
    CompilerPool& compilers;
    DeviceQueue& cpu;
    ArenaPool& arenas;
    KernelTable& kernels;
  };
  /// Runs once a `period`; 0: never. Has `limit` for it.
  Canary(const Parts& parts, Clock::duration period, Clock::duration limit)
      : parts_(parts), period_(period), limit_(limit) {}

  void tick(Clock::time_point now);
  /// Why the service cannot be relied on; empty when the last run was right.
  std::string problem() const;

 private:
  struct Run;
  void compile();
  void run(const std::shared_ptr<const KernelEntry>& kernel);
  void end(const Run& run, const Outcome<DeviceResult>& outcome);
  void conclude(std::string problem);

  const Parts parts_;
  const Clock::duration period_;
  const Clock::duration limit_;
  mutable std::mutex mutex_;
  bool busy_ = false;  // it compiles or runs
  Clock::time_point next_{};
  std::shared_ptr<const KernelEntry> kernel_;
  std::string problem_ = "the canary kernel has not run yet";
};

}  // namespace kiln::server
