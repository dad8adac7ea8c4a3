#pragma once

#include <string>
#include <utility>

#include "runtime/cuda/device_properties.h"
#include "runtime/cuda/driver_objects.h"
#include "runtime/cuda/launch_queue.h"
#include "runtime/cuda/memory_pool.h"
#include "runtime/cuda/transfer_ring.h"

namespace kiln::cuda {

/// All of a device that belongs to its context, which must be that of the thread that makes it.
struct DeviceWork {
  DeviceWork(const Context& of, const DriverApi& driver, const DeviceProperties& device,
             const std::string& name, int64_t budget)
      : context(of),
        api(driver),
        properties(device),
        pool(driver, device, name, budget),
        in(driver),
        out(driver),
        queue(driver) {}

  const Context& context;
  const DriverApi& api;
  const DeviceProperties& properties;
  MemoryPool pool;
  TransferRing in;
  TransferRing out;
  LaunchQueue queue;
};

}  // namespace kiln::cuda
