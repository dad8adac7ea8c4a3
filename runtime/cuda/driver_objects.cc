// Takes from the driver and gives back: one class for each thing that it hands out, so that no
// owner of several has to think of those it has already when the next one fails.
#include "runtime/cuda/driver_objects.h"

#include <fmt/format.h>

#include "runtime/cuda/driver_errors.h"

namespace kiln::cuda {

Memory::Memory(const DriverApi& api, int64_t bytes) : api_(api) {
  if (bytes == 0) return;
  check(api_, api_.allocate(&pointer_, static_cast<size_t>(bytes)),
        fmt::format("allocate {} bytes", bytes));
}
Memory::~Memory() {
  if (pointer_ != 0) api_.free(pointer_);
}

Context::Context(const DriverApi& api, int device) : api_(api), device_(device) {
  check(api_, api_.retain_context(&context_, device), "make a context");
}
Context::~Context() { api_.release_context(device_); }
void Context::use() const { check(api_, api_.set_context(context_), "use the device"); }

Module::Module(const DriverApi& api, const std::string& code) : api_(api) {
  check(api_, api_.load_module(&module_, code.data()), "load the kernel");
}
Module::~Module() { api_.unload_module(module_); }
void* Module::function(const std::string& name) const {
  void* function = nullptr;
  check(api_, api_.find_function(&function, module_, name.c_str()),
        fmt::format("find {} in the kernel", name));
  return function;
}

Event::Event(const DriverApi& api) : api_(api) {
  check(api_, api_.create_event(&event_, 0), "create an event");
}
Event::~Event() { api_.destroy_event(event_); }
void Event::record() { check(api_, api_.record_event(event_, nullptr), "record an event"); }
double Event::seconds_until(const Event& end) const {
  float milliseconds = 0;
  check(api_, api_.event_milliseconds(&milliseconds, event_, end.event_),
        "read the time of a launch");
  return milliseconds * 1e-3;
}

}  // namespace kiln::cuda
