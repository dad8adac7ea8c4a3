// The daemon's program. It links neither LLVM nor a device: compilers and devices are programs
// beside it, unless --isolation=none has it become the one that holds them all.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <unistd.h>

#include "server/daemon.h"

namespace {

/// ../libexec beside the folder this program lies in.
std::filesystem::path workers_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "libexec";
}

/// Becomes `kiln-worker --all` with the same flags: front end and workers in one process.
int become_one_process(const std::filesystem::path& worker, int argc, char** argv) {
  std::vector<char*> words = {const_cast<char*>(worker.c_str()), const_cast<char*>("--all")};
  words.insert(words.end(), argv + 1, argv + argc);
  words.push_back(nullptr);
  ::execv(worker.c_str(), words.data());
  std::fprintf(stderr, "kilnd: cannot run %s: %s\n", worker.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto config = kiln::server::read_config(argc, argv, exit_code);
  if (!config) return exit_code;
  const std::filesystem::path folder = workers_folder();
  const std::filesystem::path worker = folder / "kiln-worker";
  if (::access(worker.c_str(), X_OK) != 0) {
    // Of a program that was copied alone: no attempt would end otherwise.
    std::fprintf(stderr,
                 "kilnd: cannot run its worker %s: %s; install kilnd with what belongs beside it\n",
                 worker.c_str(), std::strerror(errno));
    return 1;
  }
  if (config->isolation == "none") return become_one_process(worker, argc, argv);
  return kiln::server::run_daemon(*config,
                                  std::make_unique<kiln::server::ProcessLauncher>(folder.string()));
}
