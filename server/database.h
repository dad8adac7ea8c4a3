#pragma once

#include <filesystem>
#include <functional>
#include <string>

struct sqlite3;

namespace kiln::server {

/// A SQLite file of the daemon: WAL, so that daemons of one folder read while another writes. What
/// is damaged or of another version is renamed, named in the log, and begun anew. Whoever uses
/// get() makes sure that one thread at a time does.
class Database {
 public:
  struct Options {
    std::filesystem::path path;
    const char* tables = "";  // SQL that makes them where there are none
    int64_t version = 1;      // raised when a table changes
    std::string what;         // is in it: "tuning records"
    /// Reads what is there. A result of SQLite; `why` stays empty when it could be read.
    std::function<int(sqlite3*, std::string& why)> read;
  };
  explicit Database(const Options& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Null: there is none, which problem() explains.
  sqlite3* get() const { return database_; }
  const std::string& problem() const { return problem_; }

 private:
  static int prepare(sqlite3* database, const Options& options, std::string& why);
  static void set_aside(const Options& options, const std::string& why);

  sqlite3* database_ = nullptr;
  std::string problem_;
};

}  // namespace kiln::server
