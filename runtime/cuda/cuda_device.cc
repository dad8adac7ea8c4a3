// Runs artifacts on a GPU through the driver's interface: one stream computes, one copies in and
// one out, so that tensors come and go while a kernel runs. A call is one order of launches between
// two events. What a check found lies in memory of the host, where the device writes it itself: a
// call copies nothing. Launches that come again with the same values are one graph.
#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/core/called.h"
#include "runtime/core/error.h"
#include "runtime/core/fired_check.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/cuda/cuda_kernel.h"
#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/driver_errors.h"
#include "runtime/cuda/driver_objects.h"
#include "runtime/cuda/launch_journal.h"
#include "runtime/cuda/launch_size.h"
#include "runtime/cuda/memory_pool.h"
#include "runtime/cuda/transfer_ring.h"
#include "runtime/device.h"

namespace kiln {
namespace {

using cuda::check;
using cuda::CudaKernel;
using cuda::DevicePointer;
using cuda::DriverApi;

/// Whether the launches of a call, which come again, are sooner started as one graph: of a single
/// one there is nothing to gain, and of very many the graph is larger than what it is for.
bool is_worth_a_graph(const CudaKernel& kernel, const cuda::CallValues& values) {
  constexpr int64_t kMostLaunches = 1024;
  const Variant& variant = kernel.artifact().variants[static_cast<size_t>(values.variant)];
  auto launches = static_cast<int64_t>(variant.launches.size());
  for (const LaunchLoop& loop : variant.loops) {
    const int64_t times = std::min(loop.count.evaluate(values.scalars), kMostLaunches);
    launches += (loop.end - loop.first) * (times - 1);
  }
  return launches > 1 && launches <= kMostLaunches;
}

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
    work_.emplace(api_, properties_, name(),
                  memory_bytes > 0 ? memory_bytes : properties_.memory_bytes);
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

 private:
  /// What belongs to the context.
  struct Work {
    Work(const DriverApi& api, const cuda::DeviceProperties& properties, std::string name,
         int64_t budget)
        : pool(api, properties, std::move(name), budget),
          in(api),
          out(api),
          compute(api),
          begin(api),
          end(api),
          fault(api, sizeof(KilnDeviceFault)) {}
    cuda::MemoryPool pool;
    cuda::TransferRing in;
    cuda::TransferRing out;
    const cuda::Stream compute;
    cuda::Event begin;
    cuda::Event end;
    const cuda::Pinned fault;
  };

  std::vector<cuda::LaunchSize> sizes_of(const Variant& variant,
                                         std::span<const int64_t> scalars) const;
  void clear_stopped(const CudaKernel& kernel);
  void start(const CudaKernel& kernel, cuda::CallValues values,
             std::span<const cuda::LaunchSize> sizes, const std::string& called);
  void launch(const CudaKernel& kernel, cuda::CallValues& values,
              std::span<const cuda::LaunchSize> sizes, const std::string& action);

  /// A fault is told by whatever asks the driver next.
  template <typename Body>
  void noting_launches(Body&& body) {
    try {
      body();
    } catch (Error& error) {
      if (error.reason() != "DEVICE_FAULT") throw;
      const std::lock_guard lock(journal_mutex_);
      if (const std::string text = journal_.text(); !text.empty()) error.add_note(text);
      throw;
    }
  }

