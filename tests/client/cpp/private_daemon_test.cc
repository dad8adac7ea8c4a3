#include "client/cpp/private_daemon.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/client/cpp/expect_client_error.h"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using client::detail::ensure_private_daemon;
using client::detail::find_daemon;

/// Each test has folders of its own for all that the search looks at.
class PrivateDaemon : public ::testing::Test {
 protected:
  PrivateDaemon() {
    std::string name = (fs::temp_directory_path() / "kiln-private-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    for (const char* sub : {"run", "cache", "path", "home"})
      fs::create_directory(folder_ / sub);
    for (const char* name : {"KILN_DAEMON", "KILN_ADDRESS", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
      ::unsetenv(name);
    }
    set("XDG_RUNTIME_DIR", folder_ / "run");
    set("XDG_CACHE_HOME", folder_ / "cache");
    set("HOME", folder_ / "home");
    set("PATH", folder_ / "path");
  }

  ~PrivateDaemon() override {
    for (const int pid : started())
      ::kill(pid, SIGKILL);
    fs::remove_all(folder_);
    set("PATH", path_);
  }

  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

  /// An executable that listens where it is told to, and notes its flags and process.
  fs::path make_daemon(const fs::path& file) {
    write(file,
          "#!/usr/bin/python3\n"
          "import os, socket, sys, time\n"
          "open('" +
              (folder_ / "started").string() +
              "', 'a').write(\n"
              "    f'{os.getpid()} ' + ' '.join(sys.argv[1:]) + '\\n')\n"
              "time.sleep(0.2)\n"
              "s = socket.socket(socket.AF_UNIX)\n"
              "s.bind(sys.argv[2].removeprefix('unix:'))\n"
              "s.listen(100)\n"
              "time.sleep(60)\n");
    return file;
  }

  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    ::chmod(file.c_str(), 0755);
  }

  std::vector<std::string> lines() {
    std::ifstream in(folder_ / "started");
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
      lines.push_back(line);
    return lines;
  }

  std::vector<int> started() {
    std::vector<int> pids;
    for (const std::string& line : lines())
      pids.push_back(std::stoi(line));
    return pids;
  }

  std::string found() {
    looked_at_.clear();
    return find_daemon(looked_at_, {folder_ / "bin"});
  }

  std::string socket() const { return folder_ / "run/kiln" / (version() + ".sock"); }

  const std::string path_ = std::getenv("PATH");
  fs::path folder_;
  std::vector<std::string> looked_at_;
};

TEST_F(PrivateDaemon, IsTheOneThatIsNamed) {
  make_daemon(folder_ / "path/kilnd");
  set("KILN_DAEMON", make_daemon(folder_ / "named/kilnd"));
  EXPECT_EQ(found(), folder_ / "named/kilnd");
}

TEST_F(PrivateDaemon, IsNoOtherThanTheOneThatIsNamed) {
  make_daemon(folder_ / "path/kilnd");
  set("KILN_DAEMON", "/nowhere/kilnd");
  EXPECT_EQ(found(), "");
  EXPECT_EQ(looked_at_, std::vector<std::string>{"$KILN_DAEMON (/nowhere/kilnd)"});
}

TEST_F(PrivateDaemon, IsFoundBesideTheProgramThenInThePythonPackageThenOnPath) {
  const fs::path on_path = make_daemon(folder_ / "path/kilnd");
  EXPECT_EQ(found(), on_path);
  EXPECT_EQ(looked_at_, (std::vector<std::string>{"$KILN_DAEMON (not set)", folder_ / "bin/kilnd",
                                                  "the Python package kiln-daemon", "PATH"}));
  const fs::path in_package =
      make_daemon(folder_ / "venv/lib/python3.11/site-packages/kiln_daemon/bin/kilnd");
  EXPECT_EQ(found(), on_path);
  set("VIRTUAL_ENV", folder_ / "venv");
  EXPECT_EQ(found(), in_package);
  const fs::path beside = make_daemon(folder_ / "bin/kilnd");
  EXPECT_EQ(found(), beside);
}

TEST_F(PrivateDaemon, StartsWithItsFlagsInAFolderOfTheUsersOwn) {
  set("KILN_DAEMON", make_daemon(folder_ / "kilnd"));
  EXPECT_EQ(ensure_private_daemon(), "unix:" + socket());
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_EQ(lines()[0].substr(lines()[0].find(' ') + 1), "--listen unix:" + socket() +
                                                             " --idle-exit 600 --cache-dir " +
                                                             (folder_ / "cache/kiln").string());
  struct stat made {};
  ASSERT_EQ(::stat((folder_ / "run/kiln").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700U);
}

TEST_F(PrivateDaemon, StartsOnceForAllThatComeAtOnce) {
  set("KILN_DAEMON", make_daemon(folder_ / "kilnd"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] { ensure_private_daemon(); });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(lines().size(), 1U);
}

TEST_F(PrivateDaemon, StartsAgainAfterItsDeath) {
  set("KILN_DAEMON", make_daemon(folder_ / "kilnd"));
  ensure_private_daemon();
  ::kill(started().at(0), SIGKILL);
  for (int i = 0; i < 200 && client::detail::private_daemon_runs(); ++i)
    ::usleep(5'000);
  EXPECT_TRUE(fs::exists(socket()));  // the dead daemon's
  ensure_private_daemon();
  EXPECT_EQ(lines().size(), 2U);
}

TEST_F(PrivateDaemon, SaysWhyItEndedAtOnce) {
  write(folder_ / "kilnd", "#!/bin/sh\necho 'no room on the device' >&2\nexit 1\n");
  set("KILN_DAEMON", folder_ / "kilnd");
  expect_client_error([] { ensure_private_daemon(); }, ErrorKind::Unavailable, "DAEMON_START",
                      "the daemon " + (folder_ / "kilnd").string() +
                          " ended at once: no room on the device (log: " +
                          (folder_ / "run/kiln" / (version() + ".log")).string() + ")");
}

TEST_F(PrivateDaemon, SaysWhyItCannotBeStarted) {
  write(folder_ / "kilnd", "#!/nowhere/sh\n");
  set("KILN_DAEMON", folder_ / "kilnd");
  expect_client_error([] { ensure_private_daemon(); }, ErrorKind::Unavailable, "DAEMON_START",
                      "the daemon " + (folder_ / "kilnd").string() +
                          " cannot be started: No such file or directory");
}

TEST_F(PrivateDaemon, NeedsAFolderToRunIn) {
  write(folder_ / "run/kiln", "no folder");
  expect_client_error([] { ensure_private_daemon(); }, ErrorKind::Unavailable, "RUNTIME_FOLDER",
                      "the folder " + (folder_ / "run/kiln").string() +
                          " for the private daemon cannot be made: File exists");
}

TEST_F(PrivateDaemon, SaysWhereItWasLookedFor) {
  set("KILN_DAEMON", "/nowhere/kilnd");
  expect_client_error([] { connect(); }, ErrorKind::Unavailable, "NO_DAEMON",
                      "no daemon to start: looked at $KILN_DAEMON (/nowhere/kilnd); install Kiln, "
                      "name the daemon in KILN_DAEMON, or name a running service in KILN_ADDRESS");
}

TEST_F(PrivateDaemon, TrustsNoFolderThatOthersMayWrite) {
  fs::create_directory(folder_ / "run/kiln");
  ::chmod((folder_ / "run/kiln").c_str(), 0777);
  expect_client_error(
      [] { ensure_private_daemon(); }, ErrorKind::Unavailable, "RUNTIME_FOLDER",
      "the folder " + (folder_ / "run/kiln").string() +
          " for the private daemon must belong to you alone (mode 0700): remove it, "
          "or set XDG_RUNTIME_DIR");
}

TEST_F(PrivateDaemon, NeedsAShortPath) {
  const fs::path deep = folder_ / "run" / std::string(100, 'x');
  fs::create_directory(deep);
  set("XDG_RUNTIME_DIR", deep);
  expect_client_error(
      [] { ensure_private_daemon(); }, ErrorKind::Unavailable, "SOCKET_PATH",
      "the path " + (deep / "kiln" / (version() + ".sock")).string() +
          " is too long for a unix socket: set XDG_RUNTIME_DIR to a shorter folder");
}

}  // namespace
}  // namespace kiln::test
