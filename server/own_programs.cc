// Whether a build has replaced the daemon that runs. A private daemon is shared by programs of one
// version for minutes after the last of them has ended; whoever builds Kiln would go on being
// served by the build before. A file that is written anew has another inode, or another time.
#include "server/own_programs.h"

#include <algorithm>

#include <sys/stat.h>

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_of_this_process() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  return {self, self.parent_path().parent_path() / "libexec" / "kiln-worker"};
}

}  // namespace

OwnPrograms::OwnPrograms() : OwnPrograms(files_of_this_process()) {}

OwnPrograms::OwnPrograms(std::vector<fs::path> files) {
  for (fs::path& file : files) {
    const Identity now = identity_of(file);
    programs_.push_back({std::move(file), now});
  }
}

OwnPrograms::Identity OwnPrograms::identity_of(const fs::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return std::nullopt;
  return std::array<int64_t, 4>{static_cast<int64_t>(found.st_dev),
                                static_cast<int64_t>(found.st_ino), found.st_mtim.tv_sec,
                                found.st_mtim.tv_nsec};
}

bool OwnPrograms::replaced() const {
  // One that is gone is not replaced: a link that is under way removes the file first.
  return std::any_of(programs_.begin(), programs_.end(), [](const Program& program) {
    const Identity now = identity_of(program.file);
    return now && now != program.then;
  });
}

}  // namespace kiln::server
