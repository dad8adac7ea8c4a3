// Starts a program in a process group of its own, so that what it starts can be ended with it, and
// reads what it writes until it has ended.
#include "compiler/codegen/run_program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::codegen {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutput = 64 << 10;
constexpr int kMillisecondsBetweenLooks = 20;

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// 0, or why it was not started.
int start(std::vector<std::string> words, std::vector<std::string> environment, int output,
          pid_t& child) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int failed = ::posix_spawn(&child, words[0].c_str(), &files, &attributes,
                                   pointers_to(words).data(), pointers_to(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return failed;
}

/// A program that runs, and what is left to it.
class Running {
 public:
  Running(pid_t child, const RunLimits& limits)
      : child_(child), limits_(limits), end_(Clock::now() + limits.clock) {}

  /// Exited: nothing is over yet.
  ProgramEnd::Kind excess() const {
    if (processor_time() >= limits_.processor) return ProgramEnd::Kind::TookTooMuch;
    if (Clock::now() >= end_) return ProgramEnd::Kind::TookTooLong;
    return ProgramEnd::Kind::Exited;
  }

  /// Until nobody writes any more, or a limit is reached.
  std::string read_all(int from) const {
    std::string output;
    std::array<char, 4096> part{};
    pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
    while (excess() == ProgramEnd::Kind::Exited) {
      const int count = ::poll(&ready, 1, kMillisecondsBetweenLooks);
      if (count == 0 || (count < 0 && errno == EINTR)) continue;
      const ssize_t bytes = count < 0 ? count : ::read(from, part.data(), part.size());
      if (bytes <= 0) break;
      const size_t room = kMostOutput - output.size();
      output.append(part.data(), std::min(static_cast<size_t>(bytes), room));
    }
    return output;
  }

  /// Until it has ended, or a limit is reached. It may close its outputs and go on.
  ProgramEnd::Kind wait(int& status) const {
    while (::waitpid(child_, &status, WNOHANG) == 0) {
      const ProgramEnd::Kind reached = excess();
      if (reached != ProgramEnd::Kind::Exited) return reached;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return ProgramEnd::Kind::Exited;
  }

 private:
  /// Of all its threads. Of a program that has just ended there is no clock.
  std::chrono::nanoseconds processor_time() const {
    clockid_t clock = 0;
    timespec time{};
    if (::clock_getcpuclockid(child_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
      return std::chrono::nanoseconds(0);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  const pid_t child_;
  const RunLimits limits_;
  const Clock::time_point end_;
};

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words,
                       const std::vector<std::string>& environment, const RunLimits& limits) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {ProgramEnd::Kind::NotStarted, errno, ""};
  pid_t child = 0;
  const int failed = start(words, environment, pipe[1], child);
  ::close(pipe[1]);
  ProgramEnd result;
  int status = 0;
  if (failed != 0) {
    result = {ProgramEnd::Kind::NotStarted, failed, ""};
  } else {
    const Running running(child, limits);
    result.output = running.read_all(pipe[0]);
    result.kind = running.wait(status);
    if (result.kind != ProgramEnd::Kind::Exited) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
    } else if (WIFSIGNALED(status)) {
      result.kind = ProgramEnd::Kind::Killed;
      result.code = WTERMSIG(status);
    } else {
      result.code = WEXITSTATUS(status);
    }
  }
  ::close(pipe[0]);
  return result;
}

}  // namespace kiln::codegen
