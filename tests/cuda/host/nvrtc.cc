// An NVRTC for machines without a GPU: "compiles" CUDA C by the host's C++ compiler, watched as for
// the thread sanitizer, to a shared object that the fake libcuda runs. FAKE_NVRTC_COMPILER names
// the compiler (c++). Only what Kiln asks of NVRTC is there.
//
//   __global__ void k(float* x)  ->  an object with k_on_host: how many parameters, and how it runs
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace {

constexpr int kCompilation = 6;
constexpr int kInvalidOption = 5;

struct Program {
  std::string source;
  std::string log;
  std::string object;
};

/// A folder that is gone afterwards.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kiln-nvrtc-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool run(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t pid = 0;
  const int started =
      ::posix_spawnp(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  int status = 0;
  return started == 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

/// Shared memory that the launch asks for is an array here, of as many bytes as the source says
/// behind it.
std::string with_shared_memory(const std::string& source) {
  static const std::regex piece(R"(extern (__shared__ [^;\n]*)\[\];\s*// (\d+) bytes)");
  return std::regex_replace(source, piece, "$1[$2];");
}

std::string with_launchers(const std::string& source) {
  std::string text =
      "#include \"tests/cuda/host/cuda_host.h\"\n#line 1 \"gen.cu\"\n" + source + "\n";
  static const std::regex kernel(
      R"(__global__[^;{(]*(?:\([^)]*\)[^;{(]*)?\b(\w+)\s*\([^)]*\)\s*\{)");
  std::set<std::string> names;
  for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at)
    names.insert((*at)[1]);
  for (const std::string& name : names)
    text += "KILN_HOST_KERNEL(" + name + ")\n";
  return text;
}

/// The source without what the environment names by its number, if it does.
std::string without(const char* variable, const std::regex& what, std::string source) {
  const char* const without = std::getenv(variable);
  if (without == nullptr) return source;
  std::sregex_iterator at(source.begin(), source.end(), what);
  const std::sregex_iterator end;
  for (int left = std::atoi(without); left > 0 && at != end; --left)
    ++at;
  if (at == end) return source;
  return source.erase(static_cast<size_t>(at->position()), static_cast<size_t>(at->length()));
}

/// The source without one of its barriers, or of what it awaits.
std::string as_wanted(const std::string& source) {
  static const std::regex barrier(R"(__sync(threads|warp)\(\);)");
  static const std::regex await(R"(kiln_await<\d>\(\);)");
  return without("FAKE_NVRTC_WITHOUT_AWAIT", await,
                 without("FAKE_NVRTC_WITHOUT_BARRIER", barrier, source));
}

int compile(Program& program) {
  const Folder folder;
  const std::string source = folder.file("gen.cc");
  const std::string object = folder.file("gen.o");
  const std::string shared = folder.file("gen.so");
  const std::string log = folder.file("log");
  std::ofstream(source) << with_launchers(with_shared_memory(as_wanted(program.source)));
  const char* given = std::getenv("FAKE_NVRTC_COMPILER");
  const std::string compiler = given != nullptr ? given : "c++";
  std::vector<std::string> words = {compiler, "-c"};
  std::istringstream flags(FAKE_NVRTC_FLAGS);
  for (std::string flag; flags >> flag;)
    words.push_back(flag);
  // A compiler that did not precompile the header finds it behind.
  for (const char* const word :
       {"-I", FAKE_NVRTC_PRECOMPILED, "-I", FAKE_NVRTC_ROOT, "-o", object.c_str(), source.c_str()})
    words.emplace_back(word);
  const bool done =
      run(words, log) &&
      // Without the sanitizer's own library: the fake driver has what watched code calls.
      run({compiler, "-shared", "-o", shared, object, FAKE_NVRTC_LIBCUDA}, log);
  program.log = contents(log);
  program.object = contents(shared);
  return done ? 0 : kCompilation;
}

template <typename Text>
int size_of(const Text& text, size_t* bytes, size_t extra) {
  *bytes = text.size() + extra;
  return 0;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  auto* const made = new Program;
  made->source = source;
  return *program = made, 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return *program = nullptr, 0;
}
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  for (int i = 0; i < count; ++i) {
    // Of architectures it knows those of CUDA 13.
    static const std::regex known(R"(--gpu-architecture=sm_(75|8[0679]|90a?|1[012][01])a?)");
    if (std::strstr(options[i], "--gpu-architecture") != nullptr &&
        !std::regex_match(options[i], known)) {
      return kInvalidOption;
    }
  }
  return compile(*static_cast<Program*>(program));
}
int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  return size_of(static_cast<Program*>(program)->log, bytes, 1);
}
int nvrtcGetProgramLog(void* program, char* text) {
  return std::strcpy(text, static_cast<Program*>(program)->log.c_str()), 0;
}
int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  return size_of(static_cast<Program*>(program)->object, bytes, 0);
}
int nvrtcGetCUBIN(void* program, char* bytes) {
  const std::string& object = static_cast<Program*>(program)->object;
  return std::memcpy(bytes, object.data(), object.size()), 0;
}
int nvrtcGetPTXSize(void*, size_t* bytes) { return *bytes = 1, 0; }
int nvrtcGetPTX(void*, char* text) { return *text = '\0', 0; }
const char* nvrtcGetErrorString(int result) {
  return result == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INVALID_OPTION";
}
}
