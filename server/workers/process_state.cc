#include "server/workers/process_state.h"

#include <fstream>
#include <string>

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

bool waits_to_run(int pid, int thread) {
  std::ifstream in(fmt::format("/proc/{}/task/{}/stat", pid, thread));
  std::string line;
  std::getline(in, line);
  const size_t name_end =
      line.rfind(')');  // "PID (NAME) S ...", and the name may have any character
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'R' || state == 'D';
}

}  // namespace kiln::server
