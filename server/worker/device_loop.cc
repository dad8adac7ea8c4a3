// A device process: keeps arenas and kernels under the numbers of the front end, runs one call at a
// time and measures it. Places come from the front end alone but are checked all the same: a wrong
// one would be a write anywhere.
//
//   add_arenas [7], load_kernel 3, exec {kernel 3, tensors [(7, 0), (7, 4096)]}  ->  done
#include "server/worker/device_loop.h"

#include <map>
#include <optional>
#include <string>

#include "kiln/internal/worker.pb.h"
#include "runtime/core/called.h"
#include "server/errors.h"
#include "server/ipc/channel.h"
#include "server/ipc/memfd.h"
#include "server/ipc/status_page.h"
#include "server/worker/exec_program.h"
#include "server/worker/heartbeat.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {

namespace {

/// One device with what the front end made known to it.
class DeviceServer {
 public:
  DeviceServer(Device& device, StatusPage& status) : device_(device), status_(status) {}

  void add_arenas(const internal::AddArenas& message, const std::vector<Fd>& fds) {
    KILN_CHECK(fds.size() == static_cast<size_t>(message.arenas_size()));
    for (size_t i = 0; i < fds.size(); ++i) {
      const internal::AddArena& arena = message.arenas(static_cast<int>(i));
      arenas_[arena.arena()] = Mapping(fds[i], static_cast<int64_t>(arena.bytes()));
    }
  }
  void drop_arenas(const internal::DropArenas& message) {
    for (const uint64_t arena : message.arenas())
      arenas_.erase(arena);
  }
  void load(const internal::LoadKernel& message);
  void unload(uint64_t kernel) { kernels_.erase(kernel); }
  internal::Done exec(const internal::Exec& message);
  internal::Done exec(const internal::ExecProgram& message);

 private:
  struct Kernel {
    KernelNames names;
    std::shared_ptr<LoadedKernel> loaded;
    std::optional<Error> failed;  // why it could not be loaded
  };

  const Kernel& kernel(uint64_t number) const;
  uint8_t* host_pointer(const internal::Place& place, int64_t bytes) const;
  void run(const Kernel& kernel, const internal::Exec& message, internal::Done& done);
  void measure(const Kernel& kernel, const KernelCall& call, const internal::Exec& message,
               internal::Done& done);

  Device& device_;
  StatusPage& status_;
  std::map<uint64_t, Mapping> arenas_;
  std::map<uint64_t, Kernel> kernels_;
};

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

uint8_t* DeviceServer::host_pointer(const internal::Place& place, int64_t bytes) const {
  const auto at = arenas_.find(place.arena());
  KILN_CHECK(at != arenas_.end());
  const auto offset = static_cast<int64_t>(place.offset());
  // Without a sum that could overflow.
  KILN_CHECK(offset >= 0 && bytes <= at->second.bytes() && offset <= at->second.bytes() - bytes);
  return at->second.data() + offset;
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
        .cancelled = status_.cancelled,
        .kernel =
            [this](uint64_t number) {
              const Kernel& found = kernel(number);
              return std::pair<std::shared_ptr<const LoadedKernel>, const KernelNames*>(
                  found.loaded, &found.names);
            },
        .pointer = [this](const internal::Place& place,
                          int64_t bytes) { return host_pointer(place, bytes); },
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
    run(kernel(message.kernel()), message, done);
  } catch (...) {
    *done.mutable_error() = to_wire(current_error());
  }
  return done;
}

