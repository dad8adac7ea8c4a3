#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kiln/internal/worker.pb.h"
#include "server/call.h"
#include "server/engine/kernel_table.h"
#include "server/errors.h"
#include "server/tensors/arena_pool.h"

namespace kiln::server {

/// What a device found out about a call that ran to the end.
struct DeviceResult {
  double queue_seconds = 0;
  double upload_seconds = 0;  // to a device with memory of its own
  double kernel_seconds = 0;
  double download_seconds = 0;
  std::vector<double> measured;
  internal::StepsDone steps;  // of a program
  Clock::time_point submitted;
  Clock::time_point started;
  internal::WorkTime time;  // of its worker
};

/// Some steps of a program: its kernels, and what the worker is told but for the number of the
/// call.
struct ProgramSteps {
  std::vector<std::shared_ptr<const KernelEntry>> kernels;
  internal::ExecProgram message;
  /// By slot: what was given with the run, which a device with memory of its own keeps there; null
  /// where the slot is memory of the run.
  std::vector<std::shared_ptr<Slice>> given;
};

/// One call of a kernel, or some steps of a program, its arguments checked and in place.
struct DeviceCall {
  std::shared_ptr<const KernelEntry> kernel;    // of a program: its name and key
  std::shared_ptr<const ProgramSteps> program;  // null: a kernel
  BoundCall bound;
  std::vector<std::shared_ptr<Slice>> tensors;  // one a parameter; of a program: all it touches
  /// One a parameter: a tensor of the client's, which a device with memory of its own keeps there.
  /// Others are copied in before the call and out after it.
  std::vector<bool> stays;  // empty: none
  uint32_t repeat = 1;
  uint32_t measurements = 1;
  /// From when it begins; the deadline of the call counts the wait before, too.
  Clock::duration limit = Clock::duration::max();
  /// Whether it may run once more when its worker is lost: it is idempotent, as no output lies on
  /// an input.
  bool may_retry = true;
  bool overwrites_input = false;
  std::shared_ptr<Call> call;
  /// Told once, from a thread that must not be kept.
  std::function<void(Outcome<DeviceResult>)> done;

  const Principal& principal() const { return call->caller().principal; }
  bool is_measured() const { return repeat > 1 || measurements > 1; }
};

/// A call in the queue of its device, or at work.
struct QueuedCall {
  uint64_t number = 0;
  DeviceCall work;
  Clock::time_point submitted;
  Clock::time_point started;
  Clock::time_point told_to_end{};  // none: not told
  bool past_deadline = false;
  bool retried = false;
  bool begun = false;      // its worker was sent all of it
  bool was_ahead = false;  // it was sent behind another one
  bool was_lost = false;   // a worker ended that had been sent it
  size_t slot = 0;         // of the status page of its worker
};

}  // namespace kiln::server
