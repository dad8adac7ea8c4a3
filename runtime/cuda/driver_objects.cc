// Takes from the driver and gives back: one class for each thing that it hands out, so that no
// owner of several has to think of those it has already when the next one fails.
#include "runtime/cuda/driver_objects.h"

#include <array>

#include <fmt/format.h>

#include "runtime/core/error.h"
#include "runtime/cuda/driver_errors.h"

namespace kiln::cuda {
namespace {

constexpr Result kNotFound = 500;

}  // namespace

Context::Context(const DriverApi& api, int device) : api_(api), device_(device) {
  check(api_, api_.retain_context(&context_, device), "make a context");
}
Context::~Context() { api_.release_context(device_); }
void Context::use() const { check(api_, api_.set_context(context_), "use the device"); }

Stream::Stream(const DriverApi& api) : api_(api) {
  check(api_, api_.create_stream(&stream_, kStreamNonBlocking), "create a stream");
}
Stream::~Stream() { api_.destroy_stream(stream_); }
void Stream::wait(const std::string& action) const {
  check(api_, api_.synchronize_stream(stream_), action);
}

Pinned::Pinned(const DriverApi& api, size_t bytes) : api_(api) {
  check(api_, api_.allocate_pinned(&data_, bytes, kPinnedForAllContexts | kPinnedMapped),
        fmt::format("pin {} bytes of the host's memory", bytes));
}
Pinned::~Pinned() { api_.free_pinned(data_); }
DevicePointer Pinned::address() const {
  DevicePointer address = 0;
  check(api_, api_.device_pointer_of(&address, data_, 0), "map the host's memory");
  return address;
}

Module::Module(const DriverApi& api, const std::string& code) : api_(api) {
  // What the driver's compiler of PTX has against it; of machine code it says nothing.
  std::array<char, 1024> log{};
  std::array<int, 2> options = {kJitErrorLog, kJitErrorLogBytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  const Result result =
      api_.load_module(&module_, code.c_str(), options.size(), options.data(), values.data());
  try {
    check(api_, result, "load the kernel");
  } catch (Error& error) {
    if (log[0] != '\0') error.add_note(fmt::format("the driver says: {}", log.data()));
    throw;
  }
}
Module::~Module() { api_.unload_module(module_); }
void* Module::function(const std::string& name) const {
  void* function = nullptr;
  check(api_, api_.find_function(&function, module_, name.c_str()),
        fmt::format("find {} in the kernel", name));
  return function;
}
std::optional<DevicePointer> Module::variable(const std::string& name) const {
  DevicePointer pointer = 0;
  size_t bytes = 0;
  const Result result = api_.find_global(&pointer, &bytes, module_, name.c_str());
  if (result == kNotFound) return std::nullopt;
  check(api_, result, fmt::format("find {} in the kernel", name));
  return pointer;
}

Event::Event(const DriverApi& api, Timing timing) : api_(api) {
  check(api_, api_.create_event(&event_, timing == Timing::On ? 0 : kEventWithoutTiming),
        "create an event");
}
Event::~Event() { api_.destroy_event(event_); }
void Event::record(const Stream& stream) {
  check(api_, api_.record_event(event_, stream.handle()), "record an event");
}
void Event::wait(const std::string& action) const {
  check(api_, api_.synchronize_event(event_), action);
}
double Event::seconds_until(const Event& end) const {
  float milliseconds = 0;
  check(api_, api_.event_milliseconds(&milliseconds, event_, end.event_),
        "read the time of a launch");
  return milliseconds * 1e-3;
}

void Graph::begin(const Stream& stream) {
  check(api_, api_.begin_capture(stream.handle(), kCaptureOfThisThread), "record launches");
}

void Graph::abandon(const Stream& stream) {
  void* graph = nullptr;
  if (api_.end_capture(stream.handle(), &graph) == 0 && graph != nullptr) api_.destroy_graph(graph);
}

void Graph::end(const Stream& stream) {
  void* graph = nullptr;
  check(api_, api_.end_capture(stream.handle(), &graph), "record launches");
  const Result result = api_.instantiate_graph(&executable_, graph, 0);
  api_.destroy_graph(graph);
  check(api_, result, "make a graph of launches");
}

Graph::~Graph() { api_.destroy_executable(executable_); }

void Graph::launch(const Stream& stream, const std::string& action) const {
  check(api_, api_.launch_graph(executable_, stream.handle()), action);
}

}  // namespace kiln::cuda
