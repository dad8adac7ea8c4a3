// States of jobs, whose turn it is, and who waits for them: watchers are told of each change,
// waiters of the end. Phases only go forwards, so news that arrives late changes nothing; but a job
// that could not be done for a passing reason is queued once more.
//
//   reserve -> accept -> begin -> advance ... -> finish -> expire
//                          ^-- put_back --'
#include "server/jobs/job_table.h"

#include <algorithm>
#include <charconv>

#include "runtime/core/error.h"
#include "server/tensors/tensor_store.h"

namespace kiln::server {

namespace {

std::string kept_text(Clock::duration kept) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(kept).count();
  return minutes % 60 == 0 && minutes > 0 ? fmt::format("{} hours", minutes / 60)
                                          : fmt::format("{} minutes", minutes);
}

/// "job-12-0123abcd" -> 12.
uint64_t number_of(const std::string& id) {
  uint64_t number = 0;
  if (id.size() > 4) std::from_chars(id.data() + 4, id.data() + id.size(), number);
  return number;
}

}  // namespace

JobTable::Rank JobTable::rank_of(const JobRecord& record) {
  return {-static_cast<int>(record.priority), number_of(record.id)};
}

std::string JobTable::reserve(JobRecord record) {
  const std::lock_guard lock(mutex_);
  if (unfinished_ >= options_.unfinished) {
    fail(ErrorKind::ResourceExhausted, "QUEUE_FULL",
         "{} jobs are unfinished already; try again soon", unfinished_);
  }
  Tenant& tenant = tenants_[record.tenant];
  const size_t most = options_.quotas->of(record.tenant).jobs;
  if (most != 0 && tenant.unfinished >= most) {
    fail(ErrorKind::ResourceExhausted, "JOB_COUNT",
         "{} jobs of this tenant are unfinished, as many as it may have; wait until one has "
         "ended, or cancel one",
         tenant.unfinished);
  }
  if (tenant.input_bytes + record.input_bytes > options_.input_bytes) {
    fail(ErrorKind::ResourceExhausted, "JOB_BYTES",
         "the inputs of unfinished jobs would be {} bytes; the limit of a tenant is {}",
         tenant.input_bytes + record.input_bytes, options_.input_bytes);
  }
  ++unfinished_;
  ++tenant.unfinished;
  tenant.input_bytes += record.input_bytes;
  record.id = fmt::format("job-{}-{}", next_++, random_hex(4));
  record.submitted = seconds_since_1970();
  const std::string id = record.id;
  jobs_[id].record = std::move(record);
  return id;
}

void JobTable::wait_for_turn(Job& job) {
  tenant_of(job).waiting[rank_of(job.record)] = job.record.id;
}

void JobTable::accept(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_.at(id);
  job.accepted = true;
  if (!job.record.request_id.empty()) tenant_of(job).requests[job.record.request_id] = id;
  wait_for_turn(job);
}

void JobTable::drop(const std::string& id) {
  const std::lock_guard lock(mutex_);
  leave(jobs_.at(id));
  jobs_.erase(id);
}

/// It is none of the unfinished ones any more.
void JobTable::leave(Job& job) {
  Tenant& tenant = tenant_of(job);
  tenant.waiting.erase(rank_of(job.record));
  tenant.input_bytes -= job.record.input_bytes;
  --tenant.unfinished;
  --unfinished_;
  if (!job.call) return;
  job.call.reset();
  --tenant.under_way;
  --under_way_;
}

void JobTable::restore(JobRecord record) {
  const std::lock_guard lock(mutex_);
  next_ = std::max(next_, number_of(record.id) + 1);
  // A clock that was set back meanwhile ages nothing.
  const auto since = [now = Clock::now()](double time) {
    return now - std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(std::max(seconds_since_1970() - time, 0.0)));
  };
  const std::string id = record.id;
  Job& job = jobs_[id];
  job.record = std::move(record);
  job.accepted = true;
  job.submitted = since(job.record.submitted);
  Tenant& tenant = tenant_of(job);
  if (!job.record.request_id.empty()) tenant.requests[job.record.request_id] = id;
  if (!has_ended(job.record.phase)) {
    ++unfinished_;
    ++tenant.unfinished;
    tenant.input_bytes += job.record.input_bytes;
    job.record.phase = v1::JOB_PHASE_QUEUED;
    wait_for_turn(job);
    return;
  }
  job.ended = since(job.record.ended);
  tenant.result_bytes += job.record.result_bytes;
  // They come in the order of submission.
  ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), job.ended,
                                 [&](Clock::time_point ended, const std::string& other) {
                                   return ended < jobs_.at(other).ended;
                                 }),
                id);
}

