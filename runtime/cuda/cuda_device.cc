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
  CudaBuffer(const DriverApi& api, int64_t bytes) : api_(api), bytes_(bytes) {
    if (bytes > 0) {
      check(api_, api_.allocate(&pointer_, static_cast<size_t>(bytes)),
            fmt::format("allocate {} bytes", bytes));
    }
  }
  ~CudaBuffer() override {
    // A context that a kernel has broken frees nothing; the process ends and all of it goes.
    if (pointer_ != 0) api_.free(pointer_);
  }
  void* data() const override { return reinterpret_cast<void*>(pointer_); }
  int64_t bytes() const override { return bytes_; }

 private:
  const DriverApi& api_;
  DevicePointer pointer_ = 0;
  int64_t bytes_;
};

class CudaKernel : public LoadedKernel {
 public:
  CudaKernel(const DriverApi& api, std::shared_ptr<const Artifact> artifact)
      : api_(api), artifact_(std::move(artifact)) {
    check(api_, api_.load_module(&module_, artifact_->code.data()), "load the kernel");
    for (const Variant& variant : artifact_->variants) {
      std::vector<void*> functions;
      for (const Launch& launch : variant.launches) {
        void* function = nullptr;
        check(api_, api_.find_function(&function, module_, launch.entry.c_str()),
              "find " + launch.entry + " in the kernel");
        functions.push_back(function);
      }
      functions_.push_back(std::move(functions));
    }
  }
  ~CudaKernel() override { api_.unload_module(module_); }
  const Artifact& artifact() const override { return *artifact_; }
  const std::vector<void*>& functions(int variant) const {
    return functions_[static_cast<size_t>(variant)];
  }

 private:
  const DriverApi& api_;
  std::shared_ptr<const Artifact> artifact_;
  void* module_ = nullptr;
  std::vector<std::vector<void*>> functions_;
};

/// The time between two points on the device.
class Stopwatch {
 public:
  explicit Stopwatch(const DriverApi& api) : api_(api) {
    check(api_, api_.create_event(&begin_, 0), "create an event");
    check(api_, api_.create_event(&end_, 0), "create an event");
  }
  ~Stopwatch() {
    if (begin_ != nullptr) api_.destroy_event(begin_);
    if (end_ != nullptr) api_.destroy_event(end_);
  }
  void start() { check(api_, api_.record_event(begin_, nullptr), "record an event"); }
  void stop() { check(api_, api_.record_event(end_, nullptr), "record an event"); }
  double seconds() {
    float milliseconds = 0;
    check(api_, api_.event_milliseconds(&milliseconds, begin_, end_), "read the time of a launch");
    return milliseconds * 1e-3;
  }

 private:
  const DriverApi& api_;
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index)
      : index_(index), api_(cuda::driver_api()), properties_(cuda::properties_of(api_, index)) {
    check(api_, api_.retain_context(&context_, properties_.handle), "make a context");
    use();
  }
  ~CudaDevice() override { api_.release_context(properties_.handle); }

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
    use();
    return std::make_shared<CudaKernel>(api_, std::move(artifact));
  }

  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override {
    use();
    return std::make_unique<CudaBuffer>(api_, bytes);
  }

  void copy_in(void* device, const void* host, int64_t bytes) override {
    use();
    if (bytes > 0)
      check(api_, api_.copy_in(address_of(device), host, static_cast<size_t>(bytes)),
            "copy to the device");
  }

  void copy_out(void* host, const void* device, int64_t bytes) override {
    use();
    if (bytes > 0)
      check(api_, api_.copy_out(host, address_of(device), static_cast<size_t>(bytes)),
            "copy from the device");
  }

  double run(const LoadedKernel& kernel, const KernelCall& call) override {
    KILN_CHECK(call.bound != nullptr);
    if (call.cancelled != nullptr && call.cancelled->load() != 0) {
      fail(ErrorKind::Cancelled, "CANCELLED", "the call was cancelled before the kernel started");
    }
    use();
    const auto& cuda_kernel = static_cast<const CudaKernel&>(kernel);
    const Artifact& artifact = kernel.artifact();
    const std::vector<int64_t>& scalars = call.bound->scalars;
    const Variant& variant = artifact.variants[static_cast<size_t>(call.bound->variant)];

    const CudaBuffer workspace(api_, variant.workspace_bytes.evaluate(scalars));
    const CudaBuffer fault(api_, artifact.checks.empty() ? 0 : sizeof(KilnDeviceFault));
    if (fault.bytes() > 0) {
      check(api_, api_.fill_bytes(address_of(fault.data()), 0xff, sizeof(KilnDeviceFault)),
            "clear memory");
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

    Stopwatch watch(api_);
    watch.start();
    const std::vector<void*>& functions = cuda_kernel.functions(call.bound->variant);
    for (size_t i = 0; i < functions.size(); ++i) {
      launch(functions[i], variant.launches[i], scalars, parameters, call.names);
    }
    watch.stop();
    check(api_, api_.synchronize(), "run " + called(call.names));
    report_fault(fault, artifact, call);
    return watch.seconds();
  }

 private:
  /// The context belongs to a thread; any thread may call.
  void use() { check(api_, api_.set_context(context_), "use the device"); }

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
  void report_fault(const CudaBuffer& buffer, const Artifact& artifact, const KernelCall& call) {
    if (buffer.bytes() == 0) return;
    KilnDeviceFault fault{};
    copy_out(&fault, buffer.data(), sizeof(fault));
    if (fault.check >= 0)
      fail_check({fault.check, fault.index, fault.extent}, artifact, call.names);
  }

  int index_;
  const DriverApi& api_;
  const cuda::DeviceProperties properties_;
  void* context_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> open_cuda_device(int index) { return std::make_unique<CudaDevice>(index); }

}  // namespace kiln
