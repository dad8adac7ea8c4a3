#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kiln/internal/jobs.pb.h"
#include "server/database.h"
#include "server/errors.h"
#include "server/ipc/fd.h"
#include "server/jobs/job_record.h"

namespace kiln::server {

/// Jobs on disk: FOLDER/jobs.sqlite, and FOLDER/blobs for what is large. One daemon uses a folder
/// at a time; what one that was killed has left there the next one goes on with.
///
/// Any thread may use it, and waits for the disk.
class JobStore {
 public:
  /// Takes FOLDER, or the first of FOLDER-2, FOLDER-3, ... that no other daemon uses. Does not
  /// throw: what is wrong is told by problem() and by add().
  explicit JobStore(const std::filesystem::path& folder);

  /// What was there, in the order of submission.
  std::vector<JobRecord> take_records() { return std::move(records_); }
  /// Empty, or why no jobs are accepted.
  std::string problem() const;

  /// From when this returns the job outlives the daemon. Throws Unavailable JOB_STORE.
  void add(const JobRecord& record, const internal::JobSpec& spec);
  /// Throws Unavailable JOB_STORE.
  internal::JobSpec spec(const std::string& job);
  void note_attempts(const std::string& job, uint32_t attempts);
  /// Ends a job that has not ended; false: it has, or it cannot be written.
  bool end(const JobRecord& record, const Outcome<v1::RunResponse>& outcome);
  /// How a job ended. Throws Unavailable JOB_STORE.
  Outcome<v1::RunResponse> outcome(const std::string& job);
  void remove(const std::string& job);

  /// Contents that a job has or gives, by a name of its own. Throws Unavailable JOB_STORE.
  void write_blob(const std::string& job, const std::string& name, const uint8_t* data,
                  int64_t bytes);
  void read_blob(const std::string& job, const std::string& name, uint8_t* data, int64_t bytes);
  /// Inputs are not needed any more once a job has ended.
  void remove_blobs(const std::string& job, const std::string& kind);

 private:
  int read(sqlite3* database, std::string& why);
  void remove_strangers(const std::vector<JobRecord>& records) const;
  [[noreturn]] void fail_with(const std::string& why) const;
  std::filesystem::path blob(const std::string& job, const std::string& name) const;
  template <typename... Values>
  bool execute(const char* sql, const Values&... values);

  std::filesystem::path folder_;
  Fd lock_;
  mutable std::mutex mutex_;
  std::vector<JobRecord> records_;
  std::unique_ptr<Database> database_;
  std::string problem_;
};

}  // namespace kiln::server
