#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/devices.h"
#include "server/engine/specialiser.h"
#include "server/tensors/sessions.h"

namespace kiln::server {

/// An output of a call.
struct RunOutput {
  uint32_t parameter = 0;
  DType type = DType::Float32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  std::shared_ptr<Slice> slice;
  std::string tensor;  // its id when it was kept
};

struct RunResult {
  std::shared_ptr<const KernelEntry> kernel;
  std::vector<RunOutput> outputs;
  v1::Timings timings;
  std::vector<double> measured;
  std::string device;  // where kept outputs lie; empty: the first of the kernel's target
};

/// The reply for a result; copies the outputs that were not kept.
void write_reply(const RunResult& result, v1::RunResponse& reply);
/// The same with the outputs named, for who has only the id of a job.
void write_job_reply(const RunResult& result, v1::RunResponse& reply);

using RunDone = std::function<void(Outcome<RunResult>)>;

/// Calls of kernels: checks and places the arguments, queues the call at its device, collects
/// results.
class RunService {
 public:
  RunService(KernelTable& kernels, TensorStore& tensors, Sessions& sessions,
             std::shared_ptr<ArenaPool> arenas, Devices& devices, Specialiser& specialiser,
             Counters& counters)
      : kernels_(kernels),
        tensors_(tensors),
        sessions_(sessions),
        arenas_(std::move(arenas)),
        devices_(devices),
        specialiser_(specialiser),
        counters_(counters) {}

  /// `done` is told once, unless this throws. Nothing in `request` is trusted.
  void run(const v1::RunRequest& request, std::shared_ptr<Call> call, RunDone done);
  /// The call that a request is, its arguments checked and in place, for who measures it. Without
  /// `call` and `done`.
  DeviceCall place_call(const v1::RunRequest& request, const Call& call);

 private:
  struct Prepared;
  std::shared_ptr<Prepared> prepare(const v1::RunRequest& request, const Call& call);
  /// What is known of the arguments before their shapes are checked.
  std::vector<ArgumentSlot> slots_of(Prepared& prepared, const v1::RunRequest& request);
  std::shared_ptr<const Tensor> given_tensor(const Prepared& prepared, size_t i,
                                             const std::string& tensor);
  void place(Prepared& prepared, const v1::RunRequest& request);
  void place_output(Prepared& prepared, uint32_t parameter, const v1::Argument& argument);
  std::shared_ptr<Slice> place_given_output(Prepared& prepared, const Tensor& tensor);
  std::shared_ptr<Slice> allocate_output(const Prepared& prepared, int64_t bytes);
  void submit(const std::shared_ptr<Prepared>& prepared, DeviceQueue& device);
  RunResult collect(Prepared& prepared, const DeviceResult& device);
  void note_spans(const Prepared& prepared, const DeviceResult& result);

  KernelTable& kernels_;
  TensorStore& tensors_;
  Sessions& sessions_;
  const std::shared_ptr<ArenaPool> arenas_;
  Devices& devices_;
  Specialiser& specialiser_;
  Counters& counters_;
};

}  // namespace kiln::server
