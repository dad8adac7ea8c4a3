// One file of JSON, which is replaced as a whole: daemons of one folder on one host measure the
// same, and those of two hosts that share a folder measure again, a tenth of a second.
#include "server/tuning/host_speeds.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

}  // namespace

HostSpeeds::HostSpeeds(const fs::path& folder, std::string boot)
    : path_(folder / "host-speed.json"), boot_(std::move(boot)) {
  internal::HostSpeed read;
  const bool is_read = google::protobuf::util::JsonStringToMessage(content_of(path_), &read).ok() &&
                       read.gigahertz() > 0;
  if (is_read) known_ = std::move(read);
}

std::optional<internal::HostSpeed> HostSpeeds::find(const std::string& setting) const {
  const std::lock_guard lock(mutex_);
  const bool is_of_here =
      known_ && !boot_.empty() && known_->boot() == boot_ && known_->setting() == setting;
  return is_of_here ? known_ : std::nullopt;
}

void HostSpeeds::keep(const std::string& setting, const internal::HostSpeed& speed) {
  if (boot_.empty()) return;
  const std::lock_guard lock(mutex_);
  known_ = speed;
  known_->set_boot(boot_);
  known_->set_setting(setting);
  std::string text;
  const bool is_written = google::protobuf::util::MessageToJsonString(*known_, &text).ok();
  const fs::path part = fmt::format("{}.part-{}", path_.string(), ::getpid());
  std::error_code error;
  fs::create_directories(path_.parent_path(), error);
  std::ofstream file(part, std::ios::trunc);
  file << text << '\n';
  file.close();
  if (is_written && file) fs::rename(part, path_, error);
  if (!is_written || !file || error) {
    spdlog::warn(
        "what this host was measured at is not kept in {}; it is measured again when the "
        "daemon starts again",
        path_.string());
    fs::remove(part, error);
  }
}

std::string HostSpeeds::host_boot() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

std::string text_of(const internal::HostSpeed& speed) {
  const double hertz = speed.gigahertz() * 1e9;
  return fmt::format(
      "measured on this host: {:.2f} GHz, bytes a cycle: L2 {:.0f}, L3 {:.1f}, memory {:.1f} for "
      "one core and {:.1f} for all, {:.1f} us until all threads work",
      speed.gigahertz(), speed.from_l2() / hertz, speed.from_l3() / hertz,
      speed.from_memory() / hertz, speed.from_memory_of_all() / hertz, speed.start_seconds() * 1e6);
}

}  // namespace kiln::server
