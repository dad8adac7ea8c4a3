// Room for compiled kernels, as `kiln doctor` shows it. A full disk is no error of any call, since
// kernels are only compiled more often; so nobody would notice it elsewhere.
#include "server/cache/disk_space.h"

#include <fmt/format.h>

namespace kiln::server {

namespace {

constexpr uintmax_t kMebibyte = 1 << 20;
constexpr uintmax_t kFew = 64 * kMebibyte;

}  // namespace

v1::Component disk_component(const std::filesystem::path& folder) {
  v1::Component part;
  part.set_name("disk");
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error) {
    part.set_message(
        fmt::format("the disk of {} cannot be asked: {}; name another folder with "
                    "--cache-dir",
                    folder.string(), error.message()));
    return part;
  }
  part.set_ok(space.available >= kFew);
  const uintmax_t left = space.available / kMebibyte;
  part.set_message(
      part.ok() ? fmt::format("{} MiB are free for compiled kernels", left)
                : fmt::format("{} MiB are free in {}, too few to keep compiled kernels: make room, "
                              "or name another folder with --cache-dir",
                              left, folder.string()));
  return part;
}

}  // namespace kiln::server
