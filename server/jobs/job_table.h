#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kiln/v1/service.pb.h"
#include "server/call.h"
#include "server/jobs/job_record.h"
#include "server/quotas.h"

namespace kiln::server {

/// Who wants to know of each state of a job; false from it: no more.
using JobWatcher = std::function<bool(const v1::JobState&)>;

/// The states of jobs, each its tenant's alone, and whose turn it is. What they do is done by
/// others, who report here. Any thread may use it; nothing of it waits.
class JobTable {
 public:
  struct Options {
    size_t unfinished = 4096;  // of all tenants
    SharedQuotas quotas = shared_quotas({});
    size_t ended = 10'000;                          // that are remembered
    int64_t input_bytes = int64_t{4} << 30;         // snapshots of one tenant's unfinished jobs
    int64_t result_bytes = int64_t{4} << 30;        // kept results of one tenant
    Clock::duration kept = std::chrono::hours(24);  // after the end
    size_t at_a_time = 4;                           // that are begun
    Clock::duration pause = std::chrono::milliseconds(200);  // before one is begun again
  };
  explicit JobTable(Options options) : options_(std::move(options)) {}

  /// A job with an id of its own that nobody sees yet. Throws ResourceExhausted QUEUE_FULL,
  /// JOB_COUNT or JOB_BYTES.
  std::string reserve(JobRecord record);
  /// It is kept: from now on it is seen and may begin.
  void accept(const std::string& job);
  /// It could not be kept.
  void drop(const std::string& job);
  /// What an earlier daemon has kept.
  void restore(JobRecord record);

  /// The id of a job that a client submitted under this id of its own.
  std::optional<std::string> find_request(const std::string& tenant,
                                          const std::string& request) const;

  struct Begun {
    std::string job;
    uint32_t attempts = 0;
    std::shared_ptr<Call> call;
  };
  /// The job whose turn it is, which is begun: of the tenant with the fewest under way, the most
  /// urgent, the oldest. Nothing while enough are under way.
  std::optional<Begun> begin(Clock::time_point now);
  /// Lets it begin once more, after a pause; `counted`: it has had its attempt.
  void put_back(const std::string& job, bool counted);
  void advance(const std::string& job, v1::JobPhase phase);
  /// As a job is that ends so: for who keeps it before finish() tells anybody. Nothing when it has
  /// ended.
  std::optional<JobRecord> ending(const std::string& job, v1::JobPhase phase,
                                  const std::string& message, int64_t result_bytes) const;
  void finish(const JobRecord& record);

  /// Tells the state now, then each change until the end. Throws NotFound JOB.
  void watch(const std::string& tenant, const std::string& job, JobWatcher watcher);
  /// Runs `done` once the job has ended. Throws NotFound JOB.
  void when_ended(const std::string& tenant, const std::string& job, std::function<void()> done);
  /// Asks it to end; true: it was not begun, so that its end is the caller's to report. Throws
  /// NotFound JOB.
  bool cancel(const std::string& tenant, const std::string& job);
  v1::JobState state(const std::string& tenant, const std::string& job) const;
  std::vector<v1::JobState> list(const std::string& tenant) const;
  /// Of all tenants, for operators.
  std::vector<v1::JobState> list_all() const;
  size_t unfinished() const;
  size_t under_way() const;
  /// No more are begun.
  void drain();
  /// Forgets jobs that ended long ago, and the oldest results of tenants that have too many.
  std::vector<std::string> expire(Clock::time_point now);

 private:
  struct Job {
    JobRecord record;
    bool accepted = false;
    Clock::time_point submitted = Clock::now();
    Clock::time_point ended{};
    Clock::time_point not_before{};
    std::shared_ptr<Call> call;  // while it is under way
    std::list<JobWatcher> watchers;
    std::list<std::function<void()>> waiters;
  };
  using Jobs = std::map<std::string, Job>;
  /// The most urgent first, then the oldest.
  using Rank = std::pair<int, uint64_t>;
  struct Tenant {
    std::map<Rank, std::string> waiting;
    size_t unfinished = 0;
    size_t under_way = 0;
    int64_t input_bytes = 0;                      // of unfinished jobs
    int64_t result_bytes = 0;                     // of ended ones
    std::map<std::string, std::string> requests;  // the client's id, the job
  };

  // With the lock held.
  static Rank rank_of(const JobRecord& record);
  Tenant& tenant_of(const Job& job) { return tenants_[job.record.tenant]; }
  void wait_for_turn(Job& job);
  void leave(Job& job);
  void forget(const std::string& job);
  Job& find(const std::string& tenant, const std::string& job);
  static v1::JobState state_of(const Job& job);
  static std::vector<v1::JobState> states_of(std::vector<const Job*> jobs);
  static void tell_watchers(Job& job);

  const Options options_;
  mutable std::mutex mutex_;
  Jobs jobs_;
  std::map<std::string, Tenant> tenants_;
  size_t unfinished_ = 0;
  size_t under_way_ = 0;
  std::deque<std::string> ended_;  // ids, in the order of their ends
  uint64_t next_ = 1;
  bool draining_ = false;
};

}  // namespace kiln::server
