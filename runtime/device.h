#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/arguments.h"
#include "runtime/core/artifact.h"

namespace kiln {

/// A kernel made ready to run on one device. Immutable; any number of threads may run it.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  /// What it was loaded from.
  virtual const Artifact& artifact() const = 0;
};

/// Memory on a device, freed by its destructor.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  /// Device address; on the CPU a pointer, 64-byte aligned.
  virtual void* data() const = 0;
  virtual int64_t bytes() const = 0;
};

/// One call: a pointer for each parameter, and what bind_arguments() found.
struct KernelCall {
  std::span<void* const> tensors;
  const BoundCall* bound = nullptr;
  const KernelNames* names = nullptr;               // for the message of a check that fires
  const std::atomic<int32_t>* cancelled = nullptr;  // may be null
};

/// One kernel of a sequence: what it is given, but for its tensors.
struct SequenceKernel {
  const LoadedKernel* kernel = nullptr;
  const BoundCall* bound = nullptr;
  const KernelNames* names = nullptr;
};

/// Bytes to be copied between two buffers of a device, which do not overlap.
struct DeviceCopy {
  void* to = nullptr;
  const void* from = nullptr;
  int64_t bytes = 0;
};

/// Kernels that run one after the other, again and again. What it was made of outlives it.
class KernelSequence {
 public:
  virtual ~KernelSequence() = default;
  /// Copies, then runs all kernels, each on its own tensors, to the end of the last. Throws as
  /// Device::run() does; what the kernels after the one that failed leave is not said.
  /// `cancelled` may be null.
  virtual void run(std::span<const std::vector<void*>> tensors, std::span<const DeviceCopy> copies,
                   const std::atomic<int32_t>* cancelled) = 0;
};

/// A device that runs artifacts of its target.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // "cpu:0"
  virtual TargetKind target() const = 0;
  virtual std::string arch() const = 0;

  /// Throws InvalidArgument ARTIFACT_TARGET when the artifact is for another target or arch.
  virtual std::shared_ptr<LoadedKernel> load(std::shared_ptr<const Artifact> artifact) = 0;
  /// Throws ResourceExhausted DEVICE_MEMORY.
  virtual std::unique_ptr<DeviceBuffer> allocate(int64_t bytes) = 0;
  /// Copies between the host's memory and a buffer of this device; done when it returns.
  virtual void copy_in(void* device, const void* host, int64_t bytes);
  virtual void copy_out(void* host, const void* device, int64_t bytes);
  /// Between two buffers of this device, which do not overlap; done when it returns.
  virtual void copy_within(void* to, const void* from, int64_t bytes);
  /// Runs to the end. Returns the seconds the kernel itself took. Throws Cancelled, or
  /// InvalidArgument INDEX_OUT_OF_RANGE when a check fires.
  virtual double run(const LoadedKernel& kernel, const KernelCall& call) = 0;
  /// Kernels to be run one after the other: one by one, unless a device knows how to start them
  /// all at once.
  virtual std::unique_ptr<KernelSequence> sequence(std::vector<SequenceKernel> kernels);
};

struct CpuOptions {
  int threads = 0;        // 0: one on each core that the process may use
  std::string arch = {};  // what this host is called; empty: it has no name
};
/// Throws nothing but ResourceExhausted.
std::unique_ptr<Device> open_cpu_device(const CpuOptions& options);

/// Throws Unavailable NO_DEVICE with a sentence that says what is missing (libcuda, a device) and
/// what to do. It takes at most so many bytes of the device's memory; 0: all there is.
std::unique_ptr<Device> open_cuda_device(int index, int64_t memory_bytes = 0);

}  // namespace kiln
