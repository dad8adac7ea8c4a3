// `kiln cache`: the compiled kernels that daemons of this machine keep on disk. It looks at the
// folder, not at a daemon, so it works without one; one that runs takes no harm, since it compiles
// again what it does not find.
//
//   CACHE_DIR/artifacts/ab/abcd...kart:  a kernel, and when it was used last (the file's time)
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cpp/fail.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;
using FileClock = fs::file_time_type::clock;

struct CacheOptions {
  std::string folder;
  std::string keep_bytes;
  double unused_days = -1;  // none
};

struct Entry {
  fs::path path;
  std::int64_t bytes = 0;
  fs::file_time_type used;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Where kilnd keeps it, unless it is told otherwise.
fs::path usual_folder() {
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return fs::path(cache) / "kiln";
  }
  return fs::path(variable("HOME")) / ".cache" / "kiln";
}

fs::path folder_of(const CacheOptions& options) {
  return options.folder.empty() ? usual_folder() : fs::path(options.folder);
}

/// The last used first.
std::vector<Entry> entries_of(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    client::detail::fail(ErrorKind::NotFound, "CACHE_FOLDER",
                         "there is no folder {}; a daemon keeps its kernels under its --cache-dir, "
                         "or else in {}",
                         folder.string(), usual_folder().string());
  }
  std::vector<Entry> entries;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder / "artifacts", error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code gone;  // as a daemon may take it away meanwhile
    if (at->path().extension() != ".kart" || !at->is_regular_file(gone)) continue;
    Entry entry{.path = at->path(), .bytes = static_cast<std::int64_t>(at->file_size(gone))};
    entry.used = at->last_write_time(gone);
    if (!gone) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, std::greater<>(), &Entry::used);
  return entries;
}

std::int64_t bytes_of(const std::vector<Entry>& entries) {
  std::int64_t bytes = 0;
  for (const Entry& entry : entries)
    bytes += entry.bytes;
  return bytes;
}

std::string kernels_text(std::size_t count) {
  return fmt::format("{} kernel{}", count, count == 1 ? "" : "s");
}

/// "2026-11-25 09:30:00", of the clock on the wall.
std::string used_text(fs::file_time_type used) {
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(FileClock::now() - used);
  const std::time_t then =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - age);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(then));
}

int list_cache(const Common& common, const CacheOptions& options) {
  const std::vector<Entry> entries = entries_of(folder_of(options));
  if (common.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Entry& entry : entries) {
      rows.push_back({{"kernel", entry.path.stem().string()},
                      {"bytes", entry.bytes},
                      {"used", used_text(entry.used)}});
    }
    std::cout << rows.dump(2) << "\n";
    return kDone;
  }
  std::vector<std::vector<std::string>> rows{{"KERNEL", "BYTES", "LAST USED"}};
  for (const Entry& entry : entries) {
    rows.push_back(
        {entry.path.stem().string(), std::to_string(entry.bytes), used_text(entry.used)});
  }
  if (!entries.empty()) std::cout << table(rows);
  return kDone;
}

int show_size(const Common& common, const CacheOptions& options) {
  const fs::path folder = folder_of(options);
  const std::vector<Entry> entries = entries_of(folder);
  if (common.json) {
    std::cout << nlohmann::ordered_json{{"folder", folder.string()},
                                        {"kernels", entries.size()},
                                        {"bytes", bytes_of(entries)}}
                     .dump(2)
              << "\n";
    return kDone;
  }
  std::cout << fmt::format("{} in {}, {} bytes\n", kernels_text(entries.size()), folder.string(),
                           bytes_of(entries));
  return kDone;
}

