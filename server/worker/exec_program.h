#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "kiln/internal/worker.pb.h"
#include "runtime/device.h"
#include "server/worker/resident_tensors.h"

namespace kiln::server {

/// What steps of a program need of the process that runs them.
struct ProgramHost {
  Device& device;
  const std::atomic<int32_t>& cancelled;
  /// A kernel by its number, and what its caller calls things. Throws what its load threw.
  std::function<std::pair<std::shared_ptr<const LoadedKernel>, const KernelNames*>(uint64_t)>
      kernel;
  /// The address of so many bytes, checked.
  std::function<uint8_t*(const internal::Place&, int64_t bytes)> pointer;
  /// Of a device with memory of its own: what it keeps under a number.
  std::function<ResidentTensors::Found(uint64_t resident, int64_t bytes)> resident;
};

/// Runs the steps that the message asks for.
internal::StepsDone exec_program(const ProgramHost& host, const internal::ExecProgram& message,
                                 double& seconds);

}  // namespace kiln::server
