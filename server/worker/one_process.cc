// Workers as threads, with the same sockets and messages as processes, so that there is one
// protocol to test. What isolation gave is missing and is said in the header.
#include "server/worker/one_process.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "server/worker/roles.h"

namespace kiln::server {

namespace {

constexpr auto kEnding = std::chrono::seconds(2);  // of a thread whose socket is closed

/// A worker in a thread. It ends by itself once the front end has hung up.
v1::Component no_sandbox(const WorkerSpec& spec) {
  v1::Component part;
  part.set_name("sandbox of " + spec.name());
  part.set_message("none: with --isolation=none kernels run in the daemon's own process");
  return part;
}

class WorkerThread : public Child {
 public:
  WorkerThread(const WorkerSpec& spec, Fd socket, Fd page) : ending_(std::make_shared<Ending>()) {
    thread_ = std::thread(
        [spec, ending = ending_, socket = std::move(socket), page = std::move(page)]() mutable {
          run_role(
              spec, std::move(socket), std::move(page), no_sandbox(spec), [] {},
              std::make_shared<codegen::Tileiras>());
          const std::lock_guard lock(ending->mutex);
          ending->over = true;
          ending->changed.notify_one();
        });
  }
  ~WorkerThread() override {
    {
      std::unique_lock lock(ending_->mutex);
      ending_->changed.wait_for(lock, kEnding, [&] { return ending_->over; });
    }
    // A kernel that hangs cannot be ended; the rest of the service goes on without its thread.
    if (!ended()) thread_.detach();
  }
  int pid() const override { return ::getpid(); }
  void kill() override {}
  bool ended() override {
    {
      const std::lock_guard lock(ending_->mutex);
      if (!ending_->over) return false;
    }
    if (thread_.joinable()) thread_.join();
    return true;
  }
  bool was_killed() const override { return false; }

 private:
  struct Ending {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
  };
  const std::shared_ptr<Ending> ending_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Child> ThreadLauncher::start(const WorkerSpec& spec, Fd socket, Fd page) {
  return std::make_unique<WorkerThread>(spec, std::move(socket), std::move(page));
}

int run_role(const WorkerSpec& spec, Fd socket, Fd page, const v1::Component& sandbox,
             std::function<void()> abandoned,
             std::shared_ptr<const codegen::TileAssembler> assembler) {
  // What a worker says of itself, and of its sandbox; a device's also takes why there is no device.
  const auto and_sandbox = [&](auto parts) {
    return [parts = std::move(parts), sandbox](const auto&... absent) {
      std::vector<v1::Component> all = parts(absent...);
      all.push_back(sandbox);
      return all;
    };
  };
  if (spec.role == Role::Compiler) {
    CompilerWorker worker = kiln_compiler(std::move(assembler), spec.threads);
    worker.components = and_sandbox(std::move(worker.components));
    worker.abandoned = std::move(abandoned);
    return compiler_loop(worker, std::move(socket), std::move(page));
  }
  DeviceWorker worker =
      spec.role == Role::Cuda ? cuda_worker(spec.index) : cpu_worker(spec.threads);
  worker.components = and_sandbox(std::move(worker.components));
  worker.abandoned = std::move(abandoned);
  return device_loop(worker, std::move(socket), std::move(page));
}

}  // namespace kiln::server
