#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/cuda/driver_api.h"

/// What the driver hands out and wants back: each is given back by its destructor, also when what
/// comes after it fails. A context that a kernel has broken takes nothing back; its process ends.
namespace kiln::cuda {

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

/// An order in which the device works. Not ordered with the work of any other stream.
class Stream {
 public:
  explicit Stream(const DriverApi& api);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void* handle() const { return stream_; }
  /// Waits until all that it was given is done. `action` completes "the driver could not ...".
  void wait(const std::string& action) const;

 private:
  const DriverApi& api_;
  void* stream_ = nullptr;
};

/// Host memory that stays where it is, so that the device copies from and to it by itself, and
/// reaches it under an address of its own.
class Pinned {
 public:
  Pinned(const DriverApi& api, size_t bytes);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() const { return data_; }
  DevicePointer address() const;

 private:
  const DriverApi& api_;
  void* data_ = nullptr;
};

/// Code on the device: machine code, or PTX, which the driver compiles for it.
class Module {
 public:
  Module(const DriverApi& api, const std::string& code);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  void* function(const std::string& name) const;
  /// Where a variable of the code lies; none where it has none of this name.
  std::optional<DevicePointer> variable(const std::string& name) const;

 private:
  const DriverApi& api_;
  void* module_ = nullptr;
};

/// A point in the order of a stream.
class Event {
 public:
  enum class Timing { On, Off };
  explicit Event(const DriverApi& api, Timing timing = Timing::On);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Stream& stream);
  /// Until the device has come past it; at once when it was never recorded.
  void wait(const std::string& action) const;
  /// Both must have come to pass, and keep the time.
  double seconds_until(const Event& end) const;

 private:
  const DriverApi& api_;
  void* event_ = nullptr;
};

/// Work of one stream that was recorded, to be started again as a whole.
class Graph {
 public:
  /// Records what `work` gives `stream`, which runs none of it.
  template <typename Work>
  Graph(const DriverApi& api, const Stream& stream, Work&& work) : api_(api) {
    begin(stream);
    try {
      work();
    } catch (...) {
      abandon(stream);
      throw;
    }
    end(stream);
  }
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream, const std::string& action) const;

 private:
  void begin(const Stream& stream);
  void abandon(const Stream& stream);
  void end(const Stream& stream);

  const DriverApi& api_;
  void* executable_ = nullptr;
};

}  // namespace kiln::cuda