std::optional<std::string> JobTable::find_request(const std::string& tenant,
                                                  const std::string& request) const {
  const std::lock_guard lock(mutex_);
  const auto of_tenant = tenants_.find(tenant);
  if (of_tenant == tenants_.end()) return std::nullopt;
  const auto at = of_tenant->second.requests.find(request);
  return at == of_tenant->second.requests.end() ? std::nullopt : std::optional(at->second);
}

std::optional<JobTable::Begun> JobTable::begin(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (draining_ || under_way_ >= options_.at_a_time) return std::nullopt;
  Job* chosen = nullptr;
  std::tuple<size_t, Rank> best;
  for (auto& [name, tenant] : tenants_) {
    const auto first =
        std::find_if(tenant.waiting.begin(), tenant.waiting.end(),
                     [&](const auto& waits) { return jobs_.at(waits.second).not_before <= now; });
    if (first == tenant.waiting.end()) continue;
    const std::tuple own{tenant.under_way, first->first};
    if (chosen != nullptr && best <= own) continue;
    chosen = &jobs_.at(first->second);
    best = own;
  }
  if (chosen == nullptr) return std::nullopt;
  JobRecord& record = chosen->record;
  tenant_of(*chosen).waiting.erase(rank_of(record));
  ++tenant_of(*chosen).under_way;
  ++under_way_;
  ++record.attempts;
  chosen->call = std::make_shared<Call>(Caller{
      .principal = {.tenant = record.tenant, .client = "jobs"}, .priority = record.priority});
  return Begun{record.id, record.attempts, chosen->call};
}

void JobTable::put_back(const std::string& id, bool counted) {
  const std::lock_guard lock(mutex_);
  const auto at = jobs_.find(id);
  if (at == jobs_.end() || has_ended(at->second.record.phase)) return;
  Job& job = at->second;
  if (!job.call) return;
  job.call.reset();
  --tenant_of(job).under_way;
  --under_way_;
  if (!counted) --job.record.attempts;
  wait_for_turn(job);
  job.not_before = Clock::now() + options_.pause;
  job.record.phase = v1::JOB_PHASE_QUEUED;
  tell_watchers(job);
}

v1::JobState JobTable::state_of(const Job& job) {
  v1::JobState state;
  state.set_job(job.record.id);
  state.set_phase(job.record.phase);
  state.set_kernel(job.record.kernel);
  state.set_seconds(
      seconds_between(job.submitted, has_ended(job.record.phase) ? job.ended : Clock::now()));
  state.set_message(job.record.message);
  state.set_attempts(job.record.attempts);
  state.set_submitted(job.record.submitted);
  return state;
}

void JobTable::tell_watchers(Job& job) {
  const v1::JobState state = state_of(job);
  // Watchers only take the state; what they do with it happens elsewhere.
  job.watchers.remove_if([&](const JobWatcher& watcher) { return !watcher(state); });
}

void JobTable::advance(const std::string& id, v1::JobPhase phase) {
  const std::lock_guard lock(mutex_);
  const auto at = jobs_.find(id);
  // Reports of a compile and of a run come from different threads, and may overtake each other.
  if (at == jobs_.end() || at->second.record.phase >= phase) return;
  at->second.record.phase = phase;
  tell_watchers(at->second);
}

std::optional<JobRecord> JobTable::ending(const std::string& id, v1::JobPhase phase,
                                          const std::string& message, int64_t result_bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = jobs_.find(id);
  if (at == jobs_.end() || has_ended(at->second.record.phase)) return std::nullopt;
  JobRecord record = at->second.record;
  record.phase = phase;
  record.message = message;
  record.ended = seconds_since_1970();
  record.result_bytes = result_bytes;
  return record;
}

