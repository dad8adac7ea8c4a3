// What holds of devices whose memory the host can address, and others override: a copy is a copy
// (of nothing it may be given no address, which memcpy does not allow), and kernels of a sequence
// run one by one.
#include "runtime/device.h"

#include <cstring>
#include <utility>

namespace kiln {
namespace {

class OneByOne : public KernelSequence {
 public:
  OneByOne(Device& device, std::vector<SequenceKernel> kernels)
      : device_(device), kernels_(std::move(kernels)) {}

  void run(std::span<const std::vector<void*>> tensors, std::span<const DeviceCopy> copies,
           const std::atomic<int32_t>* cancelled) override {
    for (const DeviceCopy& copy : copies)
      device_.copy_within(copy.to, copy.from, copy.bytes);
    for (size_t k = 0; k < kernels_.size(); ++k) {
      const SequenceKernel& each = kernels_[k];
      device_.run(*each.kernel, {.tensors = tensors[k],
                                 .bound = each.bound,
                                 .names = each.names,
                                 .cancelled = cancelled});
    }
  }

 private:
  Device& device_;
  const std::vector<SequenceKernel> kernels_;
};

}  // namespace

std::unique_ptr<KernelSequence> Device::sequence(std::vector<SequenceKernel> kernels) {
  return std::make_unique<OneByOne>(*this, std::move(kernels));
}

void Device::copy_in(void* device, const void* host, int64_t bytes) {
  if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
}

void Device::copy_out(void* host, const void* device, int64_t bytes) {
  if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
}

void Device::copy_within(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace kiln
