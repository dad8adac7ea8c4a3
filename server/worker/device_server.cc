// What the messages of a device process mean. Places come from the front end alone but are checked
// all the same: a wrong one would be a write anywhere.
//
//   add_arenas [7], load_kernel 3, exec {kernel 3, tensors [(7, 0), (7, 4096)]}  ->  done
#include "server/worker/device_server.h"

#include <string>

#include "runtime/core/called.h"
#include "server/clock.h"
#include "server/errors.h"
#include "server/worker/exec_program.h"

namespace kiln::server {

void DeviceServer::load(const internal::LoadKernel& message) {
  Kernel& kernel = kernels_[message.kernel()];
  kernel.names.kernel = message.names().kernel();
  kernel.names.parameters = {message.names().parameters().begin(),
                             message.names().parameters().end()};
  kernel.names.sizes = {message.names().sizes().begin(), message.names().sizes().end()};
  kernel.names.stages = {message.names().stages().begin(), message.names().stages().end()};
  KILN_CHECK(message.names().files_size() == message.names().lines_size());
  for (int i = 0; i < message.names().lines_size(); ++i) {
    kernel.names.lines.push_back(
        {message.names().files(i), static_cast<int>(message.names().lines(i))});
  }
  try {
    kernel.loaded =
        device_.load(std::make_shared<const Artifact>(deserialize_artifact(message.artifact())));
  } catch (...) {
    // Kept for the call: a load has no answer of its own.
    kernel.failed = current_error();
  }
}

void DeviceServer::add_arenas(const internal::AddArenas& message, const std::vector<Fd>& fds) {
  KILN_CHECK(fds.size() == static_cast<size_t>(message.arenas_size()));
  const std::lock_guard lock(arenas_mutex_);
  for (size_t i = 0; i < fds.size(); ++i) {
    const internal::AddArena& arena = message.arenas(static_cast<int>(i));
    const auto bytes = static_cast<int64_t>(arena.bytes());
    auto mapping = std::make_shared<const Mapping>(fds[i], bytes);
    // One as small is of a tensor that the next call reads or writes; larger ones have huge pages.
    if (bytes < kHugePage) mapping->populate();
    arenas_[arena.arena()] = std::move(mapping);
  }
}

void DeviceServer::drop_arenas(const internal::DropArenas& message) {
  const std::lock_guard lock(arenas_mutex_);
  for (const uint64_t arena : message.arenas())
    arenas_.erase(arena);
}

HostPlace DeviceServer::host_place(const internal::Place& place, int64_t bytes) const {
  const std::lock_guard lock(arenas_mutex_);
  const auto at = arenas_.find(place.arena());
  KILN_CHECK(at != arenas_.end());
  const Mapping& arena = *at->second;
  const auto offset = static_cast<int64_t>(place.offset());
  // Without a sum that could overflow.
  KILN_CHECK(offset >= 0 && bytes <= arena.bytes() && offset <= arena.bytes() - bytes);
  return {at->second, arena.data() + offset};
}

const DeviceServer::Kernel& DeviceServer::kernel(uint64_t number) const {
  const auto at = kernels_.find(number);
  KILN_CHECK(at != kernels_.end());
  if (at->second.failed) throw *at->second.failed;
  return at->second;
}

internal::Done DeviceServer::exec(const internal::ExecProgram& message) {
  internal::Done done;
  done.set_call(message.call());
  for (const uint64_t kernel : message.unloads())
    unload(kernel);
  for (const internal::LoadKernel& kernel : message.loads())
    load(kernel);
  try {
    const ProgramHost host{
        .device = device_,
        .cancelled = begin(message.call_slot()).cancelled,
        .kernel =
            [this](uint64_t number) {
              const Kernel& found = kernel(number);
              return std::pair<std::shared_ptr<const LoadedKernel>, const KernelNames*>(
                  found.loaded, &found.names);
            },
        .pointer = [this](const internal::Place& place,
                          int64_t bytes) { return host_pointer(place, bytes); },
        .resident = [this](uint64_t resident,
                           int64_t bytes) { return residents().get(resident, bytes); },
    };
    double seconds = 0;
    *done.mutable_steps() = exec_program(host, message, seconds);
    done.set_kernel_seconds(seconds);
  } catch (...) {
    *done.mutable_error() = to_wire(current_error());
  }
  return done;
}

internal::Done DeviceServer::exec(const internal::Exec& message) {
  internal::Done done;
  done.set_call(message.call());
  try {
    const CallSlot& slot = begin(message.slot());
    run(kernel(message.kernel()), message, slot.cancelled, done);
  } catch (...) {
    *done.mutable_error() = to_wire(current_error());
  }
  return done;
}

CallSlot& DeviceServer::begin(uint32_t slot) {
  KILN_CHECK(slot < status_.calls.size());
  CallSlot& call = status_.calls[slot];
  CallState sent = CallState::Sent;
  if (!call.state.compare_exchange_strong(sent, CallState::Begun))
    fail(ErrorKind::Cancelled, "CANCELLED", "the call was taken back");
  return call;
}

void DeviceServer::run(const Kernel& kernel, const internal::Exec& message,
                       const std::atomic<int32_t>& cancelled, internal::Done& done) {
  const Artifact& artifact = kernel.loaded->artifact();
  const auto count = static_cast<size_t>(message.tensors_size());
  KILN_CHECK(count == artifact.parameters.size());
  BoundCall bound;
  bound.scalars = {message.scalars().begin(), message.scalars().end()};
  bound.variant = static_cast<int>(message.variant());

  const Clock::time_point begin = Clock::now();
  std::vector<void*> pointers;
  std::vector<Operand> operands;
  for (size_t i = 0; i < count; ++i) {
    const internal::Place& given = message.tensors(static_cast<int>(i));
    bound.shapes.emplace_back(given.shape().begin(), given.shape().end());
    operands.push_back(place(given, artifact.parameters[i]));
    pointers.push_back(operands.back().pointer());
  }
  done.set_upload_seconds(seconds_between(begin, Clock::now()));

  const KernelCall call{
      .tensors = pointers, .bound = &bound, .names = &kernel.names, .cancelled = &cancelled};
  measure(kernel, call, message, done);

  const Clock::time_point end = Clock::now();
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = operands[i];
    const bool stays = message.tensors(static_cast<int>(i)).resident() != 0;
    if (!artifact.parameters[i].is_output || !operand.buffer || stays) continue;
    device_.copy_out(operand.host, operand.pointer(), operand.bytes);
  }
  done.set_download_seconds(seconds_between(end, Clock::now()));
}

