// Looks for NVIDIA's compilers, which Kiln neither ships nor needs to be built. Nothing is kept:
// they may be installed while the process runs.
#include "compiler/codegen/cuda_folders.h"

#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;

/// Where NVIDIA's wheels put their files: 13, and NVRTC of the versions before it.
void add_packages(const fs::path& packages, std::vector<fs::path>& folders) {
  folders.push_back(packages / "nvidia" / "cu13");
  folders.push_back(packages / "nvidia" / "cuda_nvrtc");
}

/// The folder of Python packages that PACKAGES/kiln_daemon/libexec/kiln-worker, as the wheel has
/// it, is in; elsewhere a folder without NVRTC.
fs::path packages_of_this_program() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return program.parent_path().parent_path().parent_path();
}

/// The folders of Python packages under an installation prefix.
void add_site_packages(const fs::path& prefix, std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(prefix / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    add_packages(entry.path() / "site-packages", folders);
    add_packages(entry.path() / "dist-packages", folders);
  }
}

/// The prefix of the python3 that PATH finds first.
std::optional<fs::path> python_prefix() {
  const char* path = std::getenv("PATH");
  std::istringstream parts(path != nullptr ? path : "");
  std::error_code ignored;
  for (std::string folder; std::getline(parts, folder, ':');) {
    const fs::path python = fs::path(folder) / "python3";
    if (fs::exists(python, ignored)) return fs::path(folder).parent_path();
  }
  return std::nullopt;
}

}  // namespace

std::vector<fs::path> cuda_folders() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) folders.emplace_back(home);
  folders.emplace_back("/usr/local/cuda");
  add_packages(packages_of_this_program(), folders);
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_site_packages(environment, folders);
  if (const std::optional<fs::path> prefix = python_prefix()) add_site_packages(*prefix, folders);
  if (const char* home = std::getenv("HOME")) add_site_packages(fs::path(home) / ".local", folders);
  return folders;
}

}  // namespace kiln::codegen
