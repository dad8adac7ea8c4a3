// Jobs in SQLite, contents of tensors in files beside it. A job is accepted once its row is
// written, after its files; it ends by one UPDATE of a row that has not ended, so that it ends
// once, whatever was killed before. A file without a row is what a killed daemon left, and is
// removed.
//
//   submit: blobs, INSERT    run: blobs, UPDATE ... WHERE phase < DONE    expire: DELETE, blobs
#include "server/jobs/job_store.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>
#include <sys/file.h>

#include "server/not_kept.h"
#include "server/statement.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kSchema = 1;
constexpr int kMostFolders = 100;

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS job (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id BLOB UNIQUE, tenant BLOB, request_id BLOB, kernel BLOB, priority INTEGER, phase INTEGER,
  attempts INTEGER, submitted REAL, ended REAL, input_bytes INTEGER, result_bytes INTEGER,
  spec BLOB, error BLOB, response BLOB);
)";

/// The lock of a folder that no other daemon holds; it is let go however this one ends.
Fd lock_folder(const fs::path& folder, std::string& problem) {
  std::error_code error;
  fs::create_directories(folder / "blobs", error);
  Fd fd(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) {
    problem = not_kept("jobs", folder, error ? error.message() : std::strerror(errno));
    return {};
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return fd;
}

}  // namespace

JobStore::JobStore(const fs::path& folder) {
  std::string problem;
  for (int i = 1; i <= kMostFolders && !lock_ && problem.empty(); ++i) {
    folder_ = i == 1 ? folder : fs::path(fmt::format("{}-{}", folder.string(), i));
    lock_ = lock_folder(folder_, problem);
  }
  if (!lock_) {
    if (problem.empty()) problem = not_kept("jobs", folder, "other daemons use all its folders");
    problem_ = problem;
    spdlog::warn("{}", problem_);
    return;
  }
  database_ = std::make_unique<Database>(Database::Options{
      .path = folder_ / "jobs.sqlite",
      .tables = kTables,
      .version = kSchema,
      .what = "jobs",
      .read = [this](sqlite3* database, std::string& why) { return read(database, why); }});
  problem_ = database_->problem();
  if (problem_.empty()) remove_strangers(records_);
}

int JobStore::read(sqlite3* database, std::string& why) {
  std::vector<JobRecord> records;
  Statement rows(database,
                 "SELECT id, tenant, request_id, kernel, priority, phase, attempts, submitted, "
                 "ended, input_bytes, result_bytes, error FROM job ORDER BY number");
  while (rows.step()) {
    JobRecord record{.id = rows.text(0),
                     .tenant = rows.text(1),
                     .request_id = rows.text(2),
                     .kernel = rows.text(3),
                     .priority = static_cast<Priority>(rows.integer(4)),
                     .phase = static_cast<v1::JobPhase>(rows.integer(5)),
                     .attempts = static_cast<uint32_t>(rows.integer(6)),
                     .submitted = rows.number(7),
                     .ended = rows.number(8),
                     .input_bytes = rows.integer(9),
                     .result_bytes = rows.integer(10),
                     .message = {}};
    v1::ErrorDetail error;
    if (error.ParseFromString(rows.text(11))) record.message = error.message();
    records.push_back(std::move(record));
  }
  if (rows.result() != SQLITE_DONE) {
    why = sqlite3_errmsg(database);
    return rows.result();
  }
  records_ = std::move(records);
  return SQLITE_OK;
}

void JobStore::remove_strangers(const std::vector<JobRecord>& records) const {
  std::set<std::string> ids;
  for (const JobRecord& record : records)
    ids.insert(record.id);
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder_ / "blobs", ignored)) {
    const std::string name = file.path().filename().string();
    if (ids.count(name.substr(0, name.find('.'))) == 0) fs::remove(file.path(), ignored);
  }
}

std::string JobStore::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void JobStore::fail_with(const std::string& why) const {
  fail(ErrorKind::Unavailable, "JOB_STORE", "{}", why);
}

template <typename... Values>
bool JobStore::execute(const char* sql, const Values&... values) {
  const std::lock_guard lock(mutex_);
  if (!database_ || database_->get() == nullptr) return false;
  Statement statement(database_->get(), sql);
  (statement.bind(values), ...);
  statement.step();
  if (statement.result() == SQLITE_DONE) {
    problem_.clear();
    return sqlite3_changes(database_->get()) == 1;
  }
  problem_ = not_kept("jobs", folder_, sqlite3_errmsg(database_->get()));
  spdlog::warn("{}", problem_);
  return false;
}

