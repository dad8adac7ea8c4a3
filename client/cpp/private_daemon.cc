// Starts a daemon of the user's own and finds the one that runs. A lock lets one of several
// processes start it; the folder must belong to the user alone, or another could listen in their
// place.
#include "client/cpp/private_daemon.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <kiln/connection.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cpp/descriptor.h"
#include "client/cpp/fail.h"

extern char** environ;

namespace kiln {
inline namespace client {
namespace detail {
namespace {

namespace fs = std::filesystem;

constexpr auto kStartTime = std::chrono::seconds(20);
// After the last program has gone; starting again takes a fraction of a second.
constexpr const char* kIdleSeconds = "600";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// $XDG_RUNTIME_DIR/kiln, or a folder of the user's own under the temporary folder.
fs::path runtime_folder() {
  std::error_code error;
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  if (!runtime.empty() && fs::is_directory(runtime, error)) return fs::absolute(runtime) / "kiln";
  return fs::temp_directory_path() / fmt::format("kiln-{}", geteuid());
}

fs::path cache_folder() {
  const std::string cache = environment("XDG_CACHE_HOME");
  if (!cache.empty()) return fs::absolute(cache) / "kiln";
  const std::string home = environment("HOME");
  return home.empty() ? runtime_folder() / "cache" : fs::path(home) / ".cache" / "kiln";
}

/// Makes the folder, and refuses one that another user could have put there.
void require_own_folder(const fs::path& folder) {
  ::mkdir(folder.c_str(), 0700);
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    fail(ErrorKind::Unavailable, "RUNTIME_FOLDER",
         "the folder {} for the private daemon cannot be made: {}", folder.string(),
         std::strerror(errno));
  }
  if (found.st_uid != geteuid() || (found.st_mode & 077) != 0) {
    fail(ErrorKind::Unavailable, "RUNTIME_FOLDER",
         "the folder {} for the private daemon must belong to you alone (mode 0700): remove it, or "
         "set XDG_RUNTIME_DIR",
         folder.string());
  }
}

/// Whether a process listens on the socket.
bool answers(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) {
    fail(ErrorKind::Unavailable, "SOCKET_PATH",
         "the path {} is too long for a unix socket: set XDG_RUNTIME_DIR to a shorter folder",
         path);
  }
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

std::string last_line(const fs::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

/// Starts the daemon in a session of its own, with its output in `log`.
pid_t spawn(const std::string& program, const std::string& socket, const fs::path& log) {
  const std::string listen = "unix:" + socket;
  const std::string cache = cache_folder();
  std::vector<const char*> arguments{program.c_str(), "--listen",    listen.c_str(), "--idle-exit",
                                     kIdleSeconds,    "--cache-dir", cache.c_str(),  nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  // The daemon outlives this program: it holds neither its pipes nor its folder.
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawn_file_actions_addchdir_np(&files, "/");
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ctrl-C in this terminal is not for the daemon.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, program.c_str(), &files, &attributes,
                                 const_cast<char* const*>(arguments.data()), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    fail(ErrorKind::Unavailable, "DAEMON_START", "the daemon {} cannot be started: {}", program,
         std::strerror(failed));
  }
  return pid;
}

void wait_until_it_answers(pid_t pid, const std::string& program, const std::string& socket,
                           const fs::path& log) {
  const auto end = std::chrono::steady_clock::now() + kStartTime;
  while (!answers(socket)) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) {
      fail(ErrorKind::Unavailable, "DAEMON_START", "the daemon {} ended at once: {} (log: {})",
           program, last_line(log), log.string());
    }
    if (std::chrono::steady_clock::now() > end) {
      fail(ErrorKind::Unavailable, "DAEMON_START",
           "the daemon {} does not listen on {} after {} s (log: {})", program, socket,
           kStartTime.count(), log.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // Reaps the daemon when it ends before this process, so that it leaves no zombie.
  std::thread([pid] { ::waitpid(pid, nullptr, 0); }).detach();
}

std::string find_daemon_or_fail() {
  std::vector<std::string> looked_at;
  const std::string program = find_daemon(looked_at);
  if (program.empty()) {
    fail(
        ErrorKind::Unavailable, "NO_DAEMON",
        "no daemon to start: looked at {}; install Kiln, name the daemon in KILN_DAEMON, or name a "
        "running service in KILN_ADDRESS",
        fmt::join(looked_at, ", "));
  }
  return fs::absolute(program);
}

fs::path socket_path() { return runtime_folder() / (version() + ".sock"); }

}  // namespace

std::string private_address() { return "unix:" + socket_path().string(); }

bool private_daemon_runs() { return answers(socket_path()); }

std::string ensure_private_daemon() {
  const std::string socket = socket_path();
  const fs::path folder = runtime_folder();
  require_own_folder(folder);
  if (answers(socket)) return "unix:" + socket;

  const std::string lock_file = folder / (version() + ".lock");
  const Descriptor lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX) != 0) {
    fail(ErrorKind::Unavailable, "DAEMON_START", "the lock {} cannot be taken: {}", lock_file,
         std::strerror(errno));
  }
  if (answers(socket)) return "unix:" + socket;  // another process was first
  const std::string program = find_daemon_or_fail();
  // Of a daemon that was killed: nobody answered, and the lock is ours.
  ::unlink(socket.c_str());
  const fs::path log = folder / (version() + ".log");
  wait_until_it_answers(spawn(program, socket, log), program, socket, log);
  return "unix:" + socket;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
