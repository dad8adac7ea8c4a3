// Finds and opens NVRTC at run time, so that Kiln is built and runs without a toolkit: first what
// the system's loader finds, then what lies in the folders of toolkits and wheels.
#include "compiler/codegen/nvrtc_library.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include <dlfcn.h>

#include "compiler/codegen/cuda_folders.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;

// Newest first. 13 is what Kiln is tested with; 12 still knows architectures before sm_75.
const char* const kFileNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

/// Every file that may be the library, best first.
std::vector<std::string> candidates() {
  if (const char* given = std::getenv("KILN_NVRTC")) return {given};
  std::vector<std::string> files(std::begin(kFileNames), std::end(kFileNames));
  std::error_code ignored;
  for (const fs::path& folder : cuda_folders()) {
    for (const char* libraries : {"lib64", "lib"}) {
      for (const char* name : kFileNames) {
        const fs::path file = folder / libraries / name;
        if (fs::exists(file, ignored)) files.push_back(file.string());
      }
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

/// NVRTC opens its other half by name alone, which the loader knows where it is installed for all,
/// or here already: of a wheel, both lie in one folder. What is missing it says itself.
void open_builtins_beside(const std::string& library) {
  std::error_code ignored;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(library).parent_path(), ignored)) {
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so."))
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
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
  if (!library) {
    library = open_any();
    open_builtins_beside(library->path);
  }
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
