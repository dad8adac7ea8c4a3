// Code for the fake devices: a kernel of its own, or shared objects. These come as bytes, as code
// for a GPU does, so they are opened through a file in memory.
#include "tests/cuda/fake/modules.h"

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/core/kernel_abi.h"
#include "tests/cuda/host/checks.h"

namespace kiln::fake {
namespace {

constexpr int kInvalidImage = 200;

template <typename T>
T argument(void** parameters, int number) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
  std::memcpy(&value, parameters[number], sizeof value);
  return value;
}

/// y[i] = x[i] + 1 for i < n. A negative x[i] fires check 0 with i as its index. The parameters are
/// x, y, n, the stride of x, the stride of y, workspace, fault.
int add_one(const Launch&, void** parameters) {
  const auto* const x = argument<const float*>(parameters, 0);
  auto* const y = argument<float*>(parameters, 1);
  const auto n = argument<int64_t>(parameters, 2);
  auto* const fault = argument<KilnDeviceFault*>(parameters, 6);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] < 0 && fault != nullptr) {
      *fault = {0, 0, i, n};
      return 0;
    }
    y[i] = x[i] + 1;
  }
  return 0;
}

/// y[i] = x[i] + 10 for i < n, as code made of tiles is called: a block is said to be one thread,
/// and its parameters are x, y and n. Which code ran, its results say.
int add_ten(const Launch& launch, void** parameters) {
  constexpr int kInvalidValue = 1;
  for (const unsigned extent : launch.block)
    if (extent != 1) return kInvalidValue;
  const auto* const x = argument<const float*>(parameters, 0);
  auto* const y = argument<float*>(parameters, 1);
  const auto n = argument<int64_t>(parameters, 2);
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] + 10;
  return 0;
}

/// Of two launches of code made of tiles: the first leaves x[i] + 10 in the workspace, which its
/// parameters have behind the strides, and the second stores twice that to y.
int leave_ten(const Launch&, void** parameters) {
  const auto* const x = argument<const float*>(parameters, 0);
  const auto n = argument<int64_t>(parameters, 2);
  auto* const workspace = argument<float*>(parameters, 5);
  for (int64_t i = 0; i < n; ++i)
    workspace[i] = x[i] + 10;
  return 0;
}
int double_what_was_left(const Launch&, void** parameters) {
  auto* const y = argument<float*>(parameters, 1);
  const auto n = argument<int64_t>(parameters, 2);
  const auto* const workspace = argument<const float*>(parameters, 5);
  for (int64_t i = 0; i < n; ++i)
    y[i] = 2 * workspace[i];
  return 0;
}

/// Reads beside its memory.
int fault(const Launch&, void**) { return 700; }

/// Never ends.
int hang(const Launch&, void**) {
  while (true)
    ::pause();
}

/// The one that generated code has. It is zero at first, as on a GPU.
const std::string kVariable = "kiln_stopped";
/// Where those of all modules lie; outlives modules that are never unloaded.
std::set<uint64_t>& variables() {
  static auto& variables = *new std::set<uint64_t>;
  return variables;
}

/// A shared object has its own length: sections stand last.
size_t length_of(const char* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + size_t{header.e_shentsize} * header.e_shnum;
}

}  // namespace

/// The file stays open: the loader knows objects by their paths, and this one has the number of the
/// file in it.
bool Module::open_object(const char* image) {
  file_ = ::memfd_create("kernel", MFD_CLOEXEC);
  if (file_ < 0) return false;
  const size_t length = length_of(image);
  if (::write(file_, image, length) != static_cast<ssize_t>(length)) return false;
  const std::string path = "/proc/self/fd/" + std::to_string(file_);
  library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) return false;
  if (const auto begin = reinterpret_cast<uint64_t>(variable(kVariable)); begin != 0) {
    variables().insert(begin);
    host::add_memory(begin, kVariableBytes);
    host::note_written(begin, kVariableBytes);
  }
  return true;
}

Module* Module::load(const char* image, int* result) {
  *result = 0;
  auto* module = new Module;
  // A poisoned context unloads nothing, as with the real driver; that is no leak of the runtime's.
  static auto& made = *new std::vector<const Module*>;
  made.push_back(module);
  for (const char* known : {"fake cubin", "fake ptx", "fake tiles"})
    if (std::strcmp(image, known) == 0) return module;
  if (std::memcmp(image, ELFMAG, SELFMAG) == 0 && module->open_object(image)) return module;
  delete module;
  *result = kInvalidImage;
  return nullptr;
}

Module::~Module() {
  if (const auto begin = reinterpret_cast<uint64_t>(variable(kVariable)); begin != 0) {
    variables().erase(begin);
    host::remove_memory(begin);
  }
  if (library_ != nullptr) ::dlclose(library_);
  if (file_ >= 0) ::close(file_);
}

void* Module::variable(const std::string& name) const {
  return library_ != nullptr ? ::dlsym(library_, name.c_str()) : nullptr;
}

bool Module::has_variable(uint64_t address) { return variables().contains(address); }

const Kernel* Module::find(const std::string& name) const {
  static const std::map<std::string, Kernel> kKnown = {
      {"add_one", {7, add_one}},     {"add_ten", {3, add_ten}},
      {"leave_ten", {6, leave_ten}}, {"double_what_was_left", {6, double_what_was_left}},
      {"fault", {0, fault}},         {"hang", {0, hang, true}}};
  if (library_ == nullptr) {
    const auto at = kKnown.find(name);
    return at != kKnown.end() ? &at->second : nullptr;
  }
  return static_cast<const Kernel*>(::dlsym(library_, (name + "_on_host").c_str()));
}

}  // namespace kiln::fake
