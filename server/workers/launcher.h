#pragma once

#include <memory>
#include <string>

#include "server/ipc/fd.h"

namespace kiln::server {

enum class Role { Cpu, Cuda, Compiler };

/// Which worker to start.
struct WorkerSpec {
  Role role = Role::Cpu;
  int index = 0;    // of the device, or in the pool
  int threads = 0;  // of a cpu worker; 0: as many as the process may use

  std::string name() const;  // "cpu:0", "cuda:0", "compiler 0"
};

/// A worker that was started.
class Child {
 public:
  /// Ends it, and waits a little for its end.
  virtual ~Child() = default;
  virtual int pid() const = 0;
  /// Ends it at once, whatever it does. It is given no chance to clean up.
  virtual void kill() = 0;
  /// After kill(): whether it is gone. Never waits: a process that waits for a driver or a disk
  /// ends when that answers.
  virtual bool ended() = 0;
  /// Before kill(), of one that hung up: whether a signal ended it that others send, and not its
  /// own fault. Waits a little for its end.
  virtual bool was_killed() const = 0;
};

/// Starts workers: as processes, or as threads of this one (--isolation=none).
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// `socket` and `page` are the worker's ends. Throws Unavailable WORKER_START.
  virtual std::unique_ptr<Child> start(const WorkerSpec& spec, Fd socket, Fd page) = 0;
};

/// Starts the program `kiln-worker` of a folder, under the name `kiln-compiler` where it compiles.
/// What it started ends with the thread that did.
class ProcessLauncher : public Launcher {
 public:
  explicit ProcessLauncher(std::string folder) : folder_(std::move(folder)) {}
  std::unique_ptr<Child> start(const WorkerSpec& spec, Fd socket, Fd page) override;

 private:
  const std::string folder_;
};

}  // namespace kiln::server
