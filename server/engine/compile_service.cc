// Finds an artifact in memory, on disk or at a compiler, once for all who ask at a time (single
// flight, as groupcache's).
//
//   three equal requests  ->  one Flight  ->  one compile  ->  three results, each in its own names
//
// An error speaks in the names of who asked first, so those with other names ask again.
#include "server/engine/compile_service.h"

#include <algorithm>

#include <unistd.h>

#include "runtime/core/called.h"
#include "runtime/core/host_clock.h"

namespace kiln::server {

namespace {

/// An artifact of a request must have the parameters and sizes that the request names.
void require_fitting(const Artifact& artifact, const KernelNames& names) {
  if (artifact.parameters.size() != names.parameters.size() ||
      artifact.size_count != static_cast<int32_t>(names.sizes.size())) {
    fail(ErrorKind::Internal, "ARTIFACT_SHAPE", "the artifact of {} does not fit its definition",
         called(names.kernel));
  }
}

}  // namespace

void CompileService::compile(CheckedRequest request, std::shared_ptr<Call> call, CompileDone done) {
  std::unique_lock lock(mutex_);
  // Under the lock that land() takes: between memory and flights nothing can slip through.
  if (auto found = memory_.find(request.key, request.form)) {
    lock.unlock();
    counters_.memory_hits.fetch_add(1);
    done(result_for(request, call->tenant(), std::move(found), v1::CACHE_LEVEL_MEMORY));
    return;
  }
  std::shared_ptr<Flight> begun;
  std::shared_ptr<Flight>& flight = flights_[request.form];
  if (!flight) flight = begun = std::make_shared<Flight>(request, call->caller());
  flight->waiters.push_back({std::move(request), std::move(call), std::move(done)});
  lock.unlock();
  if (begun) {
    level_work_.post([this, begun] { look_in_levels(begun); });
  }
}

CompileResult CompileService::result_for(const CheckedRequest& request, const std::string& tenant,
                                         std::shared_ptr<const CachedArtifact> compiled,
                                         v1::CacheLevel level) {
  CompileResult result;
  result.level = level;
  result.kernel = kernels_.find(request.kernel_id);
  if (result.kernel && result.kernel->compiled->form == compiled->form) return result;
  KernelEntry entry;
  entry.id = request.kernel_id;
  entry.tenant = tenant;
  entry.key = request.key;
  entry.compiled = std::move(compiled);
  entry.names = request.names;
  entry.request = request.wire.SerializeAsString();
  entry.note = request.note;
  result.kernel = kernels_.put(std::move(entry));
  return result;
}

void CompileService::look_in_levels(const std::shared_ptr<Flight>& flight) {
  for (size_t i = 0; i < levels_.size(); ++i) {
    const std::shared_ptr<const CachedArtifact> entry = find_in(*levels_[i], *flight);
    if (!entry) continue;
    const v1::CacheLevel level = levels_[i]->level();
    (level == v1::CACHE_LEVEL_DISK ? counters_.disk_hits : counters_.shared_hits).fetch_add(1);
    land(*flight, entry, level);
    return keep(flight->leader.key, entry, i);
  }
  ask_compiler(flight);
}

std::shared_ptr<const CachedArtifact> CompileService::find_in(CacheLevel& level,
                                                              const Flight& flight) {
  std::optional<std::string> bytes = level.find(flight.leader.key, flight.leader.form);
  if (!bytes) return nullptr;
  try {
    auto entry = cached_artifact(flight.leader.form, std::move(*bytes));
    require_fitting(*entry->artifact, flight.leader.names);
    return entry;
  } catch (const Error& error) {
    level.reject(flight.leader.key, error.message());
    return nullptr;
  }
}

void CompileService::keep(const std::string& key,
                          const std::shared_ptr<const CachedArtifact>& entry, size_t levels) {
  if (levels == 0) return;
  level_work_.post([this, key, entry, levels] {
    for (size_t i = 0; i < levels; ++i)
      levels_[i]->put(key, entry->form, entry->bytes);
  });
}

void CompileService::ask_compiler(const std::shared_ptr<Flight>& flight) {
  CompilerTask task;
  *task.message.mutable_compile()->mutable_request() = flight->leader.wire;
  task.kernel = flight->leader.names.kernel;
  task.caller = flight->caller;
  task.key = flight->leader.key;
  task.wanted = [this, flight] { return wanted(*flight); };
  task.done = [this, flight](Outcome<internal::FromWorker> outcome) {
    take_compiled(flight, std::move(outcome));
  };
  try {
    pool_.submit(std::move(task));
  } catch (...) {
    crash(*flight, current_error());
  }
}

bool CompileService::wanted(const Flight& flight) {
  const std::lock_guard lock(mutex_);
  return std::any_of(flight.waiters.begin(), flight.waiters.end(), [](const Waiter& waiter) {
    return !waiter.call->cancelled() && waiter.call->deadline() > Clock::now();
  });
}

void CompileService::take_compiled(const std::shared_ptr<Flight>& flight,
                                   Outcome<internal::FromWorker> outcome) {
  if (const Error* error = std::get_if<Error>(&outcome)) {
    // Somebody may have joined after the last one who waited had left.
    if (error->kind() == ErrorKind::Cancelled && wanted(*flight)) {
      ask_compiler(flight);
    } else {
      crash(*flight, *error);
    }
    return;
  }
  try {
    internal::FromWorker& reply = std::get<internal::FromWorker>(outcome);
    const auto entry = cached_artifact(flight->leader.form,
                                       std::move(*reply.mutable_compiled()->mutable_artifact()));
    require_fitting(*entry->artifact, flight->leader.names);
    counters_.compiles.fetch_add(1);
    const internal::WorkTime& work = reply.compiled().time();
    counters_.spans.add(flight->caller.principal.tenant, flight->caller.trace,
                        {"compile " + called(flight->leader.names.kernel), "kiln-compiler",
                         static_cast<int>(work.pid()), "compiler", work.begin(), work.end()});
    if (!reply.compiled().for_now()) keep(flight->leader.key, entry, levels_.size());
    land(*flight, entry, v1::CACHE_LEVEL_COMPILED);
  } catch (...) {
    crash(*flight, current_error());
  }
}

void CompileService::land(const Flight& flight, const std::shared_ptr<const CachedArtifact>& entry,
                          v1::CacheLevel level) {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    // Before the flight is gone, so that nobody finds neither.
    memory_.put(flight.leader.key, entry);
    const auto at = flights_.find(flight.leader.form);
    waiters.swap(at->second->waiters);
    flights_.erase(at);
  }
  const double seconds = seconds_between(flight.started, Clock::now());
  for (const Waiter& waiter : waiters) {
    CompileResult result = result_for(waiter.request, waiter.call->tenant(), entry, level);
    result.seconds = seconds;
    // For those who asked later it is as good as in memory. Counted before the caller knows, who
    // may look at the counter next.
    if (level == v1::CACHE_LEVEL_MEMORY) counters_.memory_hits.fetch_add(1);
    counters_.spans.add(waiter.call->tenant(), waiter.call->caller().trace,
                        {"find " + called(flight.leader.names.kernel), "kilnd", ::getpid(),
                         "compilations", nanoseconds(flight.started), nanoseconds(Clock::now())});
    waiter.done(std::move(result));
    level = v1::CACHE_LEVEL_MEMORY;
  }
}

void CompileService::crash(const Flight& flight, const Error& error) {
  // The error speaks in the names of the one who asked first. Others get one in their own.
  const std::string leader = flight.leader.wire.SerializeAsString();
  std::vector<Waiter> told;
  std::shared_ptr<Flight> next;
  {
    const std::lock_guard lock(mutex_);
    const auto at = flights_.find(flight.leader.form);
    const std::shared_ptr<Flight> ended = std::move(at->second);
    flights_.erase(at);
    for (Waiter& waiter : ended->waiters) {
      if (waiter.request.wire.SerializeAsString() == leader) {
        told.push_back(std::move(waiter));
        continue;
      }
      // One of the others leads, and its error will speak in its names.
      if (!next)
        next = flights_[flight.leader.form] =
            std::make_shared<Flight>(waiter.request, waiter.call->caller());
      next->waiters.push_back(std::move(waiter));
    }
  }
  for (const Waiter& waiter : told)
    waiter.done(error);
  if (next) ask_compiler(next);
}

}  // namespace kiln::server
