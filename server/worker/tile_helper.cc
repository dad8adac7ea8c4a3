// A confined process starts no programs and writes no files, and tileiras is a program that writes
// some. So another process runs it, which no kernel has anything to do with: it is given bytecode,
// and gives back machine code or a sentence.
//
//   to it:    architecture, bytecode         each text with its length in front
//   from it:  "" and a cubin, or a sentence and ""
#include "server/worker/tile_helper.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/core/error.h"
#include "server/ipc/fd.h"
#include "server/worker/sandbox.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of a text

bool send_all(int socket, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = ::send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t received = ::recv(socket, bytes, count, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    bytes += received;
    count -= static_cast<size_t>(received);
  }
  return true;
}

bool send_text(int socket, std::string_view text) {
  const uint64_t length = text.size();
  return send_all(socket, reinterpret_cast<const char*>(&length), sizeof length) &&
         send_all(socket, text.data(), text.size());
}

/// Nothing once the other side has gone.
std::optional<std::string> receive_text(int socket) {
  uint64_t length = 0;
  if (!receive_all(socket, reinterpret_cast<char*>(&length), sizeof length) || length > kMostBytes)
    return std::nullopt;
  std::string text(length, '\0');
  if (!receive_all(socket, text.data(), length)) return std::nullopt;
  return text;
}

bool answer(int socket, const codegen::TileAssembler& assembler) {
  const std::optional<std::string> arch = receive_text(socket);
  const std::optional<std::string> bytecode = arch ? receive_text(socket) : std::nullopt;
  if (!bytecode) return false;
  std::string cubin;
  std::string sentence;
  try {
    cubin = assembler.assemble(*bytecode, *arch);
  } catch (const Error& error) {
    sentence = error.message();
  }
  return send_text(socket, sentence) && send_text(socket, cubin);
}

/// The life of the helper. It ends when the worker has, whatever ended that.
[[noreturn]] void serve(const Fd& socket) {
  ::prctl(PR_SET_NAME, "kiln-tiles");
  ::close(kWorkerSocketFd);
  ::close(kWorkerPageFd);
  std::error_code ignored;
  std::string folder = (fs::temp_directory_path(ignored) / "kiln-tiles-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) ::_exit(1);
  ::setenv("TMPDIR", folder.c_str(), 1);
  confine_assembler(folder);
  const codegen::Tileiras tileiras;
  while (answer(socket.get(), tileiras)) {
  }
  ::rmdir(folder.c_str());  // what was in it is gone with each run
  ::_exit(0);
}

class Helper : public codegen::TileAssembler {
 public:
  explicit Helper(Fd socket) : socket_(std::move(socket)) {}

  std::string assemble(const std::string& bytecode, std::string_view arch) const override {
    const std::lock_guard lock(mutex_);
    const bool asked = send_text(socket_.get(), arch) && send_text(socket_.get(), bytecode);
    const auto sentence = asked ? receive_text(socket_.get()) : std::nullopt;
    auto cubin = sentence ? receive_text(socket_.get()) : std::nullopt;
    if (!cubin)
      fail(ErrorKind::Unavailable, "TILEIRAS", "the process that runs tileiras has ended");
    if (!sentence->empty()) fail(ErrorKind::Unavailable, "TILEIRAS", "{}", *sentence);
    return *std::move(cubin);
  }

 private:
  const Fd socket_;
  mutable std::mutex mutex_;  // one at a time
};

/// In the place of a helper.
class Nobody : public codegen::TileAssembler {
 public:
  explicit Nobody(std::string sentence) : sentence_(std::move(sentence)) {}
  std::string assemble(const std::string&, std::string_view) const override {
    fail(ErrorKind::Unavailable, "TILEIRAS", "{}", sentence_);
  }

 private:
  const std::string sentence_;
};

}  // namespace

std::shared_ptr<const codegen::TileAssembler> start_tile_helper() {
  try {
    codegen::find_tileiras();
  } catch (const Error& error) {
    return std::make_shared<Nobody>(error.message());
  }
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return std::make_shared<Nobody>("there is no socket for the process that runs tileiras");
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  const pid_t child = ::fork();
  if (child < 0) return std::make_shared<Nobody>("no process can be made that runs tileiras");
  if (child == 0) {
    ours = Fd();
    serve(theirs);
  }
  return std::make_shared<Helper>(std::move(ours));
}

}  // namespace kiln::server
