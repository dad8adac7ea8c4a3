// Finds and opens NVRTC at run time, so that Kiln is built and runs without a toolkit: first what
// the system's loader finds, then the toolkit's folders, then the wheels beside the one that this
// program came in (kiln-daemon[cuda] installs NVRTC there), then those of the Python in use, active
// environment first.
#include "compiler/codegen/nvrtc_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include <dlfcn.h>

#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;

// Newest first. 13 is what Kiln is tested with; 12 still knows architectures before sm_75.
const char* const kFileNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

/// Where NVIDIA's wheels put NVRTC: 13, and the versions before it.
void add_packages(const fs::path& packages, std::vector<fs::path>& folders) {
  folders.push_back(packages / "nvidia" / "cu13" / "lib");
  folders.push_back(packages / "nvidia" / "cuda_nvrtc" / "lib");
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

std::vector<fs::path> folders_to_search() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) {
    folders.push_back(fs::path(home) / "lib64");
    folders.push_back(fs::path(home) / "lib");
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  folders.emplace_back("/usr/local/cuda/lib");
  add_packages(packages_of_this_program(), folders);
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_site_packages(environment, folders);
  if (const std::optional<fs::path> prefix = python_prefix()) add_site_packages(*prefix, folders);
  if (const char* home = std::getenv("HOME")) add_site_packages(fs::path(home) / ".local", folders);
  return folders;
}

/// Every file that may be the library, best first.
std::vector<std::string> candidates() {
  if (const char* given = std::getenv("KILN_NVRTC")) return {given};
  std::vector<std::string> files(std::begin(kFileNames), std::end(kFileNames));
  std::error_code ignored;
  for (const fs::path& folder : folders_to_search()) {
    for (const char* name : kFileNames) {
      if (fs::exists(folder / name, ignored)) files.push_back((folder / name).string());
    }
  }
  return files;
}

template <typename Function>
bool find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

/// Where the loader found it, which a bare file name does not say.
std::string path_of(void* symbol, const std::string& otherwise) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : otherwise;
}

/// Nothing where it is not there, or lacks a function. Stays open for the rest of the process.
std::optional<NvrtcLibrary> open(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  NvrtcLibrary library{};
  const bool complete = find(handle, "nvrtcVersion", library.version) &&
                        find(handle, "nvrtcCreateProgram", library.create_program) &&
                        find(handle, "nvrtcDestroyProgram", library.destroy_program) &&
                        find(handle, "nvrtcCompileProgram", library.compile_program) &&
                        find(handle, "nvrtcGetProgramLogSize", library.log_size) &&
                        find(handle, "nvrtcGetProgramLog", library.log) &&
                        find(handle, "nvrtcGetCUBINSize", library.cubin_size) &&
                        find(handle, "nvrtcGetCUBIN", library.cubin) &&
                        find(handle, "nvrtcGetPTXSize", library.ptx_size) &&
                        find(handle, "nvrtcGetPTX", library.ptx) &&
                        find(handle, "nvrtcGetErrorString", library.error_text);
  if (!complete) {
    dlclose(handle);
    return std::nullopt;
  }
  library.handle = handle;
  library.path = path_of(reinterpret_cast<void*>(library.version), file);
  return library;
}

NvrtcLibrary open_any() {
  for (const std::string& file : candidates()) {
    if (std::optional<NvrtcLibrary> library = open(file)) return *std::move(library);
  }
  if (const char* given = std::getenv("KILN_NVRTC")) {
    fail(ErrorKind::Unavailable, "NO_NVRTC",
         "NVRTC could not be opened from {}, which KILN_NVRTC names; correct it, or unset it to "
         "have "
         "NVRTC searched",
         given);
  }
  fail(ErrorKind::Unavailable, "NO_NVRTC",
       "NVRTC (libnvrtc.so.13), which compiles CUDA kernels, was found neither by the system, nor "
       "in "
       "/usr/local/cuda, nor among Python's packages; install the CUDA toolkit 13.0, or run pip "
       "install nvidia-cuda-nvrtc==13.0.88, or let KILN_NVRTC name the file");
}

/// A failure is not kept: the library may be installed while the process runs.
struct Kept {
  std::mutex mutex;
  std::optional<NvrtcLibrary> library;
};
Kept& kept() {
  static Kept kept;
  return kept;
}

}  // namespace

const NvrtcLibrary& nvrtc_library() {
  const std::lock_guard lock(kept().mutex);
  std::optional<NvrtcLibrary>& library = kept().library;
  if (!library) library = open_any();
  return *library;
}

NvrtcVersion nvrtc_version() {
  const std::lock_guard lock(kept().mutex);
  const bool is_kept = kept().library.has_value();
  const NvrtcLibrary library = is_kept ? *kept().library : open_any();
  NvrtcVersion version{.path = library.path};
  library.version(&version.major, &version.minor);
  if (!is_kept) dlclose(library.handle);
  return version;
}

}  // namespace kiln::codegen
