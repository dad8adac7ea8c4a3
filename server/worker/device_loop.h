#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kiln/v1/service.pb.h"
#include "runtime/core/error.h"
#include "runtime/device.h"
#include "server/ipc/fd.h"

namespace kiln::server {

/// What a device worker serves.
struct DeviceWorker {
  /// Throws Unavailable when there is no such device: the worker says so and ends.
  std::function<std::unique_ptr<Device>()> open;
  /// Fills in what Describe says of the device.
  std::function<void(v1::Device&)> describe;
  /// How many devices of this kind the host has; runs after `open`.
  std::function<int()> count = [] { return 1; };
  /// What this process finds out about the machine; runs after `open`, and knows why that failed.
  std::function<std::vector<v1::Component>(const std::optional<Error>& absent)> components;
  /// The front end is gone: what runs is not wanted any more.
  std::function<void()> abandoned = [] {};
};

/// Runs calls from `socket` on a device until the front end hangs up. Returns an exit code.
int device_loop(const DeviceWorker& worker, Fd socket, Fd page);

}  // namespace kiln::server
