// Asks nvdisasm, which comes with the CUDA toolkit and as a wheel of NVIDIA's, what a cubin says.
#include "client/cli/sass.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

std::string find_nvdisasm() {
  std::vector<fs::path> folders;
  if (const char* path = std::getenv("PATH")) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');)
      folders.emplace_back(part);
  }
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  folders.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& folder : folders) {
    const fs::path program = folder / "nvdisasm";
    if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program.string();
  }
  return "";
}

/// A file that is removed again.
class TemporaryFile {
 public:
  TemporaryFile() : path_((fs::temp_directory_path() / "kiln-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    if (file >= 0) ::close(file);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Whether the program ended well; its output goes to the file.
bool ends_well(std::vector<std::string> words, const std::string& output) {
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_TRUNC,
                                     0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0600);
  pid_t child = 0;
  const int failed =
      ::posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<std::string> disassembled(const std::string& cubin) {
  const std::string program = find_nvdisasm();
  if (program.empty() || cubin.empty()) return std::nullopt;
  const TemporaryFile code;
  const TemporaryFile text;
  std::ofstream(code.path(), std::ios::binary) << cubin;
  if (!ends_well({program, "--print-line-info", "--print-code", code.path()}, text.path()))
    return std::nullopt;
  std::ifstream in(text.path(), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

}  // namespace kiln::cli