void DeviceServer::run(const Kernel& kernel, const internal::Exec& message, internal::Done& done) {
  const Artifact& artifact = kernel.loaded->artifact();
  const auto count = static_cast<size_t>(message.tensors_size());
  KILN_CHECK(count == artifact.parameters.size());
  BoundCall bound;
  bound.scalars = {message.scalars().begin(), message.scalars().end()};
  bound.variant = static_cast<int>(message.variant());

  // A device of its own memory works on copies.
  const bool staged = !traits_of(device_.target()).is_host;
  std::vector<void*> pointers;
  std::vector<int64_t> bytes;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (size_t i = 0; i < count; ++i) {
    const internal::Place& place = message.tensors(static_cast<int>(i));
    bound.shapes.emplace_back(place.shape().begin(), place.shape().end());
    bytes.push_back(byte_size(artifact.parameters[i].type, bound.shapes.back()));
    uint8_t* const host = host_pointer(place, bytes.back());
    if (!staged) {
      pointers.push_back(host);
      continue;
    }
    buffers.push_back(device_.allocate(bytes.back()));
    pointers.push_back(buffers.back()->data());
    if (!artifact.parameters[i].is_output) device_.copy_in(pointers.back(), host, bytes.back());
  }

  const KernelCall call{.tensors = pointers,
                        .bound = &bound,
                        .names = &kernel.names,
                        .cancelled = &status_.cancelled};
  measure(kernel, call, message, done);
  for (size_t i = 0; staged && i < count; ++i) {
    if (!artifact.parameters[i].is_output) continue;
    const internal::Place& place = message.tensors(static_cast<int>(i));
    device_.copy_out(host_pointer(place, bytes[i]), pointers[i], bytes[i]);
  }
}

void DeviceServer::measure(const Kernel& kernel, const KernelCall& call,
                           const internal::Exec& message, internal::Done& done) {
  double total = 0;
  for (uint32_t m = 0; m < message.measurements(); ++m) {
    double seconds = 0;
    for (uint32_t run = 0; run < message.repeat(); ++run) {
      // Between runs; within one, the kernel looks itself.
      if (status_.cancelled.load(std::memory_order_relaxed) != 0) {
        fail(ErrorKind::Cancelled, "CANCELLED", "{} was cancelled", called(kernel.names.kernel));
      }
      seconds += device_.run(*kernel.loaded, call);
    }
    done.add_measured(seconds / message.repeat());
    total += seconds;
  }
  done.set_kernel_seconds(total);
}

internal::FromWorker hello_of(const DeviceWorker& worker, std::unique_ptr<Device>& device) {
  internal::FromWorker message;
  internal::Hello& hello = *message.mutable_hello();
  hello.set_protocol(kWorkerProtocol);
  for (v1::Component& part : worker.components())
    *hello.add_components() = std::move(part);
  try {
    device = worker.open();
    hello.mutable_device()->set_name(device->name());
    hello.mutable_device()->set_target(std::string(name_of(device->target())));
    hello.mutable_device()->set_arch(device->arch());
    worker.describe(*hello.mutable_device());
  } catch (...) {
    *hello.mutable_absent() = to_wire(current_error());
  }
  return message;
}

}  // namespace

int device_loop(const DeviceWorker& worker, Fd socket, Fd page) {
  try {
    Channel channel(std::move(socket), Channel::WhenFull::Wait);
    SharedStatus status(page);
    const Heartbeat heartbeat(status, channel.fd(), worker.abandoned);
    std::unique_ptr<Device> device;
    const internal::FromWorker hello = hello_of(worker, device);
    channel.send(hello);
    if (!device) return 0;

    DeviceServer server(*device, *status);
    internal::ToWorker message;
    internal::FromWorker reply;
    std::vector<Fd> fds;
    while (channel.receive(message, fds)) {
      switch (message.kind_case()) {
        case internal::ToWorker::kAddArenas: server.add_arenas(message.add_arenas(), fds); break;
        case internal::ToWorker::kDropArenas: server.drop_arenas(message.drop_arenas()); break;
        case internal::ToWorker::kLoadKernel: server.load(message.load_kernel()); break;
        case internal::ToWorker::kUnloadKernel:
          server.unload(message.unload_kernel().kernel());
          break;
        case internal::ToWorker::kExec:
        case internal::ToWorker::kExecProgram:
          *reply.mutable_done() = message.has_exec() ? server.exec(message.exec())
                                                     : server.exec(message.exec_program());
          channel.send(reply);
          // A driver that saw a fault answers nothing but that fault, until its process is new.
          if (reply.done().error().reason() == "DEVICE_FAULT") return 1;
          break;
        default: return 1;
      }
    }
    return 0;
  } catch (...) {
    current_error();  // logged; the front end sees the end of the worker
    return 1;
  }
}

}  // namespace kiln::server
