#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/compile_service.h"
#include "server/engine/run_service.h"
#include "server/jobs/job_store.h"
#include "server/jobs/job_table.h"
#include "server/task_queue.h"

namespace kiln::server {

/// What jobs are done with.
struct JobParts {
  CompileCall compile;
  RunService& runs;
  TensorStore& tensors;
  Sessions& sessions;
  std::shared_ptr<ArenaPool> arenas;
};

/// Jobs: compiles and runs that outlive their caller and the daemon. A job that was accepted ends
/// once, and is begun at least once; one that was under way when a daemon ended is begun again by
/// the next one, at most three times. Its inputs are as they were when it was submitted.
///
/// Any thread may use it; disks are waited for in a thread of its own.
class JobService {
 public:
  JobService(JobParts parts, const std::filesystem::path& folder, const JobTable::Options& options);
  ~JobService() { stop(); }

  template <typename T>
  using Done = std::function<void(Outcome<T>)>;

  /// `kernel` is the name for lists. Tells the id once the job is kept. Throws what is wrong with
  /// the arguments, ResourceExhausted QUEUE_FULL or JOB_BYTES.
  void submit(const v1::SubmitRequest& request, const std::string& kernel, const Caller& caller,
              Done<std::string> done);
  /// As JobTable::watch.
  void watch(const std::string& tenant, const std::string& job, JobWatcher watcher) {
    table_.watch(tenant, job, std::move(watcher));
  }
  /// Tells the result once the job has ended; what does not fit a reply is a tensor of the session.
  /// Throws NotFound JOB or SESSION.
  void result(const std::string& tenant, const v1::ResultRequest& request,
              Done<v1::RunResponse> done);
  /// Tells the state once the end is asked for. Throws NotFound JOB.
  void cancel(const std::string& tenant, const std::string& job, Done<v1::JobState> done);
  std::vector<v1::JobState> list(const std::string& tenant) const { return table_.list(tenant); }
  std::vector<v1::JobState> list_all() const { return table_.list_all(); }

  size_t unfinished() const { return table_.unfinished(); }
  size_t under_way() const { return table_.under_way(); }
  std::string problem() const { return store_.problem(); }
  void tick(Clock::time_point now);
  /// Begins no more jobs; those that are under way may end.
  void drain() { table_.drain(); }
  /// Waits for the disk. Call when nothing that was begun can report any more.
  void stop() { work_.stop(); }

 private:
  struct Input;

  std::vector<Input> inputs_of(const v1::RunRequest& run, const Caller& caller) const;
  void keep(const std::string& job, JobRecord record, internal::JobSpec spec,
            const std::vector<Input>& inputs);
  void begin_next();
  void begin(const JobTable::Begun& begun);
  void compile(const JobTable::Begun& begun, const std::shared_ptr<internal::JobSpec>& spec);
  void run(const JobTable::Begun& begun, const internal::JobSpec& spec, const std::string& kernel);
  std::shared_ptr<Slice> load(const std::string& job, const std::string& name, int64_t bytes);
  /// Decides what an end of a begun job means: its own, or that it begins once more.
  void take(const JobTable::Begun& begun, Outcome<RunResult> outcome);
  Outcome<v1::RunResponse> keep_outputs(const JobTable::Begun& begun, const RunResult& result,
                                        int64_t& bytes);
  void end(const std::string& job, Outcome<v1::RunResponse> outcome, int64_t bytes = 0);
  v1::RunResponse load_outputs(const std::string& job, v1::RunResponse response,
                               const std::string& tenant, const std::string& session);

  const JobParts parts_;
  JobStore store_;
  JobTable table_;
  TaskQueue work_;  // last: its thread uses the above
};

}  // namespace kiln::server
