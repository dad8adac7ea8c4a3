// Compiles CUDA C with NVRTC. Options fix the arithmetic: a multiply-add may be contracted as on
// the CPU, unless it is to be strict; all else is rounded as IEEE 754 says. An option that NVRTC
// refuses can only be the architecture, which the user chose; a source that does not compile is our
// bug.
#include "compiler/codegen/nvrtc.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "compiler/codegen/nvrtc_library.h"
#include "runtime/core/error.h"

namespace kiln::codegen {
namespace {

/// One program of NVRTC.
class Program {
 public:
  Program(const NvrtcLibrary& library, const std::string& source) : library_(library) {
    check(library_.create_program(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr));
  }
  ~Program() { library_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int compile(const std::vector<const char*>& options) {
    return library_.compile_program(program_, static_cast<int>(options.size()), options.data());
  }

  std::string log() { return without_nul(text(library_.log_size, library_.log)); }
  std::string cubin() { return text(library_.cubin_size, library_.cubin); }
  std::string ptx() { return without_nul(text(library_.ptx_size, library_.ptx)); }

 private:
  /// Sizes of texts count the NUL of C.
  static std::string without_nul(std::string text) {
    while (text.ends_with('\0'))
      text.pop_back();
    return text;
  }

  std::string text(int (*size)(void*, size_t*), int (*read)(void*, char*)) {
    size_t bytes = 0;
    check(size(program_, &bytes));
    std::string result(bytes, '\0');
    check(read(program_, result.data()));
    return result;
  }

  void check(int result) {
    if (result == 0) return;
    fail(ErrorKind::Internal, "NVRTC", "NVRTC failed: {}", library_.error_text(result));
  }

  const NvrtcLibrary& library_;
  void* program_ = nullptr;
};

/// The first line that says "error", or the first line.
std::string first_error(const std::string& log) {
  const size_t at = log.find("error");
  size_t begin = at == std::string::npos ? 0 : log.rfind('\n', at);
  begin = begin == std::string::npos ? 0 : begin + (log[begin] == '\n' ? 1 : 0);
  return log.substr(begin, log.find('\n', begin) - begin);
}

/// "sm_90", "sm_90a", "sm_120"
bool is_arch(std::string_view arch) {
  return arch.starts_with("sm_") && arch.size() >= 5 && arch.size() <= 7 &&
         std::isdigit(static_cast<unsigned char>(arch[3])) != 0 &&
         std::all_of(arch.begin() + 3, arch.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

void check_cuda_arch(std::string_view arch) {
  if (is_arch(arch)) return;
  fail(ErrorKind::InvalidArgument, "ARCH",
       "{} is not an architecture of CUDA; they are written like sm_90", arch);
}

CudaBinary compile_cuda_source(const std::string& source, const CudaOptions& options) {
  const std::string_view arch = options.arch;
  check_cuda_arch(arch);  // before it becomes part of an option
  const NvrtcLibrary& library = nvrtc_library();
  Program program(library, source);
  const std::string arch_option = fmt::format("--gpu-architecture={}", arch);
  // Contraction as on the CPU; the rest exact: no flush to zero, correctly rounded division.
  const char* contraction = options.strict ? "--fmad=false" : "--fmad=true";
  std::vector<const char*> wanted = {arch_option.c_str(), "--std=c++17",      contraction,
                                     "--prec-div=true",   "--prec-sqrt=true", "--ftz=false"};
  int major = 0;
  int minor = 0;
  library.version(&major, &minor);
  // Textures and functions of CUDA's runtime, which generated code never names, are 4 ms of each.
  if (major >= 13) wanted.push_back("--minimal");
  if (options.strict) wanted.push_back("--define-macro=KILN_STRICT");
  if (options.lines) wanted.push_back("--generate-line-info");
  const int result = program.compile(wanted);
  if (result == kNvrtcInvalidOption) {
    fail(ErrorKind::InvalidArgument, "ARCH", "NVRTC {}.{} does not compile for {}", major, minor,
         arch);
  }
  if (result != 0) {
    fail(ErrorKind::Internal, "CUDA_SOURCE", "the CUDA C made from the kernel does not compile: {}",
         first_error(program.log()));
  }
  return {program.cubin(), program.ptx()};
}

std::string describe_nvrtc() {
  const NvrtcVersion version = nvrtc_version();
  return fmt::format("NVRTC {}.{} in {}", version.major, version.minor, version.path);
}

}  // namespace kiln::codegen
