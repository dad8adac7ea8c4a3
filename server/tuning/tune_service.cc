// Runs searches one at a time in a thread of its own, and joins those who ask for the same. A
// search lives as long as somebody follows it; its records stay.
#include "server/tuning/tune_service.h"

#include <algorithm>
#include <cmath>

#include "compiler/language/wire/canonical.h"

namespace kiln::server {

namespace {

/// What two callers must agree in to share a search: what is tuned, in which names, for which
/// sizes, on whose data.
std::string subject_of(const CheckedRequest& request, const v1::TuneRequest& wire,
                       const std::string& tenant) {
  std::string subject = request.kernel_id;
  const std::map<std::string, int64_t> sizes(wire.sizes().begin(), wire.sizes().end());
  for (const auto& [name, size] : sizes)
    subject += fmt::format("|{}={}", name, size);
  for (const v1::Argument& argument : wire.arguments())
    subject += "|" + argument.SerializeAsString();
  // Inputs that the daemon makes up are nobody's.
  if (!wire.arguments().empty()) subject += "|" + tenant;
  return language::id_of(subject);
}

TuningTask task_of(CheckedRequest request, const v1::TuneRequest& wire, const Caller& caller,
                   const TuningKey& key, const TuneService::Options& options) {
  if (!std::isfinite(wire.seconds()) || wire.seconds() < 0) {
    fail(ErrorKind::InvalidArgument, "TUNE_BUDGET",
         "a search takes a number of seconds, but got {}", wire.seconds());
  }
  TuningTask task{
      .request = std::move(request), .wire = wire, .caller = without_deadline(caller), .key = key};
  task.trials = wire.trials() == 0 ? options.trials : std::min(wire.trials(), options.trials);
  const double limit = std::chrono::duration<double>(options.time).count();
  const double seconds = wire.seconds() == 0 ? limit : std::min(wire.seconds(), limit);
  task.time = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  return task;
}

const Error& draining_error() {
  static const Error error(ErrorKind::Unavailable, "DRAINING",
                           "the daemon is ending; what the search found is kept");
  return error;
}

}  // namespace

TuneService::TuneService(const TuningParts& parts, const Options& options)
    : parts_(parts), options_(options), thread_([this] { loop(); }) {}

uint64_t TuneService::tune(CheckedRequest request, const v1::TuneRequest& wire,
                           const Caller& caller, const TuningKey& key, TuneWatcher watcher) {
  const std::string subject = subject_of(request, wire, caller.principal.tenant);
  TuningTask task = task_of(std::move(request), wire, caller, key, options_);
  const std::lock_guard lock(mutex_);
  if (draining_) throw draining_error();
  for (const std::shared_ptr<Flight>& flight : flights_) {
    if (flight->subject == subject) return join(*flight, std::move(watcher));
  }
  if (flights_.size() > options_.waiting) {
    parts_.counters.rejected.fetch_add(1);
    fail(ErrorKind::ResourceExhausted, "QUEUE_FULL", "{} searches wait already; try again soon",
         flights_.size() - 1);
  }
  auto flight = std::make_shared<Flight>();
  flight->subject = subject;
  flight->task = std::move(task);
  const uint64_t ticket = next_ticket_++;
  flight->watchers[ticket] = std::move(watcher);
  flights_.push_back(flight);
  if (flights_.size() > 1) {
    v1::TuneEvent event;
    event.mutable_start()->set_waiting(static_cast<uint32_t>(flights_.size() - 1));
    event.mutable_start()->set_trials(flight->task.trials);
    event.mutable_start()->set_seconds(std::chrono::duration<double>(flight->task.time).count());
    tell(*flight, event);
  }
  changed_.notify_one();
  return ticket;
}

uint64_t TuneService::join(Flight& flight, TuneWatcher watcher) {
  for (v1::TuneEvent event : flight.told) {
    if (event.has_start()) event.mutable_start()->set_joined(true);
    if (!watcher.event(event)) break;
  }
  flight.watchers[next_ticket_] = std::move(watcher);
  return next_ticket_++;
}

void TuneService::leave(uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  for (auto at = flights_.begin(); at != flights_.end(); ++at) {
    Flight& flight = **at;
    if (flight.watchers.erase(ticket) == 0) continue;
    if (!flight.watchers.empty()) return;
    if (flight.tuner) {
      flight.tuner->cancel();
    } else {
      flights_.erase(at);
    }
    return;
  }
}

void TuneService::tell(Flight& flight, const v1::TuneEvent& event) {
  flight.told.push_back(event);
  std::erase_if(flight.watchers, [&](const auto& watcher) { return !watcher.second.event(event); });
}

void TuneService::end(Flight& flight, const Error* error) {
  for (const auto& [ticket, watcher] : flight.watchers)
    watcher.end(error);
  flight.watchers.clear();
}

void TuneService::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return draining_ || !flights_.empty(); });
    if (draining_) {
      for (const std::shared_ptr<Flight>& flight : flights_)
        end(*flight, &draining_error());
      flights_.clear();
      return;
    }
    const std::shared_ptr<Flight> flight = flights_.front();
    // That it waits is of no interest to who joins now.
    flight->told.clear();
    flight->tuner = std::make_shared<Tuner>(parts_, flight->task, [&](const v1::TuneEvent& event) {
      const std::lock_guard told(mutex_);
      tell(*flight, event);
      // Of a caller whose stream broke without a word.
      if (flight->watchers.empty()) flight->tuner->cancel();
    });
    parts_.counters.searches.fetch_add(1);
    lock.unlock();
    std::optional<Error> error;
    try {
      flight->tuner->run();
    } catch (...) {
      error = current_error();
    }
    lock.lock();
    if (error && draining_ && error->kind() == ErrorKind::Cancelled) error = draining_error();
    end(*flight, error ? &*error : nullptr);
    flight->tuner.reset();
    std::erase(flights_, flight);
  }
}

void TuneService::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  if (!flights_.empty() && flights_.front()->tuner) flights_.front()->tuner->cancel();
  changed_.notify_one();
}

void TuneService::stop() {
  drain();
  if (thread_.joinable()) thread_.join();
}

int64_t TuneService::searches() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(flights_.size());
}

}  // namespace kiln::server
