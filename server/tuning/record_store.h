#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kiln/v1/schedule.pb.h"
#include "server/database.h"

namespace kiln::server {

/// What a search is about. Names are no part of it: `definition` is a hash of the canonical form.
struct TuningKey {
  std::string definition;  // with the steps and options that were given
  std::string sizes;       // the shape class: "" where all sizes are constants
  std::string device;      // "znver5, 2 threads"; or code, of what was not measured
  std::string build;       // of the compiler

  /// What stands for the device of an arch that is not here: its code, which is read.
  static std::string code_for(const std::string& arch) { return kCodeFor + arch; }
  /// The arch of code_for(); empty: a device.
  std::string read_for() const {
    return device.starts_with(kCodeFor) ? device.substr(kCodeFor.size()) : "";
  }
  static inline const std::string kCodeFor = "the code for ";

  auto operator<=>(const TuningKey&) const = default;
};

/// The fastest schedule that a search has found.
struct TuningRecord {
  std::string candidate;  // key_of()
  v1::Schedule schedule;  // of the canonical form
  double seconds = 0;     // a run
  double default_seconds = 0;

  /// 12 hex digits that stand for the schedule and what it is for.
  std::string id;
  int64_t written = 0;  // microseconds of the system's clock
};

/// One candidate that was measured; without `seconds`, the reason why it could not be, which is
/// nobody's words, since whoever searches for the same sees it.
struct TuningTrial {
  std::string candidate;
  double seconds = 0;
  std::string failure;
};

/// Tuning records, in memory and in FOLDER/tuning.sqlite, and the trials of unfinished searches.
///
/// Never an error: a file that is damaged is renamed and logged, and what cannot be written stays
/// in memory, which problem() tells. Any thread may use it; all but find() may wait for the disk.
class RecordStore {
 public:
  struct Limits {
    int64_t records = 10'000;  // the oldest go first
    int64_t trials = 200'000;
  };
  RecordStore(const std::filesystem::path& folder, const Limits& limits);

  /// The record for exactly this.
  std::optional<TuningRecord> find(const TuningKey& key) const;
  /// For a compile that knows no sizes: the record of the largest shape class, where time matters
  /// most. `key.sizes` is not looked at.
  std::optional<TuningRecord> find_largest(const TuningKey& key) const;

  /// `record.id` is filled in.
  TuningRecord put(const TuningKey& key, TuningRecord record);
  void remove(const TuningKey& key);
  void add_trial(const TuningKey& key, const TuningTrial& trial);
  std::vector<TuningTrial> trials(const TuningKey& key);

  int64_t count() const;
  /// Empty, or why what is put now is not kept.
  std::string problem() const;

 private:
  int read_records(sqlite3* database, std::string& why);
  template <typename... Values>
  bool write(const char* sql, const Values&... values);

  const std::filesystem::path path_;
  const Limits limits_;
  mutable std::mutex mutex_;  // of what is in memory
  std::map<TuningKey, TuningRecord> records_;
  std::mutex database_mutex_;
  Database database_;  // fills the records
  std::string problem_;
};

}  // namespace kiln::server
