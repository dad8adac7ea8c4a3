// A call around its launches: sizes before the first, so that one that cannot be leaves nothing
// under way; after the last what a check has found. A check that fires also stops the launches of
// its kernel that come later, which has to be taken back before the next call.
#include "runtime/cuda/cuda_call.h"

#include "runtime/core/called.h"
#include "runtime/core/error.h"
#include "runtime/core/fired_check.h"

namespace kiln::cuda {
namespace {

const CudaKernel& kernel_of(const SequenceKernel& call) {
  return static_cast<const CudaKernel&>(*call.kernel);
}

std::vector<LaunchSize> sizes_of(const SequenceKernel& call, int variant,
                                 const DeviceProperties& device) {
  std::vector<LaunchSize> sizes;
  for (const Launch& launch : kernel_of(call).variant(variant).launches)
    sizes.push_back(launch_size(launch, call.bound->scalars, device));
  return sizes;
}

std::unique_ptr<Memory> workspace_of(DeviceWork& work, const SequenceKernel& call, int variant) {
  const SizeExpr& bytes = kernel_of(call).variant(variant).workspace_bytes;
  return std::make_unique<Memory>(work.pool, bytes.evaluate(call.bound->scalars));
}

}  // namespace

CudaCall::CudaCall(DeviceWork& work, const SequenceKernel& call, const Pinned& fault, size_t place)
    : work_(work),
      call_(call),
      called_(called(call.names)),
      started_(started(work, call)),
      sizes_(sizes_of(call, started_.variant, work.properties)),
      fault_(static_cast<KilnDeviceFault*>(fault.data())[place]),
      fault_of_device_(reinterpret_cast<KilnDeviceFault*>(fault.address()) + place) {}

/// Tiles where there is memory for the copies that they want; else what needs none of these.
CudaCall::Started CudaCall::started(DeviceWork& work, const SequenceKernel& call) {
  KILN_CHECK(call.bound != nullptr);
  const int variant = call.bound->variant;
  const std::optional<int> other = kernel_of(call).without_tiles(variant);
  try {
    return {variant, workspace_of(work, call, variant)};
  } catch (const Error& error) {
    if (!other || error.reason() != "DEVICE_MEMORY") throw;
  }
  return {*other, workspace_of(work, call, *other)};
}

void CudaCall::clear_checks() const {
  fault_.check = -1;
  if (!kernel().stopped() || !kernel().may_be_stopped()) return;
  constexpr int32_t kNotStopped = 0;
  work_.in.copy_in(*kernel().stopped(), &kNotStopped, sizeof kNotStopped);
  kernel().may_be_stopped() = false;
}

PreparedCall CudaCall::prepare(std::span<void* const> tensors) const {
  kernel().may_be_stopped() = true;  // until it is known that no check fired
  return {&kernel(),
          called_,
          {started_.variant,
           {tensors.begin(), tensors.end()},
           call_.bound->scalars,
           started_.workspace->data(),
           fault_of_device_},
          sizes_};
}

void CudaCall::finish() const {
  kernel().may_be_stopped() = fault_.check >= 0;
  if (fault_.check >= 0) {
    fail_check({fault_.check, fault_.index, fault_.extent}, kernel().artifact(), call_.names);
  }
}

void refuse_cancelled(const std::atomic<int32_t>* cancelled) {
  if (cancelled != nullptr && cancelled->load() != 0) {
    fail(ErrorKind::Cancelled, "CANCELLED", "the call was cancelled before the kernel started");
  }
}

}  // namespace kiln::cuda