void JobStore::add(const JobRecord& record, const internal::JobSpec& spec) {
  const bool kept = execute(
      "INSERT INTO job (id, tenant, request_id, kernel, priority, phase, attempts, submitted, "
      "ended, input_bytes, result_bytes, spec) VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0, ?, 0, ?)",
      record.id, record.tenant, record.request_id, record.kernel,
      static_cast<int64_t>(record.priority), static_cast<int64_t>(record.phase), record.submitted,
      record.input_bytes, spec.SerializeAsString());
  if (!kept) fail_with(problem());
}

internal::JobSpec JobStore::spec(const std::string& job) {
  const std::lock_guard lock(mutex_);
  if (!database_ || database_->get() == nullptr) fail_with(problem_);
  Statement row(database_->get(), "SELECT spec FROM job WHERE id = ?");
  row.bind(job);
  internal::JobSpec spec;
  if (!row.step() || !spec.ParseFromString(row.text(0))) {
    fail_with(fmt::format("{} cannot be read: {}", job, sqlite3_errmsg(database_->get())));
  }
  return spec;
}

void JobStore::note_attempts(const std::string& job, uint32_t attempts) {
  execute("UPDATE job SET attempts = ? WHERE id = ?", static_cast<int64_t>(attempts), job);
}

bool JobStore::end(const JobRecord& record, const Outcome<v1::RunResponse>& outcome) {
  const Error* const error = std::get_if<Error>(&outcome);
  // What is to be done is not needed any more.
  return execute(
      "UPDATE job SET phase = ?, ended = ?, result_bytes = ?, error = ?, response = ?, spec = NULL "
      "WHERE id = ? AND phase < ?",
      static_cast<int64_t>(record.phase), record.ended, record.result_bytes,
      error != nullptr ? to_wire(*error).SerializeAsString() : "",
      error != nullptr ? "" : std::get<v1::RunResponse>(outcome).SerializeAsString(), record.id,
      static_cast<int64_t>(v1::JOB_PHASE_DONE));
}

Outcome<v1::RunResponse> JobStore::outcome(const std::string& job) {
  const std::lock_guard lock(mutex_);
  if (!database_ || database_->get() == nullptr) fail_with(problem_);
  Statement row(database_->get(), "SELECT error, response FROM job WHERE id = ?");
  row.bind(job);
  v1::RunResponse response;
  if (!row.step() || !response.ParseFromString(row.text(1))) {
    fail_with(fmt::format("{} cannot be read: {}", job, sqlite3_errmsg(database_->get())));
  }
  v1::ErrorDetail error;
  if (!row.text(0).empty() && error.ParseFromString(row.text(0))) return from_wire(error);
  return response;
}

void JobStore::remove(const std::string& job) {
  execute("DELETE FROM job WHERE id = ?", job);
  remove_blobs(job, "");
}

fs::path JobStore::blob(const std::string& job, const std::string& name) const {
  return folder_ / "blobs" / (job + "." + name);
}

void JobStore::write_blob(const std::string& job, const std::string& name, const uint8_t* data,
                          int64_t bytes) {
  std::ofstream file(blob(job, name), std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(data), bytes);
  file.close();
  if (file) return;
  const int number = errno;
  std::error_code ignored;
  fs::remove(blob(job, name), ignored);
  fail_with(not_kept("jobs", folder_, std::strerror(number)));
}

void JobStore::read_blob(const std::string& job, const std::string& name, uint8_t* data,
                         int64_t bytes) {
  std::ifstream file(blob(job, name), std::ios::binary);
  if (bytes > 0) file.read(reinterpret_cast<char*>(data), bytes);
  if (!file || file.peek() != std::ifstream::traits_type::eof()) {
    fail_with(fmt::format("what {} keeps in {} is damaged", job, blob(job, name).string()));
  }
}

void JobStore::remove_blobs(const std::string& job, const std::string& kind) {
  std::error_code ignored;
  for (int i = 0;; ++i) {
    bool found = false;
    for (const char* each : {"in", "out"}) {
      if (!kind.empty() && kind != each) continue;
      found = fs::remove(blob(job, fmt::format("{}{}", each, i)), ignored) || found;
    }
    if (!found) return;
  }
}

}  // namespace kiln::server
