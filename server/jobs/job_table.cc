// States of jobs, and who waits for them: watchers are told of each change, waiters of the end.
// Phases only go forwards, so news that arrives late changes nothing.
#include "server/jobs/job_table.h"

#include <algorithm>

#include "server/tensors/tensor_store.h"

namespace kiln::server {

namespace {

bool has_ended(v1::JobPhase phase) { return phase >= v1::JOB_PHASE_DONE; }

/// How a job that ended so is listed: a cancel is no failure.
v1::JobPhase last_phase(const Outcome<std::shared_ptr<const v1::RunResponse>>& outcome) {
  const Error* error = std::get_if<Error>(&outcome);
  if (error == nullptr) return v1::JOB_PHASE_DONE;
  return error->kind() == ErrorKind::Cancelled ? v1::JOB_PHASE_CANCELLED : v1::JOB_PHASE_FAILED;
}

int64_t bytes_of(const Outcome<std::shared_ptr<const v1::RunResponse>>& outcome) {
  const auto* reply = std::get_if<std::shared_ptr<const v1::RunResponse>>(&outcome);
  return reply == nullptr ? 0 : static_cast<int64_t>((*reply)->ByteSizeLong());
}

}  // namespace

std::string JobTable::add(const std::string& kernel, std::shared_ptr<Call> call) {
  const std::lock_guard lock(mutex_);
  const auto running = std::count_if(jobs_.begin(), jobs_.end(),
                                     [](const auto& job) { return !has_ended(job.second.phase); });
  if (static_cast<size_t>(running) >= options_.unfinished) {
    fail(ErrorKind::ResourceExhausted, "QUEUE_FULL",
         "{} jobs are unfinished already; try again soon", running);
  }
  const std::string id = fmt::format("job-{}-{}", next_++, random_hex(4));
  Job& job = jobs_[id];
  job.tenant = call->tenant();
  job.kernel = kernel;
  job.call = std::move(call);
  return id;
}

JobTable::Jobs::iterator JobTable::find(const std::string& tenant, const std::string& job) {
  const auto at = jobs_.find(job);
  if (at == jobs_.end() || at->second.tenant != tenant) {
    fail(ErrorKind::NotFound, "JOB", "there is no job {}; results are kept for {} minutes",
         job.substr(0, 80),
         std::chrono::duration_cast<std::chrono::minutes>(options_.kept).count());
  }
  return at;
}

v1::JobState JobTable::state_of(const std::string& id, const Job& job) {
  v1::JobState state;
  state.set_job(id);
  state.set_phase(job.phase);
  state.set_kernel(job.kernel);
  state.set_seconds(
      seconds_between(job.submitted, job.outcome != nullptr ? job.ended : Clock::now()));
  if (job.outcome != nullptr) {
    if (const Error* error = std::get_if<Error>(job.outcome.get())) {
      state.set_message(error->message());
    }
  }
  return state;
}

void JobTable::tell_watchers(const std::string& id, Job& job) {
  const v1::JobState state = state_of(id, job);
  // Watchers only take the state; what they do with it happens elsewhere.
  job.watchers.remove_if([&](const JobWatcher& watcher) { return !watcher(state); });
}

void JobTable::advance(const std::string& id, v1::JobPhase phase) {
  const std::lock_guard lock(mutex_);
  const auto at = jobs_.find(id);
  // Reports of a compile and of a run come from different threads, and may overtake each other.
  if (at == jobs_.end() || at->second.phase >= phase) return;
  at->second.phase = phase;
  tell_watchers(id, at->second);
}

void JobTable::finish(const std::string& id,
                      Outcome<std::shared_ptr<const v1::RunResponse>> outcome) {
  std::list<JobResultDone> waiters;
  // Without the lock: a result may be large.
  const int64_t bytes = bytes_of(outcome);
  const auto shared =
      std::make_shared<Outcome<std::shared_ptr<const v1::RunResponse>>>(std::move(outcome));
  {
    const std::lock_guard lock(mutex_);
    const auto at = jobs_.find(id);
    if (at == jobs_.end() || has_ended(at->second.phase)) return;
    Job& job = at->second;
    job.phase = last_phase(*shared);
    job.ended = Clock::now();
    job.outcome = shared;
    job.bytes = bytes;
    result_bytes_ += bytes;
    ended_.push_back(id);
    job.call.reset();
    tell_watchers(id, job);
    job.watchers.clear();
    waiters.swap(job.waiters);
    drop_results();
  }
  for (const JobResultDone& waiter : waiters)
    waiter(*shared);
}

/// The oldest results go first, the latest one never: its caller is still on the way.
void JobTable::drop_results() {
  while (ended_.size() > 1 && result_bytes_ > options_.result_bytes)
    drop_oldest();
}

void JobTable::drop_oldest() {
  const auto at = jobs_.find(ended_.front());
  result_bytes_ -= at->second.bytes;
  jobs_.erase(at);
  ended_.pop_front();
}

void JobTable::watch(const std::string& tenant, const std::string& id, JobWatcher watcher) {
  const std::lock_guard lock(mutex_);
  Job& job = find(tenant, id)->second;
  if (watcher(state_of(id, job)) && !has_ended(job.phase)) {
    job.watchers.push_back(std::move(watcher));
  }
}

void JobTable::result(const std::string& tenant, const std::string& id, JobResultDone done) {
  std::shared_ptr<Outcome<std::shared_ptr<const v1::RunResponse>>> outcome;
  {
    const std::lock_guard lock(mutex_);
    Job& job = find(tenant, id)->second;
    outcome = job.outcome;
    if (outcome == nullptr) {
      job.waiters.push_back(std::move(done));
      return;
    }
  }
  done(*outcome);
}

v1::JobState JobTable::cancel(const std::string& tenant, const std::string& id) {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    call = find(tenant, id)->second.call;
  }
  // Without the lock: the work that it ends reports here.
  if (call) call->cancel();
  const std::lock_guard lock(mutex_);
  return state_of(id, find(tenant, id)->second);
}

void JobTable::cancel_all() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, job] : jobs_) {
      if (job.call) calls.push_back(job.call);
    }
  }
  for (const std::shared_ptr<Call>& call : calls)
    call->cancel();
}

std::vector<v1::JobState> JobTable::list(const std::string& tenant) const {
  const std::lock_guard lock(mutex_);
  std::vector<v1::JobState> states;
  for (const auto& [id, job] : jobs_) {
    if (job.tenant == tenant) states.push_back(state_of(id, job));
  }
  return states;
}

size_t JobTable::unfinished() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const auto& job) { return !has_ended(job.second.phase); }));
}

void JobTable::expire(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  while (!ended_.empty() && jobs_.at(ended_.front()).ended + options_.kept < now)
    drop_oldest();
}

}  // namespace kiln::server
