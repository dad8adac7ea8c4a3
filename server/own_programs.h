#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <vector>

namespace kiln::server {

/// The programs that this process and its workers are, as they were when it began.
class OwnPrograms {
 public:
  /// kilnd itself, and the worker that it starts.
  OwnPrograms();
  explicit OwnPrograms(std::vector<std::filesystem::path> files);

  /// Whether another file has taken the place of one: what runs here is of an older build.
  bool replaced() const;

 private:
  /// Device, inode and time of the last change; nothing where there is no file.
  using Identity = std::optional<std::array<int64_t, 4>>;

  static Identity identity_of(const std::filesystem::path& file);

  struct Program {
    std::filesystem::path file;
    Identity then;
  };
  std::vector<Program> programs_;
};

}  // namespace kiln::server