void JobTable::finish(const JobRecord& record) {
  std::list<std::function<void()>> waiters;
  {
    const std::lock_guard lock(mutex_);
    const auto at = jobs_.find(record.id);
    if (at == jobs_.end() || has_ended(at->second.record.phase)) return;
    Job& job = at->second;
    leave(job);
    job.record = record;
    job.ended = Clock::now();
    tenant_of(job).result_bytes += record.result_bytes;
    ended_.push_back(record.id);
    tell_watchers(job);
    job.watchers.clear();
    waiters.swap(job.waiters);
  }
  for (const auto& waiter : waiters)
    waiter();
}

JobTable::Job& JobTable::find(const std::string& tenant, const std::string& id) {
  const auto at = jobs_.find(id);
  if (at == jobs_.end() || !at->second.accepted || at->second.record.tenant != tenant) {
    fail(ErrorKind::NotFound, "JOB", "there is no job {}; results are kept for {}",
         id.substr(0, 80), kept_text(options_.kept));
  }
  return at->second;
}

void JobTable::watch(const std::string& tenant, const std::string& id, JobWatcher watcher) {
  const std::lock_guard lock(mutex_);
  Job& job = find(tenant, id);
  if (watcher(state_of(job)) && !has_ended(job.record.phase)) {
    job.watchers.push_back(std::move(watcher));
  }
}

void JobTable::when_ended(const std::string& tenant, const std::string& id,
                          std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    Job& job = find(tenant, id);
    if (!has_ended(job.record.phase)) {
      job.waiters.push_back(std::move(done));
      return;
    }
  }
  done();
}

bool JobTable::cancel(const std::string& tenant, const std::string& id) {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    Job& job = find(tenant, id);
    if (has_ended(job.record.phase)) return false;
    // Its turn does not come any more.
    tenant_of(job).waiting.erase(rank_of(job.record));
    call = job.call;
  }
  if (!call) return true;
  // Without the lock: the work that it ends reports here.
  call->cancel();
  return false;
}

v1::JobState JobTable::state(const std::string& tenant, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return state_of(const_cast<JobTable*>(this)->find(tenant, id));
}

void JobTable::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

std::vector<v1::JobState> JobTable::list(const std::string& tenant) const {
  const std::lock_guard lock(mutex_);
  std::vector<const Job*> own;
  for (const auto& [id, job] : jobs_) {
    if (job.accepted && job.record.tenant == tenant) own.push_back(&job);
  }
  return states_of(std::move(own));
}

std::vector<v1::JobState> JobTable::list_all() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Job*> all;
  for (const auto& [id, job] : jobs_) {
    if (job.accepted) all.push_back(&job);
  }
  return states_of(std::move(all));
}

std::vector<v1::JobState> JobTable::states_of(std::vector<const Job*> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return number_of(a->record.id) < number_of(b->record.id);
  });
  std::vector<v1::JobState> states;
  for (const Job* job : jobs)
    states.push_back(state_of(*job));
  return states;
}

size_t JobTable::unfinished() const {
  const std::lock_guard lock(mutex_);
  return unfinished_;
}

size_t JobTable::under_way() const {
  const std::lock_guard lock(mutex_);
  return under_way_;
}

void JobTable::forget(const std::string& id) {
  const auto at = jobs_.find(id);
  Tenant& tenant = tenant_of(at->second);
  tenant.result_bytes -= at->second.record.result_bytes;
  tenant.requests.erase(at->second.record.request_id);
  std::erase(ended_, id);
  jobs_.erase(at);
}

std::vector<std::string> JobTable::expire(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> gone;
  const auto drop = [&](const std::string& id) {
    gone.push_back(id);
    forget(gone.back());
  };
  while (!ended_.empty() &&
         (ended_.size() > options_.ended || jobs_.at(ended_.front()).ended + options_.kept < now)) {
    drop(ended_.front());
  }
  for (auto& [name, tenant] : tenants_) {
    while (tenant.result_bytes > options_.result_bytes) {
      const auto oldest =
          std::find_if(ended_.begin(), ended_.end(), [&, &owner = name](const auto& id) {
            return jobs_.at(id).record.tenant == owner && jobs_.at(id).record.result_bytes > 0;
          });
      // The latest one never: its caller may still be on the way.
      if (jobs_.at(*oldest).record.result_bytes == tenant.result_bytes) break;
      drop(*oldest);
    }
  }
  return gone;
}

}  // namespace kiln::server
