#pragma once

#include <cstdint>
#include <string>

#include "runtime/cuda/driver_api.h"

/// What the driver hands out and wants back: each is given back by its destructor, also when what
/// comes after it fails. A context that a kernel has broken takes nothing back; its process ends.
namespace kiln::cuda {

/// Memory of the device; of 0 bytes none.
class Memory {
 public:
  Memory(const DriverApi& api, int64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() const { return reinterpret_cast<void*>(pointer_); }
  DevicePointer address() const { return pointer_; }

 private:
  const DriverApi& api_;
  DevicePointer pointer_ = 0;
};

/// The primary context of a device, which all that use it in a process share.
class Context {
 public:
  Context(const DriverApi& api, int device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  /// Makes it that of this thread; any thread may.
  void use() const;

 private:
  const DriverApi& api_;
  int device_;
  void* context_ = nullptr;
};

/// Code on the device.
class Module {
 public:
  Module(const DriverApi& api, const std::string& code);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  void* function(const std::string& name) const;

 private:
  const DriverApi& api_;
  void* module_ = nullptr;
};

/// A point in the order in which the device works.
class Event {
 public:
  explicit Event(const DriverApi& api);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record();
  /// Both must have come to pass.
  double seconds_until(const Event& end) const;

 private:
  const DriverApi& api_;
  void* event_ = nullptr;
};

}  // namespace kiln::cuda
