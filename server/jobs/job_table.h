#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/v1/service.pb.h"
#include "server/call.h"
#include "server/errors.h"

namespace kiln::server {

/// Who wants to know of each state of a job; false from it: no more.
using JobWatcher = std::function<bool(const v1::JobState&)>;
using JobResultDone = std::function<void(Outcome<std::shared_ptr<const v1::RunResponse>>)>;

/// Jobs, in memory, each its tenant's alone: what they do is done by others, who report here.
/// Results are kept for a while after the end, then the job is NotFound.
class JobTable {
 public:
  struct Options {
    size_t unfinished = 256;
    Clock::duration kept = std::chrono::minutes(10);
    int64_t result_bytes = int64_t{256} << 20;  // of all kept results
  };
  explicit JobTable(const Options& options) : options_(options) {}

  /// A new job in the phase QUEUED. Throws ResourceExhausted QUEUE_FULL.
  std::string add(const std::string& kernel, std::shared_ptr<Call> call);
  void advance(const std::string& job, v1::JobPhase phase);
  void finish(const std::string& job, Outcome<std::shared_ptr<const v1::RunResponse>> outcome);

  /// Tells the state now, then each change until the end. Throws NotFound JOB.
  void watch(const std::string& tenant, const std::string& job, JobWatcher watcher);
  /// Tells the result once the job has ended. Throws NotFound JOB.
  void result(const std::string& tenant, const std::string& job, JobResultDone done);
  /// Asks it to end. Throws NotFound JOB.
  v1::JobState cancel(const std::string& tenant, const std::string& job);
  void cancel_all();
  std::vector<v1::JobState> list(const std::string& tenant) const;
  size_t unfinished() const;
  void expire(Clock::time_point now);

 private:
  struct Job {
    std::string tenant;
    std::string kernel;
    v1::JobPhase phase = v1::JOB_PHASE_QUEUED;
    Clock::time_point submitted = Clock::now();
    Clock::time_point ended{};
    std::shared_ptr<Call> call;
    std::shared_ptr<Outcome<std::shared_ptr<const v1::RunResponse>>> outcome;  // null: not ended
    int64_t bytes = 0;                                                         // of the result
    std::list<JobWatcher> watchers;
    std::list<JobResultDone> waiters;
  };
  using Jobs = std::map<std::string, Job>;

  Jobs::iterator find(const std::string& tenant, const std::string& job);
  static v1::JobState state_of(const std::string& id, const Job& job);
  void tell_watchers(const std::string& id, Job& job);
  void drop_results();
  void drop_oldest();

  const Options options_;
  mutable std::mutex mutex_;
  Jobs jobs_;
  std::deque<std::string> ended_;  // ids, in the order of their ends
  int64_t result_bytes_ = 0;       // of all that have ended
  uint64_t next_ = 1;
};

}  // namespace kiln::server
