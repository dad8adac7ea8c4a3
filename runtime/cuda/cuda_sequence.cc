// The kernels of a sequence as one graph. From step to step a parameter and what it becomes change
// places, so that a few sets of values take turns: each has a graph of its own.
//
//   step 1  W at a, W' at b    launched
//   step 2  W at b, W' at a    launched
//   step 3  as step 1          recorded, and started as a graph
#include "runtime/cuda/cuda_sequence.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::cuda {
namespace {

/// Sets of values that may take turns, with their graphs. Programs have two: every parameter
/// changes places at once.
constexpr size_t kMostRecorded = 4;

}  // namespace

CudaSequence::Parts::Parts(DeviceWork& work, const std::vector<SequenceKernel>& kernels)
    : faults(work.api, std::max<size_t>(kernels.size(), 1) * sizeof(KilnDeviceFault)) {
  for (const SequenceKernel& kernel : kernels)
    calls.emplace_back(work, kernel, faults, calls.size());
}

CudaSequence::CudaSequence(DeviceWork& work, const std::vector<SequenceKernel>& kernels)
    : work_(work), parts_(std::in_place, work, kernels) {}

CudaSequence::~CudaSequence() {
  // Of the thread that lets it go, which need not be one that used the device.
  try {
    work_.context.use();
  } catch (const Error&) {
    return;  // a broken context, which takes nothing back
  }
  parts_.reset();
}

void CudaSequence::run(std::span<const std::vector<void*>> tensors,
                       std::span<const DeviceCopy> copies, const std::atomic<int32_t>* cancelled) {
  refuse_cancelled(cancelled);
  const std::lock_guard lock(work_.queue.one_at_a_time());
  work_.context.use();
  for (const CudaCall& call : parts_->calls)
    call.clear_checks();
  std::vector<PreparedCall> prepared;
  for (size_t k = 0; k < parts_->calls.size(); ++k)
    prepared.push_back(parts_->calls[k].prepare(tensors[k]));
  work_.queue.run(prepared, copies, recorded_for(prepared));
  for (const CudaCall& call : parts_->calls)
    call.finish();
}

Launches& CudaSequence::recorded_for(std::span<const PreparedCall> calls) {
  std::deque<Launches>& recorded = parts_->recorded;
  const auto found = std::ranges::find_if(recorded, [&](const Launches& each) {
    return std::ranges::equal(each.values, calls, {}, {}, &PreparedCall::values);
  });
  if (found != recorded.end()) {
    std::rotate(recorded.begin(), found, found + 1);
  } else {
    recorded.emplace_front();
    if (recorded.size() > kMostRecorded) recorded.pop_back();
  }
  return recorded.front();
}

}  // namespace kiln::cuda
