// Reads /proc: resident memory, and whether a thread of a process is runnable (R) or waits for the
// disk (D).
#include "server/workers/process_state.h"

#include <filesystem>
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

bool has_work(int pid) {
  std::error_code error;
  // Threads come and go meanwhile.
  std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", pid), error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    std::ifstream in(task->path() / "stat");
    std::string line;
    std::getline(in, line);
    const size_t name_end = line.rfind(')');  // "PID (NAME) S ...", and a name may have any sign
    if (name_end == std::string::npos || name_end + 2 >= line.size()) continue;
    const char state = line[name_end + 2];
    if (state == 'R' || state == 'D') return true;
  }
  return false;
}

}  // namespace kiln::server
