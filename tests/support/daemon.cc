// Starts the real kilnd as a user would, waits for its line `listening on ADDRESS`, and finds its
// workers by /proc.
#include "tests/support/daemon.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kiln::testing {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

// Far more than a start takes: sanitizers, and machines with too much to do.
constexpr auto kStartLimit = std::chrono::seconds(60);

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// As exec wants them; they point into `words`.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words)
    result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// Starts a program with these descriptors as its output and its errors.
pid_t spawn(std::vector<std::string> words, std::vector<std::string> environment, int output,
            int errors) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, words[0].c_str(), &files, nullptr, pointers(words).data(),
                                  pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + words[0]);
  return pid;
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "kiln-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Daemon::Daemon(Options options) {
  if (options.program.empty()) {
    const char* named = std::getenv("KILN_DAEMON");
    if (named == nullptr) throw std::runtime_error("KILN_DAEMON names no kilnd");
    options.program = named;
  }
  if (options.listen.empty()) options.listen = "unix:" + (folder() / "kilnd.sock").string();
  if (options.cache_dir.empty()) options.cache_dir = folder() / "cache";
  start(options);
}

void Daemon::start(const Options& options) {
  std::vector<std::string> words = {options.program, "--listen", options.listen, "--cache-dir",
                                    options.cache_dir.string()};
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  std::array<int, 2> output{};
  if (::pipe2(output.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  const int log =
      ::open((folder() / "kilnd.log").c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
  pid_ = spawn(words, options.environment, output[1], log);
  ::close(output[1]);
  ::close(log);

  std::string line;
  const Clock::time_point until = Clock::now() + kStartLimit;
  while (line.find('\n') == std::string::npos && Clock::now() < until) {
    pollfd readable{.fd = output[0], .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 100) <= 0) continue;
    char character = 0;
    if (::read(output[0], &character, 1) <= 0) break;
    line += character;
  }
  ::close(output[0]);
  constexpr std::string_view kGreeting = "listening on ";
  if (line.rfind(kGreeting, 0) != 0) {
    stop(milliseconds(0));
    throw std::runtime_error("kilnd did not start: " + line + this->log());
  }
  address_ = line.substr(kGreeting.size(), line.size() - kGreeting.size() - 1);
}

Daemon::~Daemon() {
  if (pid_ == 0) return;
  if (stop() == -1) {
    signal(SIGKILL);
    wait(std::chrono::seconds(10));
  }
}

std::string Daemon::log() const { return read_all(folder() / "kilnd.log"); }

std::vector<pid_t> Daemon::children(const std::string& program) const {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string status = read_all(entry.path() / "stat");
    const size_t after_name = status.rfind(')');
    if (after_name == std::string::npos) continue;
    // ") S PARENT ..."
    if (std::atoi(status.c_str() + after_name + 3) != pid_) continue;
    const std::string command = read_all(entry.path() / "cmdline");
    if (fs::path(command.c_str()).filename() == program) found.push_back(std::stoi(name));
  }
  return found;
}

void Daemon::signal(int number) const {
  if (pid_ != 0) ::kill(pid_, number);
}

int Daemon::wait(milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  while (pid_ != 0) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      exit_code_ = exit_code_of(status);
      break;
    }
    if (Clock::now() >= until) return -1;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return exit_code_;
}

int Daemon::stop(milliseconds limit) {
  signal(SIGTERM);
  return wait(limit);
}

Ended run_to_end(const std::string& program, const std::vector<std::string>& flags) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "output";
  const int output = ::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  std::vector<std::string> words = {program};
  words.insert(words.end(), flags.begin(), flags.end());
  const pid_t pid = spawn(words, {}, output, output);
  ::close(output);
  Ended ended;
  const Clock::time_point until = Clock::now() + std::chrono::seconds(20);
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() >= until) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      break;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  ended.exit_code = exit_code_of(status);
  ended.output = read_all(path);
  return ended;
}

}  // namespace kiln::testing
