#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

/// The kernel that the fake driver knows, and what tests ask of the driver itself.
namespace kiln::testing {

/// The artifact of y[i] = x[i] + 1. A negative x[i] fires a check with i as its index.
std::shared_ptr<Artifact> add_one();
/// The same started twice, so that a call has several launches.
std::shared_ptr<Artifact> add_one_twice();

extern const KernelNames kAddOneNames;

/// Runs a kernel of one input and one output of its size on memory of the device.
class AddOneCall {
 public:
  AddOneCall(Device& device, std::vector<float> x,
             const std::shared_ptr<Artifact>& artifact = add_one());
  /// Seconds; nothing is copied.
  double run();
  std::vector<float> y() const;

 private:
  Device& device_;
  const std::vector<float> x_;
  const int64_t bytes_;
  const std::shared_ptr<LoadedKernel> kernel_;
  const std::unique_ptr<DeviceBuffer> in_;
  const std::unique_ptr<DeviceBuffer> out_;
};

/// x + 1 by way of the device.
std::vector<float> add_one_on(Device& device, const std::vector<float>& x);

/// Sets a variable of the environment while it lives.
class Setting {
 public:
  Setting(const char* variable, const std::string& value);
  ~Setting();
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* const variable_;
};

/// What a counter of the fake driver has gone up to: "launches", "copied_bytes", ...
int64_t counted(const char* counter);
/// Modules and events that it has not got back, and memory of devices.
int handed_out();
int live_allocations();
/// Lives longer than devices whose context a kernel breaks: after it the driver is as in a new
/// process.
class NewProcessAfterwards {
 public:
  NewProcessAfterwards() = default;
  ~NewProcessAfterwards();
  NewProcessAfterwards(const NewProcessAfterwards&) = delete;
  NewProcessAfterwards& operator=(const NewProcessAfterwards&) = delete;
};

}  // namespace kiln::testing
