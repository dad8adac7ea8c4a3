#include "tests/client/cli/command.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/npy.h"

extern char** environ;

namespace kiln::test {
namespace {

constexpr auto kLongest = std::chrono::seconds(60);

int wait_for(pid_t pid) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Workplace::Workplace() {
  std::string name = (std::filesystem::temp_directory_path() / "kiln-cli-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  folder_ = name;
  // No test finds the daemon or the settings of whoever runs it.
  environment = {{"KILN_DAEMON", "/nowhere/kilnd"},
                 {"KILN_ADDRESS", ""},
                 {"XDG_RUNTIME_DIR", name},
                 {"XDG_CACHE_HOME", name}};
}

Workplace::~Workplace() { std::filesystem::remove_all(folder_); }

std::string Workplace::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
  return name;
}

std::string Workplace::read(const std::string& name) const {
  std::ifstream in(folder_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string Workplace::write_array(const std::string& name, const std::vector<float>& values,
                                   const std::vector<std::int64_t>& shape) const {
  cli::write_npy(folder_ / name, Array(values, shape));
  return name;
}

Finished Workplace::kiln(const std::vector<std::string>& arguments) const {
  std::vector<std::string> words{"env"};
  for (const auto& [name, value] : environment) {
    words.push_back(fmt::format("{}={}", name, value));
  }
  words.push_back(KILN_PROGRAM);
  words.insert(words.end(), arguments.begin(), arguments.end());
  // An empty KILN_ADDRESS is not the same as none.
  if (environment.at("KILN_ADDRESS").empty()) {
    words.erase(std::find(words.begin(), words.end(), "KILN_ADDRESS="));
    words.insert(words.begin() + 1, {"-u", "KILN_ADDRESS"});
  }
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const std::string in = input.empty() ? "/dev/null" : folder_ / input;
  posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
  const int make = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 1, (folder_ / ".out").c_str(), make, 0600);
  posix_spawn_file_actions_addopen(&files, 2, (folder_ / ".err").c_str(), make, 0600);
  posix_spawn_file_actions_addchdir_np(&files, folder_.c_str());
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, "/usr/bin/env", &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("posix_spawn");
  const int code = wait_for(pid);
  return {code, read(".out"), read(".err")};
}

}  // namespace kiln::test
