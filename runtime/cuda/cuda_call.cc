// A call around its launches: sizes before the first, so that one that cannot be leaves nothing
// under way; after the last what a check has found. A check that fires also stops the launches of
// its kernel that come later, which has to be taken back before the next call.
#include "runtime/cuda/cuda_call.h"

#include "runtime/core/called.h"
#include "runtime/core/error.h"
#include "runtime/core/fired_check.h"

namespace kiln::cuda {
namespace {

const Variant& variant_of(const SequenceKernel& call) {
  KILN_CHECK(call.bound != nullptr);
  return static_cast<const CudaKernel&>(*call.kernel).variant(call.bound->variant);
}

std::vector<LaunchSize> sizes_of(const SequenceKernel& call, const DeviceProperties& device) {
  std::vector<LaunchSize> sizes;
  for (const Launch& launch : variant_of(call).launches)
    sizes.push_back(launch_size(launch, call.bound->scalars, device));
  return sizes;
}

}  // namespace

CudaCall::CudaCall(DeviceWork& work, const SequenceKernel& call, const Pinned& fault, size_t place)
    : work_(work),
      call_(call),
      called_(called(call.names)),
      sizes_(sizes_of(call, work.properties)),
      workspace_(work.pool, variant_of(call).workspace_bytes.evaluate(call.bound->scalars)),
      fault_(static_cast<KilnDeviceFault*>(fault.data())[place]),
      fault_of_device_(reinterpret_cast<KilnDeviceFault*>(fault.address()) + place) {}

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
          {call_.bound->variant,
           {tensors.begin(), tensors.end()},
           call_.bound->scalars,
           workspace_.data(),
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
