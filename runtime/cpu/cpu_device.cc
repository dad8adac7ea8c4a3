// Runs artifacts for CPUs in this process: loads the object, gives a call its frame, its workspace
// and the thread pool, and turns what the entry returns into an error. Everything that generated
// code takes for granted is checked before it runs: target, alignment, memory that overlaps,
// workspace sizes.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <vector>

#include "runtime/core/called.h"
#include "runtime/core/cpu_features.h"
#include "runtime/core/error.h"
#include "runtime/core/fired_check.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/cpu/cpus.h"
#include "runtime/cpu/object_loader.h"
#include "runtime/cpu/overlap_copies.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/cpu/workspace.h"
#include "runtime/device.h"

namespace kiln {
namespace {

constexpr int32_t kCheckFired = 1;  // what an entry returns: see KilnEntry
constexpr int32_t kCancelled = 2;

class CpuKernel : public LoadedKernel {
 public:
  CpuKernel(std::shared_ptr<const Artifact> artifact, std::unique_ptr<LoadedObject> object)
      : artifact_(std::move(artifact)), object_(std::move(object)) {}
  const Artifact& artifact() const override { return *artifact_; }
  KilnEntry entry(int variant) const { return object_->entries()[static_cast<size_t>(variant)]; }

 private:
  std::shared_ptr<const Artifact> artifact_;
  std::unique_ptr<LoadedObject> object_;
};

class CpuBuffer : public DeviceBuffer {
 public:
  explicit CpuBuffer(int64_t bytes) : memory_(allocate_aligned(bytes)), bytes_(bytes) {}
  void* data() const override { return memory_.get(); }
  int64_t bytes() const override { return bytes_; }

 private:
  AlignedMemory memory_;
  int64_t bytes_;
};

/// What KilnFrame::pool points to: the call's way back to the device.
struct CallContext {
  ThreadPool* pool;
};

/// KilnFrame::parallel_for. Each participant works on a copy of the frame, so that two checks that
/// fire at once do not mix their values; the one of the first iteration is kept.
int32_t parallel_for(KilnFrame* frame, KilnParallelBody body, void* captures, int64_t count) {
  std::mutex mutex;
  int64_t first_failure = count;
  const auto part = [&](int64_t begin, int64_t end, int thread) {
    KilnFrame own = *frame;
    const int32_t result = body(&own, captures, begin, end, thread);
    if (result == kCheckFired) {
      const std::lock_guard lock(mutex);
      if (begin < first_failure) {
        first_failure = begin;
        frame->fired_check = own.fired_check;
        frame->fired_index = own.fired_index;
        frame->fired_extent = own.fired_extent;
      }
    }
    return result;
  };
  return static_cast<CallContext*>(frame->pool)
      ->pool->run(count, part, reinterpret_cast<const void*>(body));
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : arch_(options.arch),
        pool_(options.threads > 0 ? options.threads : available_cores()),
        loader_(make_object_loader()) {}

  std::string name() const override { return "cpu:0"; }
  TargetKind target() const override { return TargetKind::Llvm; }
  std::string arch() const override { return arch_; }

  std::shared_ptr<LoadedKernel> load(std::shared_ptr<const Artifact> artifact) override {
    if (artifact->target != target()) {
      fail(ErrorKind::InvalidArgument, "ARTIFACT_TARGET",
           "the kernel was compiled for cuda, but cpu:0 runs kernels compiled for llvm");
    }
    if (const std::string lacking = lacking_features(artifact->features); !lacking.empty()) {
      fail(ErrorKind::InvalidArgument, "ARTIFACT_TARGET",
           "the kernel was compiled for {}, but this host{} lacks {}; compile it for {}",
           artifact->arch, arch_.empty() ? "" : fmt::format(" ({})", arch_), lacking,
           arch_.empty() ? "a lesser CPU, as x86-64-v3" : arch_);
    }
    std::vector<std::string> entries;
    for (const Variant& variant : artifact->variants) {
      if (variant.launches.size() != 1) {
        fail(ErrorKind::InvalidArgument, "ARTIFACT_CORRUPT",
             "the saved artifact is damaged: a variant for the CPU has {} launches",
             variant.launches.size());
      }
      entries.push_back(variant.launches[0].entry);
    }
    std::unique_ptr<LoadedObject> object = loader_->load(artifact->code, entries);
    return std::make_shared<CpuKernel>(std::move(artifact), std::move(object));
  }

  std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) override {
    return std::make_unique<CpuBuffer>(bytes);
  }

