// Where kilnd may be: named, beside this program or library, in a Python package, on PATH. Every
// place that was looked at is kept, for the error that says there is none.
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "client/cpp/private_daemon.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> folders_on_path() {
  std::vector<fs::path> folders;
  std::istringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

/// Prefixes in which Python packages may be installed: the active environment, then that of the
/// python3 on PATH, then the user's own.
std::vector<fs::path> python_prefixes() {
  std::vector<fs::path> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = environment(name); !prefix.empty())
      prefixes.emplace_back(prefix);
  }
  for (const fs::path& folder : folders_on_path()) {
    if (is_program(folder / "python3")) {
      prefixes.push_back(folder.parent_path());
      break;
    }
  }
  if (const std::string home = environment("HOME"); !home.empty()) {
    prefixes.push_back(fs::path(home) / ".local");
  }
  return prefixes;
}

std::string find_in_python_package() {
  for (const fs::path& prefix : python_prefixes()) {
    std::error_code error;
    for (const auto& version : fs::directory_iterator(prefix / "lib", error)) {
      if (!version.path().filename().string().starts_with("python3")) continue;
      const fs::path daemon = version.path() / "site-packages" / "kiln_daemon" / "bin" / "kilnd";
      if (is_program(daemon)) return daemon;
    }
  }
  return "";
}

}  // namespace

std::vector<fs::path> folders_beside() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path());
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&folders_beside), &library) != 0 &&
      library.dli_fname != nullptr) {
    const fs::path file = fs::canonical(library.dli_fname, error);
    if (!error && file != program) folders.push_back(file.parent_path().parent_path() / "bin");
  }
  return folders;
}

std::string find_daemon(std::vector<std::string>& looked_at, const std::vector<fs::path>& beside) {
  if (const std::string named = environment("KILN_DAEMON"); !named.empty()) {
    looked_at.push_back("$KILN_DAEMON (" + named + ")");
    // Whoever names a daemon does not want another one.
    return is_program(named) ? named : "";
  }
  looked_at.push_back("$KILN_DAEMON (not set)");
  for (const fs::path& folder : beside) {
    looked_at.push_back(folder / "kilnd");
    if (is_program(folder / "kilnd")) return folder / "kilnd";
  }
  looked_at.push_back("the Python package kiln-daemon");
  if (const std::string found = find_in_python_package(); !found.empty()) return found;
  looked_at.push_back("PATH");
  for (const fs::path& folder : folders_on_path()) {
    if (is_program(folder / "kilnd")) return folder / "kilnd";
  }
  return "";
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
