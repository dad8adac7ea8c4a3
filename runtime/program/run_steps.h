#pragma once

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/device.h"

namespace kiln {

/// Memory that kernels of a step read and write.
struct StepSlot {
  void* data = nullptr;  // in the memory of the device
  int64_t bytes = 0;     // of a data set: of the rows of one step
  bool is_data_set = false;
};

/// One kernel of a step.
struct StepKernel {
  std::shared_ptr<const LoadedKernel> kernel;
  const KernelNames* names = nullptr;
  BoundCall bound;
  std::vector<uint32_t> slots;  // one a parameter
};

/// A number that a step leaves in a slot.
struct StepNumber {
  uint32_t slot = 0;
  DType type = DType::Float32;
  std::string name;
};

/// All that a step of a program does.
struct Step {
  std::string program;  // what the user calls it
  std::vector<StepSlot> slots;
  std::vector<StepKernel> kernels;
  /// At the end of a step these pairs change places: a parameter, and what it becomes.
  std::vector<std::pair<uint32_t, uint32_t>> exchanges;
  std::vector<StepNumber> reports;
  std::optional<StepNumber> until;    // ends the steps when it is not 0
  std::optional<uint32_t> step_slot;  // int64: the number of the step
  uint64_t batches = 0;  // steps in which the data sets are passed once; 0: no data sets
};

struct StepLimits {
  uint64_t begin = 0;  // the first of these steps, of all of the run
  uint64_t end = 1;
  uint64_t number_of_first = 0;  // of the run's first step, for step_slot
  bool stop_on_nan = false;
  bool at_pass = false;  // return at the end of a pass over the data sets
  double seconds = 0;    // return at the end of a step after so long
};

struct StepsDone {
  uint64_t steps = 0;
  bool ended = false;           // `until` holds
  std::vector<double> reports;  // of each step, one after the other
  double seconds = 0;           // from the first kernel to the last
};

/// Runs steps, each from its first kernel to its last, then exchanges; at least one, of which no
/// more than those of the limits. When it returns or throws, the memory that was a parameter's
/// holds what the last whole step left. Throws InvalidArgument PROGRAM_NAN, and what a kernel
/// throws: Cancelled, a check that fires.
StepsDone run_steps(Device& device, const Step& step, const StepLimits& limits,
                    const std::atomic<int32_t>& cancelled);

}  // namespace kiln
