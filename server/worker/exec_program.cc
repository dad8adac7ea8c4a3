// Steps of a program in a device process: places become addresses, and run_steps() does the rest.
// On a device with memory of its own what was given is what the device keeps of it, so that only
// what changed here is copied there; what passes between kernels lives as long as these steps.
#include "server/worker/exec_program.h"

#include "runtime/core/error.h"
#include "runtime/program/run_steps.h"

namespace kiln::server {

namespace {

/// A slot on the host, and on a device of its own memory the copy of it there.
struct HostSlot {
  uint8_t* data = nullptr;
  int64_t bytes = 0;
  bool is_result = false;
  std::shared_ptr<DeviceBuffer> copy;
};

/// Memory of the device for the slot, with its contents.
std::shared_ptr<DeviceBuffer> copy_of(const ProgramHost& host, const internal::ProgramSlot& wire,
                                      const HostSlot& slot) {
  ResidentTensors::Found found;
  if (wire.place().resident() != 0) {
    found = host.resident(wire.place().resident(), slot.bytes);
  } else {
    found = {host.device.allocate(slot.bytes), true};
  }
  if (!wire.is_made() && (found.is_new || wire.place().is_newer()))
    host.device.copy_in(found.buffer->data(), slot.data, slot.bytes);
  return found.buffer;
}

std::vector<HostSlot> slots_of(const ProgramHost& host, const internal::ExecProgram& message) {
  // A device of its own memory works on copies.
  const bool is_staged = !traits_of(host.device.target()).is_host;
  std::vector<HostSlot> slots;
  for (const internal::ProgramSlot& wire : message.slots()) {
    HostSlot& slot = slots.emplace_back();
    slot.bytes = static_cast<int64_t>(wire.bytes());
    if (wire.is_data_set()) slot.bytes *= static_cast<int64_t>(message.batches());
    slot.data = host.pointer(wire.place(), slot.bytes);
    slot.is_result = wire.is_result();
    if (is_staged) slot.copy = copy_of(host, wire, slot);
  }
  return slots;
}

void add_kernels(const ProgramHost& host, const internal::ExecProgram& message, Step& step) {
  for (const internal::ProgramKernel& wire : message.kernels()) {
    StepKernel& kernel = step.kernels.emplace_back();
    std::tie(kernel.kernel, kernel.names) = host.kernel(wire.kernel());
    KILN_CHECK(static_cast<size_t>(wire.slots_size()) ==
               kernel.kernel->artifact().parameters.size());
    kernel.bound.scalars = {wire.scalars().begin(), wire.scalars().end()};
    kernel.bound.variant = static_cast<int>(wire.variant());
    for (const uint32_t slot : wire.slots()) {
      KILN_CHECK(slot < step.slots.size());
      kernel.slots.push_back(slot);
      const internal::Place& place = message.slots(static_cast<int>(slot)).place();
      kernel.bound.shapes.emplace_back(place.shape().begin(), place.shape().end());
    }
  }
}

StepNumber number_of(const internal::ProgramNumber& wire, const Step& step) {
  KILN_CHECK(wire.slot() < step.slots.size());
  const std::optional<DType> type = dtype_from_number(wire.type());
  KILN_CHECK(type && size_of(*type) <= step.slots[wire.slot()].bytes);
  return {wire.slot(), *type, wire.name()};
}

Step step_of(const ProgramHost& host, const internal::ExecProgram& message,
             const std::vector<HostSlot>& slots) {
  Step step;
  step.program = message.program();
  step.batches = message.batches();
  for (size_t i = 0; i < slots.size(); ++i) {
    const internal::ProgramSlot& wire = message.slots(static_cast<int>(i));
    void* const data = slots[i].copy ? slots[i].copy->data() : slots[i].data;
    step.slots.push_back({data, static_cast<int64_t>(wire.bytes()), wire.is_data_set()});
  }
  add_kernels(host, message, step);
  for (const internal::ProgramExchange& wire : message.exchanges()) {
    KILN_CHECK(wire.parameter() < slots.size() && wire.value() < slots.size());
    KILN_CHECK(slots[wire.parameter()].bytes == slots[wire.value()].bytes);
    step.exchanges.emplace_back(wire.parameter(), wire.value());
  }
  for (const internal::ProgramNumber& report : message.reports())
    step.reports.push_back(number_of(report, step));
  if (message.has_until()) step.until = number_of(message.until(), step);
  if (message.has_step_slot()) {
    KILN_CHECK(message.step_slot() < slots.size());
    step.step_slot = message.step_slot();
  }
  return step;
}

}  // namespace

internal::StepsDone exec_program(const ProgramHost& host, const internal::ExecProgram& message,
                                 double& seconds) {
  const std::vector<HostSlot> slots = slots_of(host, message);
  const Step step = step_of(host, message, slots);
  const auto copy_back = [&] {
    for (const HostSlot& slot : slots) {
      if (slot.copy && slot.is_result)
        host.device.copy_out(slot.data, slot.copy->data(), slot.bytes);
    }
  };
  StepsDone done;
  try {
    done = run_steps(host.device, step,
                     {.begin = message.begin(),
                      .end = message.end(),
                      .number_of_first = message.number_of_first(),
                      .stop_on_nan = message.stop_on_nan(),
                      .at_pass = message.at_pass(),
                      .seconds = message.seconds()},
                     host.cancelled);
  } catch (const Error&) {
    copy_back();  // what the steps before have left
    throw;
  }
  copy_back();
  seconds = done.seconds;
  internal::StepsDone wire;
  wire.set_steps(done.steps);
  wire.set_ended(done.ended);
  wire.mutable_reports()->Add(done.reports.begin(), done.reports.end());
  return wire;
}

}  // namespace kiln::server
