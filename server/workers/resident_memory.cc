#include "server/workers/resident_memory.h"

#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

namespace kiln::server {

int64_t resident_bytes(int pid) {
  if (pid == 0 || pid == ::getpid()) return 0;
  std::ifstream in(fmt::format("/proc/{}/statm", pid));
  int64_t whole = 0;
  int64_t resident = 0;
  if (!(in >> whole >> resident)) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace kiln::server
