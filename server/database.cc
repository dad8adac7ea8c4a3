// Opens a SQLite file, makes its tables, and reads it once. A file that turns out to be damaged
// then is set aside, once: a second failure is the folder's, and the daemon does without the file.
//
//   tuning.sqlite that is no database  ->  tuning.sqlite.damaged-1732480000000000, and a new one
#include "server/database.h"

#include <chrono>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include "server/not_kept.h"
#include "server/statement.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

constexpr int kBusyMilliseconds = 2000;  // for other daemons of the same folder

constexpr const char* kSettings = R"(
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
)";

/// A folder's file is damaged, or no database at all.
bool is_damage(int result) { return result == SQLITE_CORRUPT || result == SQLITE_NOTADB; }

}  // namespace

Database::Database(const Options& options) {
  std::error_code ignored;
  fs::create_directories(options.path.parent_path(), ignored);
  // A damaged file is set aside once; a second failure is the folder's.
  for (const bool may_set_aside : {true, false}) {
    std::string why;
    int result = sqlite3_open(options.path.c_str(), &database_);
    if (result == SQLITE_OK) {
      result = prepare(database_, options, why);
    } else {
      why = sqlite3_errmsg(database_);
    }
    if (why.empty()) return;
    sqlite3_close(database_);
    database_ = nullptr;
    if (may_set_aside && is_damage(result)) {
      set_aside(options, why);
      continue;
    }
    problem_ = not_kept(options.what, options.path, why);
    spdlog::warn("{}", problem_);
    return;
  }
}

Database::~Database() { sqlite3_close(database_); }

int Database::prepare(sqlite3* database, const Options& options, std::string& why) {
  sqlite3_busy_timeout(database, kBusyMilliseconds);
  for (const char* sql : {kSettings, options.tables}) {
    if (const int result = sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
        result != SQLITE_OK) {
      why = sqlite3_errmsg(database);
      return result;
    }
  }
  Statement version(database, "PRAGMA user_version");
  const int64_t present = version.step() ? version.integer(0) : 0;
  if (present != 0 && present != options.version) {
    why = fmt::format("it is of version {}, not {}", present, options.version);
    return SQLITE_NOTADB;
  }
  sqlite3_exec(database, fmt::format("PRAGMA user_version = {}", options.version).c_str(), nullptr,
               nullptr, nullptr);
  return options.read(database, why);
}

void Database::set_aside(const Options& options, const std::string& why) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const fs::path aside = options.path.string() + fmt::format(".damaged-{}", now.count());
  std::error_code error;
  fs::rename(options.path, aside, error);
  for (const char* const part : {"-wal", "-shm"}) {
    std::error_code ignored;
    fs::remove(options.path.string() + part, ignored);
  }
  spdlog::warn("the {} in {} cannot be read ({}); the file is {} now, and a new one is begun",
               options.what, options.path.string(), why, error ? "where it was" : aside.string());
}

}  // namespace kiln::server
