// Runs artifacts on a GPU through the driver's interface: module, functions, buffers, launches in
// order on the default stream, and the fault that a check leaves in device memory.
#include <mutex>
#include <vector>

#include "runtime/core/called.h"
#include "runtime/core/error.h"
#include "runtime/core/fired_check.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/driver_errors.h"
#include "runtime/cuda/driver_objects.h"
#include "runtime/cuda/launch_size.h"
#include "runtime/device.h"

namespace kiln {
namespace {

using cuda::check;
using cuda::DevicePointer;
using cuda::DriverApi;

DevicePointer address_of(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

class CudaBuffer : public DeviceBuffer {
 public:
  CudaBuffer(const DriverApi& api, int64_t bytes) : memory_(api, bytes), bytes_(bytes) {}
  void* data() const override { return memory_.data(); }
  int64_t bytes() const override { return bytes_; }

 private:
  const cuda::Memory memory_;
  int64_t bytes_;
};

class CudaKernel : public LoadedKernel {
 public:
  CudaKernel(const DriverApi& api, std::shared_ptr<const Artifact> artifact)
      : artifact_(std::move(artifact)), module_(api, artifact_->code) {
    for (const Variant& variant : artifact_->variants) {
      std::vector<void*>& functions = functions_.emplace_back();
      for (const Launch& launch : variant.launches)
        functions.push_back(module_.function(launch.entry));
    }
  }
  const Artifact& artifact() const override { return *artifact_; }
  const std::vector<void*>& functions(int variant) const {
    return functions_[static_cast<size_t>(variant)];
  }

 private:
  std::shared_ptr<const Artifact> artifact_;
  const cuda::Module module_;
  std::vector<std::vector<void*>> functions_;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index)
      : index_(index),
        api_(cuda::driver_api()),
        properties_(cuda::properties_of(api_, index)),
        context_(api_, properties_.handle) {
    context_.use();
  }

  std::string name() const override { return fmt::format("cuda:{}", index_); }
  TargetKind target() const override { return TargetKind::Cuda; }
  std::string arch() const override { return cuda::arch_of(properties_.capability); }

  std::shared_ptr<LoadedKernel> load(std::shared_ptr<const Artifact> artifact) override {
    if (artifact->target != target()) {
      fail(ErrorKind::InvalidArgument, "ARTIFACT_TARGET",
           "the kernel was compiled for llvm, but {} runs kernels compiled for cuda", name());
    }
    if (!cuda::runs_on(artifact->arch, properties_.capability)) {
      fail(ErrorKind::InvalidArgument, "ARTIFACT_TARGET",
           "the kernel was compiled for {}, but {} is {}; compile it for {}", artifact->arch,
           name(), arch(), arch());
    }
    context_.use();
    return std::make_shared<CudaKernel>(api_, std::move(artifact));
  }

  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override {
    context_.use();
    return std::make_unique<CudaBuffer>(api_, bytes);
  }

  void copy_in(void* device, const void* host, int64_t bytes) override {
    context_.use();
    if (bytes > 0)
      check(api_, api_.copy_in(address_of(device), host, static_cast<size_t>(bytes)),
            "copy to the device");
  }

  void copy_out(void* host, const void* device, int64_t bytes) override {
    context_.use();
    if (bytes > 0)
      check(api_, api_.copy_out(host, address_of(device), static_cast<size_t>(bytes)),
            "copy from the device");
  }

  double run(const LoadedKernel& kernel, const KernelCall& call) override {
    KILN_CHECK(call.bound != nullptr);
    if (call.cancelled != nullptr && call.cancelled->load() != 0) {
      fail(ErrorKind::Cancelled, "CANCELLED", "the call was cancelled before the kernel started");
    }
    context_.use();
    const auto& cuda_kernel = static_cast<const CudaKernel&>(kernel);
    const Artifact& artifact = kernel.artifact();
    const std::vector<int64_t>& scalars = call.bound->scalars;
    const Variant& variant = artifact.variants[static_cast<size_t>(call.bound->variant)];

    const cuda::Memory workspace(api_, variant.workspace_bytes.evaluate(scalars));
    const bool may_fault = !artifact.checks.empty();
    const cuda::Memory fault(api_, may_fault ? sizeof(KilnDeviceFault) : 0);
    if (may_fault) {
      check(api_, api_.fill_bytes(fault.address(), 0xff, sizeof(KilnDeviceFault)), "clear memory");
    }

    std::vector<void*> values(call.tensors.begin(), call.tensors.end());
    values.push_back(workspace.data());
    values.push_back(fault.data());
    std::vector<int64_t> copies = scalars;
    std::vector<void*> parameters;
    const size_t tensors = call.tensors.size();
    for (size_t i = 0; i < tensors; ++i)
      parameters.push_back(&values[i]);
    for (int64_t& scalar : copies)
      parameters.push_back(&scalar);
    parameters.push_back(&values[tensors]);
    parameters.push_back(&values[tensors + 1]);

    cuda::Event begin(api_);
    cuda::Event end(api_);
    begin.record();
    const std::vector<void*>& functions = cuda_kernel.functions(call.bound->variant);
    for (size_t i = 0; i < functions.size(); ++i) {
      launch(functions[i], variant.launches[i], scalars, parameters, call.names);
    }
    end.record();
    check(api_, api_.synchronize(), "run " + called(call.names));
    if (may_fault) report_fault(fault, artifact, call);
    return begin.seconds_until(end);
  }

 private:
  void launch(void* function, const Launch& launch, std::span<const int64_t> scalars,
              std::vector<void*>& parameters, const KernelNames* names) {
    const cuda::LaunchSize size = cuda::launch_size(launch, scalars, properties_);
    if (size.is_empty()) return;
    // Of a kernel that does not ask for more, as every device has it.
    constexpr unsigned kSharedWithoutAsking = 48 * 1024;
    if (size.shared_bytes > kSharedWithoutAsking) {
      check(api_,
            api_.set_function_attribute(function, cuda::kFunctionMaxDynamicSharedBytes,
                                        static_cast<int>(size.shared_bytes)),
            fmt::format("give the kernel {} bytes of shared memory", size.shared_bytes));
    }
    const auto& [gx, gy, gz] = size.grid;
    const auto& [bx, by, bz] = size.block;
    check(api_,
          api_.launch(function, gx, gy, gz, bx, by, bz, size.shared_bytes, nullptr,
                      parameters.data(), nullptr),
          "start " + called(names));
  }

  /// The check that fired first on the device, if any; the kernel ran to its end all the same.
  void report_fault(const cuda::Memory& memory, const Artifact& artifact, const KernelCall& call) {
    KilnDeviceFault fault{};
    copy_out(&fault, memory.data(), sizeof(fault));
    if (fault.check >= 0)
      fail_check({fault.check, fault.index, fault.extent}, artifact, call.names);
  }

  int index_;
  const DriverApi& api_;
  const cuda::DeviceProperties properties_;
  const cuda::Context context_;
};

}  // namespace

std::unique_ptr<Device> open_cuda_device(int index) { return std::make_unique<CudaDevice>(index); }

}  // namespace kiln
