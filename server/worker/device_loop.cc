// A device process: reads the front end's messages and has them done, one call at a time.
//
// A device with memory of its own is served by two threads, of which one reads: whoever reads a
// call lets the other read before it runs the call, so that tensors come and go meanwhile, and no
// call waits for another thread to wake up (leader and followers; Schmidt et al., 2000).
#include "server/worker/device_loop.h"

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "server/errors.h"
#include "server/ipc/channel.h"
#include "server/worker/device_server.h"
#include "server/worker/heartbeat.h"
#include "server/worker/work_time.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {

namespace {

internal::FromWorker hello_of(const DeviceWorker& worker, std::unique_ptr<Device>& device) {
  internal::FromWorker message;
  internal::Hello& hello = *message.mutable_hello();
  hello.set_protocol(kWorkerProtocol);
  std::optional<Error> absent;
  try {
    device = worker.open();
    hello.mutable_device()->set_name(device->name());
    hello.mutable_device()->set_target(std::string(name_of(device->target())));
    hello.mutable_device()->set_arch(device->arch());
    worker.describe(*hello.mutable_device());
    hello.set_devices(static_cast<uint32_t>(worker.count()));
  } catch (...) {
    absent = current_error();
    *hello.mutable_absent() = to_wire(*absent);
  }
  for (v1::Component& part : worker.components(absent))
    *hello.add_components() = std::move(part);
  return message;
}

/// Reads messages and does what they say, in as many threads as call serve().
class DeviceLoop {
 public:
  DeviceLoop(Channel& channel, Device& device, StatusPage& status)
      : channel_(channel), server_(device, status, [this](const auto& answer, const auto& error) {
          send(answer);
          if (error) end_after(*error);
        }) {}

  /// Until the front end hangs up, or the process is of no use any more.
  void serve() {
    internal::ToWorker message;
    std::vector<Fd> fds;
    while (true) {
      std::unique_lock reading(reading_);
      if (is_ended_ || !channel_.receive(message, fds)) break;
      if (message.has_exec()) {
        run(message.exec(), reading);
      } else if (message.has_exec_program()) {
        run(message.exec_program(), reading);
      } else if (!note(message, fds)) {
        break;
      }
    }
    end();
  }
  void fail() {
    failed_ = true;
    end();
  }
  bool failed() const { return failed_; }

 private:
  /// What takes no time, before the next message is read.
  bool note(const internal::ToWorker& message, const std::vector<Fd>& fds);

  template <typename Message>
  void run(const Message& message, std::unique_lock<std::mutex>& reading) {
    internal::FromWorker reply;
    {
      const std::lock_guard running(running_);
      reading.unlock();
      const Clock::time_point begin = Clock::now();
      *reply.mutable_done() = server_.exec(message);
      *reply.mutable_done()->mutable_time() = work_time_since(begin);
    }
    send(reply);
    if (reply.done().has_error()) end_after(from_wire(reply.done().error()));
  }

  void send(const internal::FromWorker& answer) {
    try {
      channel_.send(answer);
    } catch (...) {
      current_error();  // logged; the front end is gone
      end();
    }
  }

  /// A driver that saw a fault answers nothing but that fault, until its process is new.
  void end_after(const Error& error) {
    if (error.reason() == "DEVICE_FAULT") fail();
  }
  void end() {
    is_ended_ = true;
    channel_.shut_down();
  }

  Channel& channel_;
  std::mutex reading_;
  std::mutex running_;  // calls, and what they run; taken by who reads
  std::atomic<bool> is_ended_{false};
  std::atomic<bool> failed_{false};
  DeviceServer server_;  // last: its threads answer
};

bool DeviceLoop::note(const internal::ToWorker& message, const std::vector<Fd>& fds) {
  switch (message.kind_case()) {
    case internal::ToWorker::kAddArenas: server_.add_arenas(message.add_arenas(), fds); break;
    case internal::ToWorker::kDropArenas: server_.drop_arenas(message.drop_arenas()); break;
    case internal::ToWorker::kStage: server_.stage(message.stage()); break;
    case internal::ToWorker::kFetch: server_.fetch(message.fetch()); break;
    case internal::ToWorker::kDropTensors: server_.drop_tensors(message.drop_tensors()); break;
    case internal::ToWorker::kLoadKernel: {
      const std::lock_guard running(running_);
      server_.load(message.load_kernel());
      break;
    }
    case internal::ToWorker::kUnloadKernel: {
      const std::lock_guard running(running_);
      server_.unload(message.unload_kernel().kernel());
      break;
    }
    default: failed_ = true; return false;
  }
  return true;
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
    DeviceLoop loop(channel, *device, *status);
    const auto serve = [&loop] {
      try {
        loop.serve();
      } catch (...) {
        current_error();  // logged; the front end sees the end of the worker
        loop.fail();
      }
    };
    std::thread second;
    if (!traits_of(device->target()).is_host) second = std::thread(serve);
    serve();
    if (second.joinable()) second.join();
    return loop.failed() ? 1 : 0;
  } catch (...) {
    current_error();  // logged; the front end sees the end of the worker
    return 1;
  }
}

}  // namespace kiln::server
