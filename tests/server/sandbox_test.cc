#include "server/worker/sandbox.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/daemon.h"

namespace kiln::server {
namespace {

/// What `attempt` returns in a process after `confine_it`: 0 to 255.
int in_process(const std::function<void()>& confine_it, const std::function<int()>& attempt) {
  const pid_t child = ::fork();
  if (child == 0) {
    confine_it();
    ::_exit(attempt());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The same in one that is confined as this role is.
int in_sandbox(Role role, const std::function<int()>& attempt) {
  return in_process([=] { confine(role); }, attempt);
}

/// The error of a call that fails, or 0.
template <typename Call>
int error_of(Call&& call) {
  return call() < 0 ? errno : 0;
}

class SandboxTest : public ::testing::TestWithParam<Role> {};

TEST_P(SandboxTest, HasNoNetwork) {
  EXPECT_EQ(in_sandbox(GetParam(),
                       [] { return error_of([] { return ::socket(AF_INET, SOCK_STREAM, 0); }); }),
            EPERM);
  EXPECT_EQ(in_sandbox(GetParam(),
                       [] { return error_of([] { return ::socket(AF_NETLINK, SOCK_RAW, 0); }); }),
            EPERM);
}

TEST_P(SandboxTest, StartsNoPrograms) {
  EXPECT_EQ(
      in_sandbox(GetParam(),
                 [] { return error_of([] { return ::execl("/bin/true", "true", nullptr); }); }),
      EPERM);
}

TEST_P(SandboxTest, TouchesNoOtherProcess) {
  const pid_t parent = ::getpid();
  EXPECT_EQ(in_sandbox(GetParam(), [=] { return error_of([=] { return ::kill(parent, 0); }); }),
            EPERM);
  EXPECT_EQ(
      in_sandbox(GetParam(),
                 [=] { return error_of([=] { return ::ptrace(PTRACE_ATTACH, parent, 0, 0); }); }),
      EPERM);
}

TEST_P(SandboxTest, LeavesNoWayOut) {
  EXPECT_EQ(in_sandbox(GetParam(), [] { return error_of([] { return ::unshare(CLONE_NEWNS); }); }),
            EPERM);
  EXPECT_EQ(in_sandbox(GetParam(),
                       [] {
                         rlimit limit{};
                         ::getrlimit(RLIMIT_MSGQUEUE, &limit);
                         return static_cast<int>(limit.rlim_max);
                       }),
            0);
}

/// What every worker does must go on.
TEST_P(SandboxTest, LetsAWorkerWork) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  EXPECT_EQ(in_sandbox(GetParam(),
                       [&] {
                         int sum = 0;
                         std::thread([&] { sum = 40; }).join();
                         void* const memory =
                             ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                         if (memory == MAP_FAILED) return 1;
                         return ::send(ends[1], "ok", 2, 0) == 2 ? sum + 2 : 2;
                       }),
            42);
  EXPECT_EQ(in_sandbox(GetParam(), [] { return ::raise(SIGABRT); }), 128 + SIGABRT);
  ::close(ends[0]);
  ::close(ends[1]);
}

std::string name_of(const ::testing::TestParamInfo<Role>& info) {
  return info.param == Role::Cuda ? "Cuda" : info.param == Role::Cpu ? "Cpu" : "Compiler";
}

INSTANTIATE_TEST_SUITE_P(Roles, SandboxTest,
                         ::testing::Values(Role::Cpu, Role::Cuda, Role::Compiler), name_of);

TEST(Sandbox, WritesNoFiles) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "made").string();
  for (const Role role : {Role::Cpu, Role::Compiler}) {
    EXPECT_NE(in_sandbox(role,
                         [&] {
                           return error_of(
                               [&] { return ::open(path.c_str(), O_CREAT | O_WRONLY, 0600); });
                         }),
              0);
    EXPECT_NE(in_sandbox(role, [&] { return error_of([&] { return ::unlink("/tmp"); }); }), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Sandbox, OfACpuReadsTheSystemsFilesAlone) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "token").string();
  ASSERT_EQ(::close(::open(path.c_str(), O_CREAT | O_WRONLY, 0600)), 0);
  const int result = in_sandbox(
      Role::Cpu, [&] { return error_of([&] { return ::open(path.c_str(), O_RDONLY); }); });
  const bool has_landlock = in_sandbox(Role::Cpu, [] { return 0; }) == 0 && result != 0;
  if (!has_landlock) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(result, EACCES);
  EXPECT_EQ(in_sandbox(Role::Cpu,
                       [] { return error_of([] { return ::open("/proc/meminfo", O_RDONLY); }); }),
            0);
}

/// It runs tileiras, which writes files.
TEST(Sandbox, OfAnAssemblerRunsProgramsThatWriteInOneFolder) {
  const testing::TemporaryFolder parent;
  const std::string folder = (parent.path() / "own").string();
  const std::string outside = (parent.path() / "outside").string();
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  const auto run = [&](const std::string& script) {
    return in_process([&] { confine_assembler(folder); },
                      [&] { return std::system(script.c_str()) == 0 ? 0 : 1; });
  };
  EXPECT_EQ(run("cat /proc/version > " + folder + "/made"), 0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/made"));
  EXPECT_EQ(in_process([&] { confine_assembler(folder); },
                       [] { return error_of([] { return ::socket(AF_INET, SOCK_STREAM, 0); }); }),
            EPERM);
  const bool has_landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0;
  if (!has_landlock) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(run("echo x > " + outside + " 2> /dev/null"), 1);
  EXPECT_FALSE(std::filesystem::exists(outside));
  std::filesystem::remove(folder + "/made");
  EXPECT_EQ(in_process([&] { confine_assembler(folder); },
                       [&] { return error_of([&] { return ::rmdir(folder.c_str()); }); }),
            0);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(Sandbox, SaysWhatHolds) {
  EXPECT_EQ(in_sandbox(Role::Cpu,
                       [] {
                         const Sandbox again =
                             confine(Role::Cpu);  // in a process that is confined: nothing new
                         return again.holds.size() + again.lacks.size() == 3 ? 0 : 1;
                       }),
            0);
}

}  // namespace
}  // namespace kiln::server