  /// The workspace of a call is one block: that of the call, then one part for each thread.
  double run(const LoadedKernel& kernel, const KernelCall& call) override {
    KILN_CHECK(call.bound != nullptr);
    const auto& cpu_kernel = static_cast<const CpuKernel&>(kernel);
    const Artifact& artifact = kernel.artifact();
    KILN_CHECK(call.tensors.size() == artifact.parameters.size());
    check_alignment(artifact, call);

    OverlapCopies copies(artifact, call);
    const Variant& variant = artifact.variants[static_cast<size_t>(call.bound->variant)];
    const int64_t shared_bytes =
        rounded(variant.workspace_bytes.evaluate(call.bound->scalars), call);
    const int64_t thread_bytes =
        rounded(variant.workspace_bytes_per_thread.evaluate(call.bound->scalars), call);
    const WorkspacePool::Lease workspace =
        acquire(total_bytes(shared_bytes, thread_bytes, call), call);

    CallContext context{&pool_};
    static constexpr int32_t kNever = 0;
    KilnFrame frame{};
    frame.tensors = copies.tensors().data();
    frame.scalars = call.bound->scalars.data();
    frame.workspace = workspace.data();
    frame.thread_workspace = workspace.data() + shared_bytes;
    frame.thread_workspace_bytes = thread_bytes;
    frame.parallel_for = parallel_for;
    frame.pool = &context;
    frame.cancelled =
        call.cancelled != nullptr ? reinterpret_cast<const int32_t*>(call.cancelled) : &kNever;

    const auto start = std::chrono::steady_clock::now();
    const int32_t result = cpu_kernel.entry(call.bound->variant)(&frame);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (result == kCheckFired)
      fail_check({frame.fired_check, frame.fired_index, frame.fired_extent}, artifact, call.names);
    if (result == kCancelled) {
      fail(ErrorKind::Cancelled, "CANCELLED", "the call of {} was cancelled", called(call.names));
    }
    KILN_CHECK(result == 0);
    copies.commit();
    return seconds;
  }

 private:
  /// Before the memory is asked for: pages that are promised but not there end the process.
  int64_t rounded(int64_t bytes, const KernelCall& call) const {
    if (bytes < 0 || bytes > memory_bytes_) refuse_workspace(bytes, call);
    return (bytes + 63) / 64 * 64;
  }

  int64_t total_bytes(int64_t shared_bytes, int64_t thread_bytes, const KernelCall& call) const {
    const __int128 total = shared_bytes + static_cast<__int128>(thread_bytes) * pool_.threads();
    return rounded(total > INT64_MAX ? INT64_MAX : static_cast<int64_t>(total), call);
  }

  WorkspacePool::Lease acquire(int64_t bytes, const KernelCall& call) {
    try {
      return workspaces_.acquire(bytes);
    } catch (const Error&) {
      refuse_workspace(bytes, call);
    }
  }

  [[noreturn]] void refuse_workspace(int64_t bytes, const KernelCall& call) const {
    fail(ErrorKind::ResourceExhausted, "DEVICE_MEMORY",
         "{} needs {} bytes for its intermediate stages, but cpu:0 has {} bytes of memory in all; "
         "compute them inside the loops that read them (compute_at, compute_inline), or call it "
         "with smaller tensors",
         called(call.names), bytes, memory_bytes_);
  }

  /// Generated code loads elements by their natural alignment.
  static void check_alignment(const Artifact& artifact, const KernelCall& call) {
    for (size_t i = 0; i < call.tensors.size(); ++i) {
      const auto size = static_cast<uintptr_t>(size_of(artifact.parameters[i].type));
      if (reinterpret_cast<uintptr_t>(call.tensors[i]) % size == 0) continue;
      fail(ErrorKind::InvalidArgument, "ARGUMENT_ALIGNMENT",
           "argument {} of {} is at an address that is no multiple of {} bytes, the size of its "
           "elements",
           call.names != nullptr ? call.names->parameters[i] : std::to_string(i),
           called(call.names), size);
    }
  }

  const std::string arch_;
  const int64_t memory_bytes_ = available_memory();
  ThreadPool pool_;
  std::unique_ptr<ObjectLoader> loader_;
  WorkspacePool workspaces_;
};

}  // namespace

std::unique_ptr<Device> open_cpu_device(const CpuOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace kiln
