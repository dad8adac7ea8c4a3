// Runs artifacts on a GPU through the driver's interface: one stream computes, one copies in and
// one out, so that tensors come and go while a kernel runs. What a check found lies in memory of
// the host, where the device writes it itself: a call copies nothing.
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/core/error.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/cuda/cuda_call.h"
#include "runtime/cuda/cuda_kernel.h"
#include "runtime/cuda/cuda_sequence.h"
#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/device_work.h"
#include "runtime/cuda/driver_objects.h"
#include "runtime/cuda/output_copies.h"
#include "runtime/device.h"

namespace kiln {
namespace {

using cuda::CudaKernel;
using cuda::DevicePointer;
using cuda::DriverApi;

DevicePointer address_of(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

class CudaBuffer : public DeviceBuffer {
 public:
  CudaBuffer(const cuda::Context& context, cuda::MemoryPool& pool, int64_t bytes)
      : context_(context), memory_(std::in_place, pool, bytes) {}
  ~CudaBuffer() override {
    // Of the thread that lets it go, which need not be one that used the device.
    try {
      context_.use();
    } catch (const Error&) {
      return;  // a broken context, which takes nothing back
    }
    memory_.reset();
  }
  void* data() const override { return memory_->data(); }
  int64_t bytes() const override { return memory_->bytes(); }

 private:
  const cuda::Context& context_;
  std::optional<cuda::Memory> memory_;
};

class CudaDevice : public Device {
 public:
  CudaDevice(int index, int64_t memory_bytes)
      : index_(index),
        api_(cuda::driver_api()),
        properties_(cuda::properties_of(api_, index)),
        context_(api_, properties_.handle) {
    context_.use();
    work_.emplace(context_, api_, properties_, name(),
                  memory_bytes > 0 ? memory_bytes : properties_.memory_bytes);
    fault_.emplace(api_, sizeof(KilnDeviceFault));
  }
  ~CudaDevice() override {
    try {
      context_.use();
    } catch (const Error&) {
      // The destructors below ask the driver, which answers with the same error again.
    }
  }

  std::string name() const override { return fmt::format("cuda:{}", index_); }
  TargetKind target() const override { return TargetKind::Cuda; }
  std::string arch() const override { return cuda::arch_of(properties_.capability); }

  std::shared_ptr<LoadedKernel> load(std::shared_ptr<const Artifact> artifact) override {
    if (artifact->target != target()) {
      fail(ErrorKind::InvalidArgument, "ARTIFACT_TARGET",
           "the kernel was compiled for llvm, but {} runs kernels compiled for cuda", name());
    }
    context_.use();
    return std::make_shared<CudaKernel>(api_, properties_, name(), std::move(artifact));
  }

  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override {
    context_.use();
    return std::make_unique<CudaBuffer>(context_, work_->pool, bytes);
  }

  void copy_in(void* device, const void* host, int64_t bytes) override {
    context_.use();
    noting_launches([&] { work_->in.copy_in(address_of(device), host, bytes); });
  }

  void copy_out(void* host, const void* device, int64_t bytes) override {
    context_.use();
    noting_launches([&] { work_->out.copy_out(host, address_of(device), bytes); });
  }

  void copy_within(void* to, const void* from, int64_t bytes) override {
    context_.use();
    noting_launches([&] { work_->out.copy_within(address_of(to), address_of(from), bytes); });
  }

  double run(const LoadedKernel& kernel, const KernelCall& call) override;

  std::unique_ptr<KernelSequence> sequence(std::vector<SequenceKernel> kernels) override {
    context_.use();
    return std::make_unique<cuda::CudaSequence>(*work_, kernels);
  }

 private:
  template <typename Body>
  void noting_launches(Body&& body) const {
    work_->queue.noting_launches(std::forward<Body>(body));
  }

  const int index_;
  const DriverApi& api_;
  const cuda::DeviceProperties properties_;
  const cuda::Context context_;
  std::optional<cuda::DeviceWork> work_;
  std::optional<cuda::Pinned> fault_;  // of the call that runs
};

double CudaDevice::run(const LoadedKernel& kernel, const KernelCall& call) {
  cuda::refuse_cancelled(call.cancelled);
  const std::lock_guard lock(work_->queue.one_at_a_time());
  context_.use();
  const cuda::CudaCall one(*work_, {&kernel, call.bound, call.names}, *fault_, 0);
  one.clear_checks();
  cuda::OutputCopies copies(*work_, kernel.artifact(), call);
  cuda::PreparedCall prepared = one.prepare(copies.tensors());
  const double seconds = work_->queue.run({&prepared, 1}, {}, prepared.kernel->last());
  one.finish();
  noting_launches([&] { copies.commit(); });
  return seconds;
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(int index, int64_t memory_bytes) {
  return std::make_unique<CudaDevice>(index, memory_bytes);
}

}  // namespace kiln
