// What a worker process sets up before anything else. It dies with kilnd by PR_SET_PDEATHSIG, so
// that no crash of the daemon leaves a worker behind with its memory.
#include "server/worker/process.h"

#include <initializer_list>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/workers/worker_fds.h"

namespace kiln::server {

bool become_worker() {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(kWorkerSocketFd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
      type != SOCK_SEQPACKET || ::fcntl(kWorkerPageFd, F_GETFD) < 0) {
    return false;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  // A kernel that crashes is expected, and a core of all tensors would fill the disk.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (const int fd : {kWorkerSocketFd, kWorkerPageFd})
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  return true;
}

}  // namespace kiln::server
