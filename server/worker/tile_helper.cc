// A confined process starts no programs and writes no files, and tileiras is a program that writes
// some. So another process runs it, which no kernel has anything to do with: it is given bytecode,
// and gives back machine code or a sentence.
#include "server/worker/tile_helper.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

#include "kiln/internal/worker.pb.h"
#include "runtime/core/error.h"
#include "server/ipc/channel.h"
#include "server/worker/sandbox.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {
namespace {

namespace fs = std::filesystem;

/// Until the other side has gone.
void answer_all(Channel& channel, const codegen::TileAssembler& assembler) {
  internal::Assemble asked;
  std::vector<Fd> none;
  while (channel.receive(asked, none)) {
    internal::Assembled made;
    try {
      const std::vector<std::string> modules(asked.modules().begin(), asked.modules().end());
      for (std::string& cubin : assembler.assemble(modules, asked.arch()))
        made.add_cubins(std::move(cubin));
    } catch (const Error& error) {
      made.set_problem(error.message());
      made.set_for_now(error.reason() == "TILEIRAS_NOW");
    }
    channel.send(made);
  }
}

/// The life of the helper. It ends when the worker has, whatever ended that.
[[noreturn]] void serve(Fd socket) {
  ::prctl(PR_SET_NAME, "kiln-tiles");
  ::close(kWorkerSocketFd);
  ::close(kWorkerPageFd);
  std::error_code ignored;
  std::string folder = (fs::temp_directory_path(ignored) / "kiln-tiles-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) ::_exit(1);
  ::setenv("TMPDIR", folder.c_str(), 1);
  confine_assembler(folder);
  Channel channel(std::move(socket), Channel::WhenFull::Wait);
  try {
    answer_all(channel, codegen::Tileiras());
  } catch (const Error&) {
    // The worker has gone in the middle of it.
  }
  ::rmdir(folder.c_str());  // what was in it is gone with each run
  ::_exit(0);
}

class Helper : public codegen::TileAssembler {
 public:
  Helper(Fd socket, std::string program)
      : channel_(std::move(socket), Channel::WhenFull::Wait), program_(std::move(program)) {}

  std::vector<std::string> assemble(std::span<const std::string> modules,
                                    std::string_view arch) const override {
    internal::Assemble asked;
    asked.set_arch(std::string(arch));
    for (const std::string& module : modules)
      asked.add_modules(module);
    internal::Assembled made;
    if (!is_answered(asked, made))
      fail(ErrorKind::Unavailable, "TILEIRAS_NOW", "the process that runs tileiras has ended");
    if (!made.problem().empty()) {
      fail(ErrorKind::Unavailable, made.for_now() ? "TILEIRAS_NOW" : "TILEIRAS", "{}",
           made.problem());
    }
    KILN_CHECK(static_cast<size_t>(made.cubins_size()) == modules.size());
    return {std::move_iterator(made.mutable_cubins()->begin()),
            std::move_iterator(made.mutable_cubins()->end())};
  }
  std::string program() const override { return program_; }

 private:
  bool is_answered(const internal::Assemble& asked, internal::Assembled& made) const {
    const std::lock_guard lock(mutex_);
    std::vector<Fd> none;
    try {
      channel_.send(asked);
      return channel_.receive(made, none);
    } catch (const Error&) {
      return false;
    }
  }

  mutable Channel channel_;
  mutable std::mutex mutex_;  // one at a time
  const std::string program_;
};

/// In the place of a helper.
class Nobody : public codegen::TileAssembler {
 public:
  explicit Nobody(std::string sentence) : sentence_(std::move(sentence)) {}
  std::vector<std::string> assemble(std::span<const std::string>, std::string_view) const override {
    refuse();
  }
  std::string program() const override { refuse(); }

 private:
  [[noreturn]] void refuse() const { fail(ErrorKind::Unavailable, "TILEIRAS", "{}", sentence_); }

  const std::string sentence_;
};

}  // namespace

std::shared_ptr<const codegen::TileAssembler> start_tile_helper() {
  std::pair<Fd, Fd> ends;
  std::string program;
  try {
    program = codegen::find_tileiras();
    ends = make_socket_pair();
  } catch (const Error& error) {
    return std::make_shared<Nobody>(error.message());
  }
  const pid_t child = ::fork();
  if (child < 0) return std::make_shared<Nobody>("no process can be made that runs tileiras");
  if (child == 0) {
    ends.first = Fd();
    serve(std::move(ends.second));
  }
  return std::make_shared<Helper>(std::move(ends.first), std::move(program));
}

}  // namespace kiln::server
