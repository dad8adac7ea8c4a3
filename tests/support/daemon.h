#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace kiln::testing {

/// A folder of its own, gone with it. Short enough for sockets.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A real kilnd in a process of its own, on a socket in a folder of its own. Its log is in
/// folder/kilnd.log. Ended by the destructor, at the latest.
class Daemon {
 public:
  struct Options {
    /// The program; empty: what KILN_DAEMON names.
    std::string program;
    /// Empty: a socket in the folder.
    std::string listen;
    /// Empty: folder/cache.
    std::filesystem::path cache_dir;
    std::vector<std::string> flags;
    /// NAME=value
    std::vector<std::string> environment;
  };

  /// Waits until it listens. Throws std::runtime_error with what it wrote when it does not.
  explicit Daemon(Options options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// As clients write it.
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string log() const;
  /// Process ids of its workers ("kiln-worker") or compilers ("kiln-compiler").
  std::vector<pid_t> children(const std::string& program) const;

  void signal(int number) const;
  /// The exit code, 128 + the signal that ended it, or -1 when it still runs after `limit`.
  int wait(std::chrono::milliseconds limit);
  /// SIGTERM, then wait().
  int stop(std::chrono::milliseconds limit = std::chrono::seconds(20));

 private:
  void start(const Options& options);

  TemporaryFolder folder_;
  std::string address_;
  pid_t pid_ = 0;
  int exit_code_ = -1;
};

/// Runs kilnd to its end, for command lines that it refuses.
struct Ended {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};
Ended run_to_end(const std::string& program, const std::vector<std::string>& flags);

}  // namespace kiln::testing
