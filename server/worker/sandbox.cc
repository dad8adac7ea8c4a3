// The sandbox of a worker, by what Linux has for processes without privileges, each layer as far as
// this host allows it: namespaces of its own (user, network, IPC), Landlock for files, and seccomp
// for calls of the system. A refused call fails with EPERM, as it would for lack of a permission.
//
//   a kernel that opens a socket  ->  EPERM;  one that reads a user's token  ->  EACCES
#include "server/worker/sandbox.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/ipc/fd.h"

namespace kiln::server {

namespace {

using Filter = std::unique_ptr<void, decltype(&::seccomp_release)>;

// Programs, other processes, the kernel, and ways around a filter.
constexpr const char* kForbidden[] = {"accept",
                                      "accept4",
                                      "acct",
                                      "add_key",
                                      "bind",
                                      "bpf",
                                      "chroot",
                                      "connect",
                                      "delete_module",
                                      "execve",
                                      "execveat",
                                      "fanotify_init",
                                      "finit_module",
                                      "init_module",
                                      "io_uring_enter",
                                      "io_uring_register",
                                      "io_uring_setup",
                                      "kexec_file_load",
                                      "kexec_load",
                                      "keyctl",
                                      "kill",
                                      "listen",
                                      "mount",
                                      "mount_setattr",
                                      "move_mount",
                                      "name_to_handle_at",
                                      "open_by_handle_at",
                                      "open_tree",
                                      "perf_event_open",
                                      "pidfd_getfd",
                                      "pidfd_open",
                                      "pidfd_send_signal",
                                      "pivot_root",
                                      "process_madvise",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "ptrace",
                                      "quotactl",
                                      "reboot",
                                      "request_key",
                                      "setns",
                                      "swapoff",
                                      "swapon",
                                      "syslog",
                                      "tkill",
                                      "umount2",
                                      "unshare",
                                      "userfaultfd"};

// What changes files by their names.
constexpr const char* kForbiddenWrites[] = {
    "chmod",    "chown",     "creat",   "fchmodat",  "fchownat", "lchown",    "link",
    "linkat",   "mkdir",     "mkdirat", "mknod",     "mknodat",  "openat2",   "rename",
    "renameat", "renameat2", "rmdir",   "setxattr",  "symlink",  "symlinkat", "truncate",
    "unlink",   "unlinkat",  "utime",   "utimensat", "utimes"};

std::string error_text() { return std::strerror(errno); }

/// Whether the rule could be added; a call that this machine does not have cannot be made anyway.
template <typename... Conditions>
bool forbid(const Filter& filter, const char* call, const Conditions&... conditions) {
  const int number = ::seccomp_syscall_resolve_name(call);
  if (number == __NR_SCMP_ERROR) return true;
  const int failed = ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), number,
                                        sizeof...(conditions), conditions...);
  return failed == 0 || failed == -EDOM;
}

