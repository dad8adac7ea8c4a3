// Runs lowered loops as they are written, for check_nan and for artifacts of the interpreter.
// Arguments are copied, so that a call that fails half way leaves outputs as they were.
#include "server/worker/interpreted.h"

#include <chrono>
#include <cstring>
#include <mutex>

#include <fmt/ranges.h>

#include "compiler/ir/interpret.h"
#include "compiler/ir/parse.h"
#include "compiler/loops_artifact.h"
#include "runtime/core/called.h"
#include "runtime/core/fired_check.h"

namespace kiln::server {

namespace {

class InterpretedKernel : public LoadedKernel {
 public:
  explicit InterpretedKernel(std::shared_ptr<const Artifact> artifact)
      : artifact_(std::move(artifact)) {
    // Parsed at once, so that wrong text is an error of the load.
    give_back(take());
  }
  const Artifact& artifact() const override { return *artifact_; }

  /// The loops, for one call: nodes belong to one thread at a time.
  std::unique_ptr<ir::Kernel> take() const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<ir::Kernel> loops = std::move(idle_.back());
        idle_.pop_back();
        return loops;
      }
    }
    return std::make_unique<ir::Kernel>(ir::parse(artifact_->code));
  }

  void give_back(std::unique_ptr<ir::Kernel> loops) const {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(loops));
  }

 private:
  std::shared_ptr<const Artifact> artifact_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ir::Kernel>> idle_;
};

/// What happens while the loops of one call run, in the names of the caller.
class Watch : public ir::InterpretWatch {
 public:
  Watch(const Artifact& artifact, const KernelCall& call) : artifact_(artifact), call_(call) {}

  bool wants_nan() const override { return artifact_.arch == kLoopsWithoutNan; }
  bool is_cancelled() const override {
    return call_.cancelled != nullptr && call_.cancelled->load(std::memory_order_relaxed) != 0;
  }
  void check_fired(int check, int64_t index, int64_t extent) override {
    fail_check({check, index, extent}, artifact_, call_.names);
  }
  void found_nan(const ir::Buffer& buffer, const std::vector<int64_t>& indices,
                 bool given) override {
    KILN_CHECK(call_.names != nullptr);
    const std::string place =
        fmt::format("{}[{}]", user_name(buffer.name, *call_.names), fmt::join(indices, ", "));
    Error error(ErrorKind::InvalidArgument, "NAN",
                given ? fmt::format("{} of the arguments is NaN already", place)
                      : fmt::format("{} is the first element to become NaN", place));
    const std::optional<size_t> stage = stage_of_buffer(buffer.name);
    if (stage && *stage < call_.names->lines.size()) {
      error.set_location(call_.names->lines[*stage]);
    }
    throw error;
  }

 private:
  const Artifact& artifact_;
  const KernelCall& call_;
};

/// The arguments as the interpreter takes them: copies, written back when all has gone well.
class Copies {
 public:
  Copies(const Artifact& artifact, const KernelCall& call) : artifact_(artifact), call_(call) {
    for (size_t i = 0; i < call.tensors.size(); ++i) {
      language::HostTensor tensor;
      tensor.type = artifact.parameters[i].type;
      tensor.shape = call.bound->shapes[i];
      tensor.bytes.resize(static_cast<size_t>(byte_size(tensor.type, tensor.shape)));
      if (!artifact.parameters[i].is_output && !tensor.bytes.empty()) {
        std::memcpy(tensor.bytes.data(), call.tensors[i], tensor.bytes.size());
      }
      tensors_.push_back(std::move(tensor));
    }
  }

  std::vector<language::HostTensor>& tensors() { return tensors_; }

  void commit() const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!artifact_.parameters[i].is_output || tensors_[i].bytes.empty()) continue;
      std::memcpy(call_.tensors[i], tensors_[i].bytes.data(), tensors_[i].bytes.size());
    }
  }

 private:
  const Artifact& artifact_;
  const KernelCall& call_;
  std::vector<language::HostTensor> tensors_;
};

class InterpretingDevice : public Device {
 public:
  explicit InterpretingDevice(std::unique_ptr<Device> cpu) : cpu_(std::move(cpu)) {}

  std::string name() const override { return cpu_->name(); }
  TargetKind target() const override { return cpu_->target(); }
  std::string arch() const override { return cpu_->arch(); }

  std::shared_ptr<LoadedKernel> load(std::shared_ptr<const Artifact> artifact) override {
    if (traits_of(artifact->target).is_compiled) return cpu_->load(std::move(artifact));
    return std::make_shared<InterpretedKernel>(std::move(artifact));
  }
  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    cpu_->copy_in(device, host, bytes);
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    cpu_->copy_out(host, device, bytes);
  }

  double run(const LoadedKernel& kernel, const KernelCall& call) override {
    const Artifact& artifact = kernel.artifact();
    if (traits_of(artifact.target).is_compiled) return cpu_->run(kernel, call);
    const auto& interpreted = static_cast<const InterpretedKernel&>(kernel);
    std::unique_ptr<ir::Kernel> loops = interpreted.take();
    Copies copies(artifact, call);
    Watch watch(artifact, call);
    const auto start = std::chrono::steady_clock::now();
    const std::span<const int64_t> sizes(call.bound->scalars.data(), loops->sizes.size());
    if (!ir::interpret(*loops, sizes, copies.tensors(), watch)) {
      fail(ErrorKind::Cancelled, "CANCELLED", "the call of {} was cancelled", called(call.names));
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    interpreted.give_back(std::move(loops));
    copies.commit();
    return seconds;
  }

 private:
  std::unique_ptr<Device> cpu_;
};

}  // namespace

std::unique_ptr<Device> with_interpreter(std::unique_ptr<Device> cpu) {
  return std::make_unique<InterpretingDevice>(std::move(cpu));
}

}  // namespace kiln::server
