// Starts a program in a process group of its own, so that what it starts can be ended with it, and
// reads what it writes until it has ended.
#include "compiler/codegen/run_program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
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

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

/// Until nobody writes any more, or the time is up.
std::string read_until(int from, Clock::time_point end) {
  std::string output;
  std::array<char, 4096> part{};
  pollfd ready{.fd = from, .events = POLLIN, .revents = 0};
  while (true) {
    const int count = ::poll(&ready, 1, milliseconds_until(end));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    const ssize_t bytes = ::read(from, part.data(), part.size());
    if (bytes <= 0) return output;
    const size_t room = kMostOutput - output.size();
    output.append(part.data(), std::min(static_cast<size_t>(bytes), room));
  }
}

/// Whether it ended in time. It may close its outputs and go on.
bool wait_until(pid_t child, Clock::time_point end, int& status) {
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words,
                       const std::vector<std::string>& environment,
                       std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
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
    result.output = read_until(pipe[0], end);
    if (!wait_until(child, end, status)) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      result.kind = ProgramEnd::Kind::Overran;
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
