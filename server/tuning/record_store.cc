// Records in SQLite beside a copy in memory, which answers compiles without touching the disk. A
// damaged file is begun anew, since records can be found again.
#include "server/tuning/record_store.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include "compiler/language/wire/canonical.h"
#include "server/not_kept.h"
#include "server/statement.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

/// Raised when a table changes; a file of another version is set aside.
constexpr int64_t kSchema = 1;

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS record (
  definition BLOB, sizes BLOB, device BLOB, build BLOB, candidate BLOB, schedule BLOB,
  seconds REAL, default_seconds REAL, written INTEGER,
  PRIMARY KEY (definition, sizes, device, build)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trial (
  definition BLOB, sizes BLOB, device BLOB, build BLOB, candidate BLOB, seconds REAL, failure BLOB,
  written INTEGER,
  PRIMARY KEY (definition, sizes, device, build, candidate)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS record_age ON record (written);
CREATE INDEX IF NOT EXISTS trial_age ON trial (written);
)";

int64_t wall_clock() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string id_of(const TuningKey& key, const TuningRecord& record) {
  std::string all;
  for (const std::string* part : {&key.definition, &key.sizes, &key.device, &key.build})
    all += fmt::format("{}:{}", part->size(), *part);
  return language::id_of(all + record.schedule.SerializeAsString()).substr(0, 12);
}

/// A shape class is the binary logarithms of the sizes: compared by the product, then as text.
std::pair<int64_t, std::string> weight_of(const std::string& sizes) {
  int64_t sum = 0;
  int64_t number = 0;
  for (const char c : sizes) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
    } else {
      sum += number;
      number = 0;
    }
  }
  return {sum + number, sizes};
}

}  // namespace

RecordStore::RecordStore(const fs::path& folder, const Limits& limits)
    : path_(folder / "tuning.sqlite"),
      limits_(limits),
      database_({.path = path_,
                 .tables = kTables,
                 .version = kSchema,
                 .what = "tuning records",
                 .read = [this](sqlite3* database,
                                std::string& why) { return read_records(database, why); }}),
      problem_(database_.problem()) {}

int RecordStore::read_records(sqlite3* database, std::string& why) {
  std::map<TuningKey, TuningRecord> found;
  Statement rows(database,
                 "SELECT definition, sizes, device, build, candidate, schedule, seconds, "
                 "default_seconds, written FROM record ORDER BY written DESC LIMIT ?");
  rows.bind(limits_.records);
  while (rows.step()) {
    const TuningKey key{rows.text(0), rows.text(1), rows.text(2), rows.text(3)};
    TuningRecord record{.candidate = rows.text(4),
                        .schedule = {},
                        .seconds = rows.number(6),
                        .default_seconds = rows.number(7),
                        .id = {},
                        .written = rows.integer(8)};
    // One damaged row is no reason to lose the others.
    if (!record.schedule.ParseFromString(rows.text(5))) continue;
    record.id = id_of(key, record);
    found[key] = std::move(record);
  }
  if (rows.result() != SQLITE_DONE) {
    why = sqlite3_errmsg(database);
    return rows.result();
  }
  const std::lock_guard lock(mutex_);
  records_ = std::move(found);
  return SQLITE_OK;
}

std::optional<TuningRecord> RecordStore::find(const TuningKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto at = records_.find(key);
  return at == records_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<TuningRecord> RecordStore::find_largest(const TuningKey& key) const {
  const std::lock_guard lock(mutex_);
  const TuningRecord* best = nullptr;
  std::pair<int64_t, std::string> weight;
  for (auto at = records_.lower_bound({key.definition, "", "", ""});
       at != records_.end() && at->first.definition == key.definition; ++at) {
    if (at->first.device != key.device || at->first.build != key.build) continue;
    const auto own = weight_of(at->first.sizes);
    if (best != nullptr && own <= weight) continue;
    best = &at->second;
    weight = own;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

TuningRecord RecordStore::put(const TuningKey& key, TuningRecord record) {
  record.id = id_of(key, record);
  record.written = wall_clock();
  {
    const std::lock_guard lock(mutex_);
    records_[key] = record;
    if (static_cast<int64_t>(records_.size()) > limits_.records) {
      records_.erase(std::min_element(records_.begin(), records_.end(), [](auto& a, auto& b) {
        return a.second.written < b.second.written;
      }));
    }
  }
  const bool kept =
      write("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", key.definition,
            key.sizes, key.device, key.build, record.candidate, record.schedule.SerializeAsString(),
            record.seconds, record.default_seconds, record.written);
  if (!kept) return record;
  write(
      "DELETE FROM record WHERE written <= (SELECT written FROM record ORDER BY written DESC "
      "LIMIT 1 OFFSET ?)",
      limits_.records);
  return record;
}

void RecordStore::remove(const TuningKey& key) {
  {
    const std::lock_guard lock(mutex_);
    records_.erase(key);
  }
  write("DELETE FROM record WHERE definition = ? AND sizes = ? AND device = ? AND build = ?",
        key.definition, key.sizes, key.device, key.build);
}

void RecordStore::add_trial(const TuningKey& key, const TuningTrial& trial) {
  const bool kept = write("INSERT OR REPLACE INTO trial VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                          key.definition, key.sizes, key.device, key.build, trial.candidate,
                          trial.seconds, trial.failure, wall_clock());
  if (!kept) return;
  write(
      "DELETE FROM trial WHERE written <= (SELECT written FROM trial ORDER BY written DESC "
      "LIMIT 1 OFFSET ?)",
      limits_.trials);
}

std::vector<TuningTrial> RecordStore::trials(const TuningKey& key) {
  std::vector<TuningTrial> found;
  const std::lock_guard lock(database_mutex_);
  if (database_.get() == nullptr) return found;
  Statement rows(database_.get(),
                 "SELECT candidate, seconds, failure FROM trial WHERE definition = ? AND sizes = ? "
                 "AND device = ? AND build = ? ORDER BY written");
  rows.bind(key.definition).bind(key.sizes).bind(key.device).bind(key.build);
  while (rows.step())
    found.push_back({rows.text(0), rows.number(1), rows.text(2)});
  return found;
}

template <typename... Values>
bool RecordStore::write(const char* sql, const Values&... values) {
  const std::lock_guard lock(database_mutex_);
  if (database_.get() == nullptr) return false;
  Statement statement(database_.get(), sql);
  (statement.bind(values), ...);
  statement.step();
  const bool done = statement.result() == SQLITE_DONE;
  std::string problem;
  if (!done) problem = not_kept("tuning records", path_, sqlite3_errmsg(database_.get()));
  const std::lock_guard memory(mutex_);
  if (!done && problem_ != problem) spdlog::warn("{}", problem);
  problem_ = std::move(problem);
  return done;
}

int64_t RecordStore::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(records_.size());
}

std::string RecordStore::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace kiln::server
