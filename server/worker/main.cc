// The program of all workers. --role says which it is; --all runs front end and workers in this one
// process.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/prctl.h>
#include <unistd.h>

#include "server/daemon.h"
#include "server/worker/one_process.h"
#include "server/worker/process.h"
#include "server/worker/sandbox.h"
#include "server/worker/tile_helper.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {
namespace {

/// `kiln-worker --all FLAGS...`: kilnd with these flags, in this one process.
int run_all(int argc, char** argv) {
  std::vector<const char*> words = {argv[0]};
  words.insert(words.end(), argv + 2, argv + argc);
  int exit_code = 0;
  const auto config = read_config(static_cast<int>(words.size()), words.data(), exit_code);
  if (!config) return exit_code;
  return run_daemon(*config, std::make_unique<ThreadLauncher>());
}

int run_worker(int argc, char** argv) {
  std::string role = "cpu";
  WorkerSpec spec;
  CLI::App app("A worker of kilnd, which starts it.", "kiln-worker");
  app.add_option("--role", role, "cpu, cuda or compiler")
      ->check(CLI::IsMember({"cpu", "cuda", "compiler"}));
  app.add_option("--index", spec.index, "which device");
  app.add_option("--threads", spec.threads, "threads a kernel runs on");
  CLI11_PARSE(app, argc, argv);
  spec.role = role == "compiler" ? Role::Compiler : role == "cuda" ? Role::Cuda : Role::Cpu;
  // What ps and top show; the file is that of all workers.
  if (spec.role == Role::Compiler) ::prctl(PR_SET_NAME, "kiln-compiler");
  if (!become_worker()) {
    std::fprintf(stderr, "kiln-worker: only kilnd starts this program\n");
    return 2;
  }
  // Before there are threads, and before anything of a user's is here.
  // Debuggers, and stand-ins for NVRTC that start a compiler, need what the sandbox takes.
  const char* const wish = std::getenv("KILN_SANDBOX");
  const bool is_confined = wish == nullptr || std::string_view(wish) != "off";
  std::shared_ptr<const codegen::TileAssembler> assembler;
  if (spec.role == Role::Compiler) {
    assembler = is_confined ? start_tile_helper() : std::make_shared<codegen::Tileiras>();
  }
  const Sandbox sandbox =
      is_confined ? confine(spec.role) : Sandbox{.holds = {}, .lacks = {"KILN_SANDBOX is off"}};
  return run_role(
      spec, Fd(kWorkerSocketFd), Fd(kWorkerPageFd), component_of(sandbox, spec.name()),
      [] { ::_exit(0); }, std::move(assembler));
}

}  // namespace
}  // namespace kiln::server

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--all") return kiln::server::run_all(argc, argv);
  return kiln::server::run_worker(argc, argv);
}