  const int index_;
  const DriverApi& api_;
  const cuda::DeviceProperties properties_;
  const cuda::Context context_;
  std::optional<Work> work_;
  std::mutex running_;  // one call at a time
  std::mutex journal_mutex_;
  cuda::LaunchJournal journal_;
};

double CudaDevice::run(const LoadedKernel& kernel, const KernelCall& call) {
  KILN_CHECK(call.bound != nullptr);
  if (call.cancelled != nullptr && call.cancelled->load() != 0) {
    fail(ErrorKind::Cancelled, "CANCELLED", "the call was cancelled before the kernel started");
  }
  const std::lock_guard lock(running_);
  context_.use();
  const auto& cuda_kernel = static_cast<const CudaKernel&>(kernel);
  const Artifact& artifact = kernel.artifact();
  const std::vector<int64_t>& scalars = call.bound->scalars;
  const Variant& variant = artifact.variants[static_cast<size_t>(call.bound->variant)];
  // Before the first launch: one that cannot be leaves nothing under way.
  const std::vector<cuda::LaunchSize> sizes = sizes_of(variant, scalars);

  clear_stopped(cuda_kernel);
  const cuda::Memory workspace(work_->pool, variant.workspace_bytes.evaluate(scalars));
  auto& fault = *static_cast<KilnDeviceFault*>(work_->fault.data());
  fault.check = -1;
  const std::string kernel_name = called(call.names);
  cuda_kernel.may_be_stopped() = true;  // until it is known that no check fired
  noting_launches([&] {
    start(cuda_kernel,
          {call.bound->variant,
           {call.tensors.begin(), call.tensors.end()},
           scalars,
           workspace.data(),
           reinterpret_cast<void*>(work_->fault.address())},
          sizes, kernel_name);
    work_->end.wait("run " + kernel_name);
  });
  cuda_kernel.may_be_stopped() = fault.check >= 0;
  if (fault.check >= 0) fail_check({fault.check, fault.index, fault.extent}, artifact, call.names);
  return work_->begin.seconds_until(work_->end);
}

/// Of the call before this one.
void CudaDevice::clear_stopped(const CudaKernel& kernel) {
  if (!kernel.stopped() || !kernel.may_be_stopped()) return;
  constexpr int32_t kNotStopped = 0;
  work_->in.copy_in(*kernel.stopped(), &kNotStopped, sizeof kNotStopped);
}

std::vector<cuda::LaunchSize> CudaDevice::sizes_of(const Variant& variant,
                                                   std::span<const int64_t> scalars) const {
  std::vector<cuda::LaunchSize> sizes;
  for (const Launch& launch : variant.launches)
    sizes.push_back(cuda::launch_size(launch, scalars, properties_));
  return sizes;
}

/// Between the two events. Where a launch is refused, those before it have ended on return.
void CudaDevice::start(const CudaKernel& kernel, cuda::CallValues values,
                       std::span<const cuda::LaunchSize> sizes, const std::string& called) {
  CudaKernel::Last& last = kernel.last();
  const std::string action = "start " + called;
  const bool is_repeated = is_worth_a_graph(kernel, values) && values == last.values;
  work_->begin.record(work_->compute);
  try {
    if (is_repeated && !last.graph) {
      last.graph = std::make_unique<cuda::Graph>(
          api_, work_->compute, [&] { launch(kernel, last.values, sizes, action); });
    }
    if (is_repeated) {
      last.graph->launch(work_->compute, action);
    } else {
      last = {};
      launch(kernel, values, sizes, action);
      last.values = std::move(values);
    }
  } catch (...) {
    work_->compute.wait("run " + called);
    throw;
  }
  work_->end.record(work_->compute);
}

void CudaDevice::launch(const CudaKernel& kernel, cuda::CallValues& values,
                        std::span<const cuda::LaunchSize> sizes, const std::string& action) {
  const std::vector<void*>& functions = kernel.functions(values.variant);
  const Variant& variant = kernel.artifact().variants[static_cast<size_t>(values.variant)];
  std::vector<void*> parameters = values.addresses();
  for_each_launch(variant, values.scalars, [&](size_t i, int64_t iteration) {
    const cuda::LaunchSize& size = sizes[i];
    if (size.is_empty()) return;
    values.iteration = iteration;
    // Of a kernel that does not ask for more, as every device has it.
    constexpr unsigned kSharedWithoutAsking = 48 * 1024;
    if (size.shared_bytes > kSharedWithoutAsking) {
      check(api_,
            api_.set_function_attribute(functions[i], cuda::kFunctionMaxDynamicSharedBytes,
                                        static_cast<int>(size.shared_bytes)),
            fmt::format("give the kernel {} bytes of shared memory", size.shared_bytes));
    }
    {
      const std::lock_guard lock(journal_mutex_);
      journal_.add(variant.launches[i].entry, size);
    }
    const auto& [gx, gy, gz] = size.grid;
    const auto& [bx, by, bz] = size.block;
    check(api_,
          api_.launch(functions[i], gx, gy, gz, bx, by, bz, size.shared_bytes,
                      work_->compute.handle(), parameters.data(), nullptr),
          action);
  });
  values.iteration = 0;
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(int index, int64_t memory_bytes) {
  return std::make_unique<CudaDevice>(index, memory_bytes);
}

}  // namespace kiln
