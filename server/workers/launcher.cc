// Starts worker processes with posix_spawn: two descriptors in known places, default signals, a
// process group of their own. A child is reaped by its object alone, so nothing is sent to a pid
// that has become another's.
#include "server/workers/launcher.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "runtime/core/error.h"
#include "server/clock.h"
#include "server/workers/worker_fds.h"

extern char** environ;

namespace kiln::server {

namespace {

constexpr auto kEnding = std::chrono::milliseconds(500);  // of a process whose socket is closed

class Process : public Child {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  ~Process() override {
    kill();
    const auto until = Clock::now() + kEnding;
    while (!ended() && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int pid() const override { return pid_; }
  void kill() override {
    if (!reaped_) ::kill(pid_, SIGKILL);
  }
  bool ended() override {
    reaped_ = reaped_ || ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    return reaped_;
  }
  bool was_killed() const override {
    for (const auto until = Clock::now() + kEnding; Clock::now() < until;) {
      siginfo_t end{};
      // WNOWAIT leaves the child for ended() to reap.
      const int flags = WEXITED | WNOHANG | WNOWAIT;
      if (::waitid(P_PID, static_cast<id_t>(pid_), &end, flags) == 0 && end.si_pid != 0) {
        const bool by_signal = end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED;
        return by_signal && (end.si_status == SIGKILL || end.si_status == SIGTERM ||
                             end.si_status == SIGINT || end.si_status == SIGHUP);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

 private:
  const pid_t pid_;
  bool reaped_ = false;  // then the pid may be another's
};

/// How the child differs from this process: its two descriptors, no blocked signals, and a process
/// group of its own, so that Ctrl-C in a terminal reaches the daemon alone.
class SpawnSettings {
 public:
  SpawnSettings(int socket, int page) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_adddup2(&files_, socket, kWorkerSocketFd);
    ::posix_spawn_file_actions_adddup2(&files_, page, kWorkerPageFd);
    // Whoever reads our output reads the address we listen on, nothing of a worker.
    ::posix_spawn_file_actions_adddup2(&files_, STDERR_FILENO, STDOUT_FILENO);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t usual;
    ::sigemptyset(&none);
    ::sigemptyset(&usual);
    for (const int signal : {SIGTERM, SIGINT, SIGPIPE, SIGCHLD})
      ::sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &usual);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

/// A copy with a number that the child's own descriptors do not overwrite.
Fd out_of_the_way(Fd fd) {
  if (fd.get() > kWorkerPageFd) return fd;
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kWorkerPageFd + 1));
}

}  // namespace

std::string WorkerSpec::name() const {
  switch (role) {
    case Role::Cpu: return fmt::format("cpu:{}", index);
    case Role::Cuda: return fmt::format("cuda:{}", index);
    case Role::Compiler: return fmt::format("compiler {}", index);
  }
  return "worker";
}

std::unique_ptr<Child> ProcessLauncher::start(const WorkerSpec& spec, Fd socket, Fd page) {
  const bool compiler = spec.role == Role::Compiler;
  const std::string program = folder_ + "/kiln-worker";
  // One file, since wheels carry no links; lists of processes show what each of them does.
  std::vector<std::string> words = {compiler ? folder_ + "/kiln-compiler" : program,
                                    "--role",
                                    compiler                  ? "compiler"
                                    : spec.role == Role::Cuda ? "cuda"
                                                              : "cpu",
                                    "--index",
                                    std::to_string(spec.index),
                                    "--threads",
                                    std::to_string(spec.threads)};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const Fd child_socket = out_of_the_way(std::move(socket));
  const Fd child_page = out_of_the_way(std::move(page));
  const SpawnSettings settings(child_socket.get(), child_page.get());
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), settings.files(), settings.attributes(),
                                  arguments.data(), environ);
  if (error != 0) {
    fail(ErrorKind::Unavailable, "WORKER_START", "cannot start {}: {}", program,
         std::strerror(error));
  }
  return std::make_unique<Process>(pid);
}

}  // namespace kiln::server