/// Files may be opened to be read alone: each way of writing is a bit or two of the flags.
bool forbid_writing(const Filter& filter) {
  bool done = true;
  for (const char* call : kForbiddenWrites)
    done = forbid(filter, call) && done;
  for (const unsigned flag : {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC}) {
    done = forbid(filter, "open", SCMP_A1(SCMP_CMP_MASKED_EQ, flag, flag)) && done;
    done = forbid(filter, "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, flag, flag)) && done;
  }
  return done;
}

/// What a process may do beyond reading files.
enum class May { Nothing, OpenDevices, RunPrograms };

/// Empty, or why there is no filter.
std::string filter_calls(May may) {
  const Filter filter(::seccomp_init(SCMP_ACT_ALLOW), &::seccomp_release);
  if (!filter) return "libseccomp cannot make a filter";
  bool done = true;
  for (const std::string_view call : kForbidden) {
    // Programs are started, and ended when they take too long.
    if (may == May::RunPrograms && (call == "execve" || call == "kill")) continue;
    done = forbid(filter, call.data()) && done;
  }
  // A driver talks to daemons of its own over unix sockets.
  done = (may == May::OpenDevices ? forbid(filter, "socket", SCMP_A0(SCMP_CMP_NE, AF_UNIX))
                                  : forbid(filter, "socket")) &&
         done;
  // Threads of its own process may be sent signals: abort() does that. Of a program that is started
  // nobody knows the number yet.
  const auto own = static_cast<scmp_datum_t>(::getpid());
  if (may != May::RunPrograms) done = forbid(filter, "tgkill", SCMP_A0(SCMP_CMP_NE, own)) && done;
  if (may == May::Nothing) done = forbid_writing(filter) && done;
  if (!done) return "libseccomp refuses a rule";
  const int failed = ::seccomp_load(filter.get());
  return failed == 0 ? "" : std::strerror(-failed);
}

constexpr uint64_t kReading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kAllOfFiles = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // of the first version
constexpr uint64_t kOfAFile =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE;

/// What may be done below `path`, if there is such a thing.
void allow(int rules, const char* path, uint64_t access) {
  const Fd place(::open(path, O_PATH | O_CLOEXEC));
  if (place.get() < 0) return;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = place.get();
  // Of a file, rights of folders are refused.
  if (::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    rule.allowed_access = access & kOfAFile;
    ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }
}

/// Makes what `allow_some` allows all that is. Empty, or why files are not confined.
template <typename AllowSome>
std::string confine_files_to(const AllowSome& allow_some) {
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = kAllOfFiles;
  const Fd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (rules.get() < 0) return error_text();
  allow_some(rules.get());
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_landlock_restrict_self, rules.get(), 0) != 0) {
    return error_text();
  }
  return "";
}

/// Of a compiler all files can be read: NVRTC lies wherever it was installed. Empty, or why files
/// are not confined.
std::string confine_files(bool reads_anything) {
  return confine_files_to([&](int rules) {
    if (reads_anything) return allow(rules, "/", kReading);
    for (const char* path : {"/usr", "/lib", "/lib64", "/sys", "/proc/self", "/proc/cpuinfo",
                             "/proc/meminfo", "/proc/stat", "/etc/ld.so.cache", "/dev/null"})
      allow(rules, path, kReading);
  });
}

void note(Sandbox& sandbox, const std::string& what, const std::string& problem) {
  if (problem.empty()) {
    sandbox.holds.push_back(what);
  } else {
    sandbox.lacks.push_back(fmt::format("{} ({})", what, problem));
  }
}

}  // namespace

v1::Component component_of(const Sandbox& sandbox, const std::string& worker) {
  v1::Component part;
  part.set_name("sandbox of " + worker);
  part.set_ok(sandbox.lacks.empty());
  std::string text = fmt::format("{}", fmt::join(sandbox.holds, "; "));
  if (!sandbox.lacks.empty()) {
    text += fmt::format("{}not on this host: {}", text.empty() ? "" : "; ",
                        fmt::join(sandbox.lacks, "; "));
  }
  part.set_message(text);
  return part;
}

Sandbox confine(Role role) {
  Sandbox sandbox;
  const bool has_files = role == Role::Cuda;
  // A driver may look at its process's owner and network.
  if (!has_files) {
    const bool own = ::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == 0;
    note(sandbox, "namespaces of its own", own ? "" : error_text());
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // new credentials forget it
    note(sandbox, role == Role::Compiler ? "files are read only" : "files of the system alone",
         confine_files(role == Role::Compiler));
  }
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_MSGQUEUE, &none);
  note(sandbox, "no network, no other programs or processes",
       filter_calls(has_files ? May::OpenDevices : May::Nothing));
  return sandbox;
}

Sandbox confine_assembler(const std::string& folder) {
  Sandbox sandbox;
  const bool own = ::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == 0;
  note(sandbox, "namespaces of its own", own ? "" : error_text());
  note(sandbox, "files are written in one folder", confine_files_to([&](int rules) {
         allow(rules, "/", kReading | LANDLOCK_ACCESS_FS_EXECUTE);
         allow(rules, "/dev/null", kReading | LANDLOCK_ACCESS_FS_WRITE_FILE);
         allow(rules, folder.c_str(), kAllOfFiles);
         // So that it can remove that folder at its end.
         allow(rules, folder.substr(0, folder.rfind('/') + 1).c_str(),
               LANDLOCK_ACCESS_FS_REMOVE_DIR);
       }));
  note(sandbox, "no network", filter_calls(May::RunPrograms));
  return sandbox;
}

}  // namespace kiln::server
