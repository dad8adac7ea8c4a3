#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/device_queue.h"
#include "server/tensors/tensor_store.h"

namespace kiln::server {

/// All devices of the service: the CPU, and one queue for each GPU. How many of these there are,
/// the worker of the first one says. Any thread may ask.
class Devices {
 public:
  using MakeQueue = std::function<std::unique_ptr<DeviceQueue>(Role role, int index)>;
  explicit Devices(MakeQueue make);

  /// The first device that runs artifacts of `target`.
  DeviceQueue& of(TargetKind target) const;
  /// By its name, "cuda:1"; null where there is none.
  DeviceQueue* find(const std::string& name) const;
  /// By what a client calls it: "cuda:1", "cuda", "cpu", or nothing. Throws Unavailable NO_DEVICE.
  DeviceQueue& named(const std::string& name) const;
  /// Where a call of what was compiled for `target` runs: on the device that is asked for by name,
  /// else on the one where its tensors (or nulls) lie, else on the first one. `what` is called, for
  /// sentences. Throws Unavailable NO_DEVICE, InvalidArgument OTHER_TARGET, SEVERAL_DEVICES.
  DeviceQueue& for_call(TargetKind target, const std::string& asked,
                        std::span<const std::shared_ptr<const Tensor>> tensors,
                        const std::string& what) const;
  /// The CPU first.
  std::vector<DeviceQueue*> all() const;

  /// Brings what devices have newer of `slices` into these. `done` is told once, at once where
  /// there is nothing to bring.
  void bring_home(std::vector<std::shared_ptr<Slice>> slices, FetchDone done) const;

  /// In the supervisor's thread: also begins with devices that the first one told of.
  void tick(Clock::time_point now);
  void stop();

 private:
  static constexpr size_t kMostGpus = 16;

  DeviceQueue& gpu(size_t index) const { return *gpus_[index]; }

  const MakeQueue make_;
  const std::unique_ptr<DeviceQueue> cpu_;
  std::array<std::unique_ptr<DeviceQueue>, kMostGpus> gpus_;  // those below count_
  std::atomic<size_t> count_{1};
};

}  // namespace kiln::server