/// "500M": a number of bytes, or of KiB, MiB or GiB.
std::int64_t bytes_from(const std::string& text) {
  constexpr std::string_view kUnits = "KMG";
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string_view rest(end);
  double unit = 1;
  if (const auto at = rest.empty() ? std::string_view::npos : kUnits.find(rest.front());
      at != std::string_view::npos) {
    for (std::size_t i = 0; i <= at; ++i)
      unit *= 1024;
    rest.remove_prefix(1);
  }
  if (end == text.c_str() || !rest.empty() || !(number >= 0 && number < 1e15)) {
    throw UsageError(fmt::format(
        "--keep-bytes takes a number of bytes, as in 1000000, 500M or 2G, but got {}", text));
  }
  return static_cast<std::int64_t>(number * unit);
}

/// Removes those that `is_over(entry, bytes of those used later and it)`.
template <typename IsOver>
int remove_entries(const Common& common, const CacheOptions& options, const IsOver& is_over) {
  const std::vector<Entry> entries = entries_of(folder_of(options));
  std::vector<Entry> removed;
  std::int64_t kept = 0;
  for (const Entry& entry : entries) {
    if (!is_over(entry, kept + entry.bytes)) {
      kept += entry.bytes;
      continue;
    }
    std::error_code error;
    fs::remove(entry.path, error);
    if (error) {
      client::detail::fail(ErrorKind::Unavailable, "CACHE_FOLDER", "cannot remove {}: {}",
                           entry.path.string(), error.message());
    }
    removed.push_back(entry);
  }
  if (common.json) {
    std::cout << nlohmann::ordered_json{{"removed", removed.size()},
                                        {"bytes", bytes_of(removed)},
                                        {"kept", entries.size() - removed.size()},
                                        {"kept_bytes", kept}}
                     .dump(2)
              << "\n";
    return kDone;
  }
  std::cout << fmt::format("removed {}, {} bytes; {} left, {} bytes\n",
                           kernels_text(removed.size()), bytes_of(removed),
                           kernels_text(entries.size() - removed.size()), kept);
  return kDone;
}

int clear_cache(const Common& common, const CacheOptions& options) {
  return remove_entries(common, options, [](const Entry&, std::int64_t) { return true; });
}

int prune_cache(const Common& common, const CacheOptions& options) {
  if (options.keep_bytes.empty() && options.unused_days < 0) {
    throw UsageError("cache prune takes --keep-bytes, --unused-days or both");
  }
  const std::int64_t keep = options.keep_bytes.empty() ? std::numeric_limits<std::int64_t>::max()
                                                       : bytes_from(options.keep_bytes);
  const auto days = std::chrono::duration<double, std::ratio<86400>>(options.unused_days);
  bool is_over = false;
  return remove_entries(common, options, [&](const Entry& entry, std::int64_t bytes) {
    const bool is_old = options.unused_days >= 0 && FileClock::now() - entry.used > days;
    // What was used before one that goes goes, too.
    return is_over = is_over || is_old || bytes > keep;
  });
}

}  // namespace

void add_cache(CLI::App& app, Program& program) {
  CLI::App& cache = *app.add_subcommand("cache", "the compiled kernels on this machine's disk");
  cache.require_subcommand(1);
  const auto options = std::make_shared<CacheOptions>();
  const auto add = [&](const char* name, const char* description, auto action) -> CLI::App& {
    CLI::App& command = *cache.add_subcommand(name, description);
    command.add_option("--cache-dir", options->folder,
                       "the daemon's --cache-dir; without it the one of this user");
    command.add_flag("--json", program.common.json, "print JSON");
    command.callback([&program, options, action] {
      program.run = [&program, options, action] { return action(program.common, *options); };
    });
    return command;
  };
  add("list", "each with its size, the last used first", list_cache);
  add("size", "how many there are, and their bytes", show_size);
  add("clear", "remove all: they are compiled again when they are needed", clear_cache);
  CLI::App& pruning = add("prune", "remove those that were not used for longest", prune_cache);
  pruning.add_option("--keep-bytes", options->keep_bytes,
                     "leave at most so many bytes, as in 500M or 2G");
  pruning
      .add_option("--unused-days", options->unused_days,
                  "remove what was not used for so many days")
      ->check(CLI::NonNegativeNumber);
  add_warm(cache, program);
}

}  // namespace kiln::cli
