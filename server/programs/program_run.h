#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/v1/program.pb.h"
#include "server/engine/device_queue.h"
#include "server/programs/kept_values.h"
#include "server/tensors/sessions.h"

namespace kiln::server {

/// Who follows a run. `event` says whether anybody still listens; `end` is told once.
struct ProgramWatcher {
  std::function<bool(const v1::ProgramEvent&)> event;
  std::function<void(const Error* error)> end;
};

/// What is given with a run, in place and checked as far as that needs no plan.
struct GivenValues {
  program::GivenTypes types;  // of one step
  ValueSlices slices;
  uint64_t batches = 0;
  std::vector<std::shared_ptr<const Tensor>> tensors;  // those that clients know
};

/// Of which parts of the service runs are made.
struct RunParts {
  TensorStore& tensors;
  Sessions& sessions;
  std::shared_ptr<ArenaPool> arenas;
  DeviceQueue& device;
  KeptValues& kept;
  Counters& counters;
};

/// One run of a program: asks the device for a few steps at a time until all are done, and tells
/// its watcher how it goes. Keeps itself alive.
class ProgramRun : public std::enable_shared_from_this<ProgramRun> {
 public:
  ProgramRun(RunParts parts, std::shared_ptr<const ProgramEntry> entry,
             std::shared_ptr<const CompiledPlan> plan, const v1::RunProgramRequest& request,
             GivenValues given, std::shared_ptr<Call> call, ProgramWatcher watcher);

  /// Throws what the queue of the device throws, and ResourceExhausted TENSOR_MEMORY.
  void start();

 private:
  /// What is computed once, then the steps.
  void compute_constants();
  void take_constants(Outcome<DeviceResult> outcome, KeptValues::Sources sources);
  void start_steps();
  void add_slots();
  /// Where a value lies; null where it has no memory.
  std::shared_ptr<Slice> slice_of(program::ValueId value) const;
  void add_kernels();
  DeviceCall call_of(std::shared_ptr<const ProgramSteps> steps) const;
  void fail_run();
  void add_ends();
  void submit();
  void take(Outcome<DeviceResult> outcome);
  void take_steps(const DeviceResult& result);
  void tell_progress();
  void finish();
  v1::Result output(size_t position, int64_t& inline_bytes);
  uint64_t steps_wanted() const;
  [[noreturn]] void fail_endless() const;

  const RunParts parts_;
  const std::shared_ptr<const ProgramEntry> entry_;
  const std::shared_ptr<const CompiledPlan> plan_;
  const v1::RunProgramRequest request_;
  const GivenValues given_;
  const std::shared_ptr<Call> call_;
  const ProgramWatcher watcher_;

  std::shared_ptr<const KernelEntry> name_;
  internal::ExecProgram message_;
  ValueSlices kept_;  // what constant kernels made
  std::map<program::ValueId, uint32_t> slots_;
  std::vector<std::shared_ptr<const KernelEntry>> kernels_;  // of a step
  std::vector<std::shared_ptr<Slice>> given_slots_;          // by slot; null: memory of the run
  std::shared_ptr<Slice> arena_;
  std::shared_ptr<Slice> number_;  // of the step
  std::vector<std::shared_ptr<Slice>> memory_;

  uint64_t done_ = 0;
  bool ended_ = false;
  double kernel_seconds_ = 0;
  double queue_seconds_ = 0;
  std::vector<std::vector<double>> series_;  // by report
  std::vector<double> sums_;                 // since the last event
  uint64_t since_ = 0;
  double since_seconds_ = 0;
  Clock::time_point told_ = Clock::now();
};

}  // namespace kiln::server