/// A device with memory of its own works on what it keeps, or on a copy for the call.
DeviceServer::Operand DeviceServer::place(const internal::Place& place,
                                          const Parameter& parameter) {
  Operand operand;
  const std::vector<int64_t> shape(place.shape().begin(), place.shape().end());
  operand.bytes = byte_size(parameter.type, shape);
  operand.host = host_pointer(place, operand.bytes);
  if (is_host()) return operand;
  bool has_contents = false;
  if (place.resident() != 0) {
    const ResidentTensors::Found found = residents().get(place.resident(), operand.bytes);
    operand.buffer = found.buffer;
    has_contents = !found.is_new && !place.is_newer();
  } else {
    operand.buffer = device_.allocate(operand.bytes);
  }
  if (!parameter.is_output && !has_contents) {
    device_.copy_in(operand.pointer(), operand.host, operand.bytes);
  }
  return operand;
}

void DeviceServer::stage(const internal::Stage& message) {
  const auto bytes = static_cast<int64_t>(message.bytes());
  residents().stage(message.place().resident(), host_place(message.place(), bytes), bytes);
}

void DeviceServer::fetch(const internal::Fetch& message) {
  const auto room = static_cast<int64_t>(message.room());
  residents().fetch(message, message.into() == 0 ? host_place(message.place(), room) : HostPlace{});
}

void DeviceServer::measure(const Kernel& kernel, const KernelCall& call,
                           const internal::Exec& message, internal::Done& done) {
  double total = 0;
  for (uint32_t m = 0; m < message.measurements(); ++m) {
    double seconds = 0;
    for (uint32_t run = 0; run < message.repeat(); ++run) {
      // Between runs; within one, the kernel looks itself.
      if (call.cancelled->load(std::memory_order_relaxed) != 0) {
        fail(ErrorKind::Cancelled, "CANCELLED", "{} was cancelled", called(kernel.names.kernel));
      }
      seconds += device_.run(*kernel.loaded, call);
    }
    done.add_measured(seconds / message.repeat());
    total += seconds;
  }
  done.set_kernel_seconds(total);
}

}  // namespace kiln::server
