// Finds and runs tileiras. Whatever happens to it is one sentence: there is always another way to
// machine code.
#include "compiler/codegen/tileiras.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <vector>

#include <unistd.h>

#include "compiler/codegen/cuda_folders.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;

template <typename... Args>
[[noreturn]] void refuse_for_now(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Unavailable, "TILEIRAS_NOW", format, std::forward<Args>(args)...);
}

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Unavailable, "TILEIRAS", format, std::forward<Args>(args)...);
}

/// For the files of one run.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code ignored;
    std::string name = (fs::temp_directory_path(ignored) / "kiln-tile-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      refuse_for_now("no folder could be made for the files of tileiras: {}", std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// That of this process, but for where it finds its libraries and puts its files.
std::vector<std::string> environment_of(const fs::path& program, const fs::path& temporary) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("CUDA_HOME=") && !text.starts_with("TMPDIR=")) result.emplace_back(text);
  }
  result.push_back("CUDA_HOME=" + program.parent_path().parent_path().string());
  result.push_back("TMPDIR=" + temporary.string());
  return result;
}

/// What it says, without the lines after the first.
std::string first_line(std::string_view output) {
  const std::string_view line = output.substr(0, output.find('\n'));
  return line.empty() ? "it says nothing" : std::string(line.substr(0, 200));
}

void require_success(const ProgramEnd& end, const std::string& program, const RunLimits& limits) {
  using Kind = ProgramEnd::Kind;
  switch (end.kind) {
    case Kind::NotStarted:
      refuse_for_now("{} could not be started: {}", program, std::strerror(end.code));
    case Kind::TookTooMuch:
      refuse_for_now("{} took more than {} ms of a processor", program, limits.processor.count());
    case Kind::TookTooLong:
      refuse_for_now("{} did not end within {} ms", program, limits.clock.count());
    case Kind::Killed:
      // As the system does when memory runs out.
      if (end.code == SIGKILL) refuse_for_now("{} was killed from outside", program);
      refuse("{} was ended by signal {}", program, end.code);
    case Kind::Exited:
      if (end.code == 0) return;
      refuse("{} failed with exit code {}: {}", program, end.code, first_line(end.output));
  }
}

/// The cubin of one module, by a run of its own.
std::string assemble_one(const std::string& program, const std::string& bytecode,
                         std::string_view arch, const RunLimits& limits) {
  const TemporaryFolder folder;
  const std::string input = (folder.path() / "kernel.tile").string();
  const std::string output = (folder.path() / "kernel.cubin").string();
  std::ofstream(input, std::ios::binary) << bytecode;
  const ProgramEnd end =
      run_program({program, fmt::format("--gpu-name={}", arch), "-o", output, input},
                  environment_of(program, folder.path()), limits);
  require_success(end, program, limits);
  std::ifstream made(output, std::ios::binary);
  std::string cubin((std::istreambuf_iterator<char>(made)), std::istreambuf_iterator<char>());
  if (!cubin.starts_with("\x7f"
                         "ELF"))
    refuse("{} made no machine code", program);
  return cubin;
}

}  // namespace

std::string find_tileiras() {
  std::error_code ignored;
  if (const char* given = std::getenv("KILN_TILEIRAS")) {
    if (fs::exists(given, ignored)) return fs::absolute(given, ignored).string();
    refuse("there is no program {}, which KILN_TILEIRAS names", given);
  }
  for (const fs::path& folder : cuda_folders()) {
    const fs::path program = folder / "bin" / "tileiras";
    if (fs::exists(program, ignored)) return program.string();
  }
  refuse(
      "tileiras, NVIDIA's compiler of Tile IR, was found neither in /usr/local/cuda nor among "
      "Python's packages; run pip install nvidia-cuda-tileiras, or let KILN_TILEIRAS name the "
      "program");
}

std::string Tileiras::program() const { return find_tileiras(); }

std::vector<std::string> Tileiras::assemble(std::span<const std::string> modules,
                                            std::string_view arch) const {
  const std::string program = find_tileiras();
  std::vector<std::future<std::string>> runs;
  for (const std::string& module : modules) {
    runs.push_back(std::async(std::launch::async, [&program, &module, arch, this] {
      return assemble_one(program, module, arch, limits_);
    }));
  }
  std::vector<std::string> cubins;
  for (std::future<std::string>& run : runs)
    cubins.push_back(run.get());
  return cubins;
}

}  // namespace kiln::codegen
