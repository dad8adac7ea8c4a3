// Where the command line reads and writes: files, and what stands in their place.
//
//   --out C=c.npy         c.npy.part, then renamed: nobody sees half a file
//   --out C=/dev/stdout   written to, never replaced
//   --in A=-              standard input
#include "client/cli/files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "client/cli/report.h"
#include "client/cpp/fail.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, int error) {
  client::detail::fail(ErrorKind::InvalidArgument, "OUTPUT_FILE", "{} cannot be written: {}", path,
                       std::strerror(error));
}

/// The file that is meant, behind links; the path itself where it leads nowhere yet.
fs::path behind_links(const std::string& path) {
  std::error_code error;
  fs::path target = fs::weakly_canonical(path, error);
  return error ? fs::path(path) : target;
}

/// Whether there is something that must be written to as it is. Links below /proc are open files
/// of some process, which a new file of the same name would not be.
bool stays_in_place(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) return true;
  const fs::path folder = fs::weakly_canonical(fs::path(path).parent_path(), error);
  if (folder.string().starts_with("/proc/")) return true;
  const fs::path link = fs::read_symlink(path, error);
  return !error && link.string().starts_with("/proc/");
}

}  // namespace

std::string read_standard_input(const std::string& what) {
  static std::string reader;
  if (!reader.empty()) {
    throw UsageError(
        fmt::format("{} and {} cannot both be read from standard input; give one of "
                    "them a file",
                    reader, what));
  }
  reader = what;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void write_through(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (stays_in_place(path)) {
    std::ofstream out(path, std::ios::binary | std::ios::app);
    write(out);
    out.close();
    if (!out) cannot_write(path, errno);
    return;
  }
  const fs::path target = behind_links(path);
  const std::string part = target.string() + ".part";
  std::ofstream out(part, std::ios::binary);
  write(out);
  out.close();
  std::error_code error;
  if (out) {
    const fs::file_status before = fs::status(target, error);
    if (fs::exists(before)) fs::permissions(part, before.permissions(), error);
    fs::rename(part, target, error);
    if (!error) return;
  }
  const int why = error ? error.value() : errno;
  fs::remove(part, error);
  cannot_write(path, why);
}

}  // namespace kiln::cli
