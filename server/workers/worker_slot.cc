// The life of one worker after another: start, greet, watch, end, clear away, start again. One that
// ended over its work, or was killed by somebody else, is replaced at once: what a kernel did is
// held against the kernel. Ends for no such reason delay the next start ever longer (exponential
// back-off).
//
//   Down -> Starting -> (welcomed by its owner) Ready -> (ended) -> Down
//   a device that was never there: Absent, for good
#include "server/workers/worker_slot.h"

#include <array>

#include <spdlog/spdlog.h>

#include "server/errors.h"
#include "server/workers/process_state.h"
#include "server/workers/worker_fds.h"

namespace kiln::server {

using std::chrono::milliseconds;

namespace {
constexpr const char* kDied = "it died";
// More that do not end, as those that wait for a broken driver or disk, are not started.
constexpr size_t kMostEnding = 4;
constexpr auto kLongEnd = std::chrono::seconds(10);
}  // namespace

WorkerSlot::WorkerSlot(WorkerSpec spec, Launcher& launcher, Supervisor& supervisor,
                       WorkerTimes times, WorkerOwner& owner)
    : spec_(spec),
      launcher_(launcher),
      supervisor_(supervisor),
      times_(times),
      owner_(owner),
      beats_({.hang = times.hang, .starved = times.starved}) {}

bool WorkerSlot::send(const internal::ToWorker& message, std::span<const int> fds) {
  std::shared_ptr<Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::Ready) return false;
    connection = connection_;
  }
  try {
    connection->channel.send(message, fds);
    return true;
  } catch (const Error&) {
    // The reader ends it; before that it finds out whether the worker was killed by somebody else.
    connection->channel.shut_down();
    return false;
  }
}

void WorkerSlot::welcome() {
  const std::lock_guard lock(mutex_);
  state_ = State::Ready;
  was_ready_ = true;
}

void WorkerSlot::open_call(size_t slot) {
  const std::lock_guard lock(mutex_);
  if (!connection_) return;
  CallSlot& call = connection_->status->calls[slot];
  call.cancelled.store(0);
  call.state.store(CallState::Sent);
}

bool WorkerSlot::withdraw_call(size_t slot) {
  const std::lock_guard lock(mutex_);
  if (!connection_) return true;
  CallState sent = CallState::Sent;
  return connection_->status->calls[slot].state.compare_exchange_strong(sent, CallState::Withdrawn);
}

void WorkerSlot::cancel_call(size_t slot) {
  const std::lock_guard lock(mutex_);
  if (connection_) connection_->status->calls[slot].cancelled.store(1);
}

void WorkerSlot::kill(const std::string& why, WorkerEnd end) {
  const std::lock_guard lock(mutex_);
  if (!child_ || ended_) return;
  // The first reason is the cause; the others follow from it.
  if (kill_reason_.empty()) {
    kill_reason_ = why;
    kill_end_ = end;
  }
  child_->kill();
  // A thread launcher cannot kill: the worker ends because its socket does.
  connection_->channel.shut_down();
}

WorkerSlot::State WorkerSlot::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

int WorkerSlot::pid() const {
  const std::lock_guard lock(mutex_);
  return child_ ? child_->pid() : 0;
}

int64_t WorkerSlot::restarts() const {
  const std::lock_guard lock(mutex_);
  return starts_ > 0 ? starts_ - 1 : 0;
}

void WorkerSlot::tick(Clock::time_point now) {
  bool ended = false;
  bool idle = false;
  std::shared_ptr<Connection> connection;
  {
    const std::lock_guard lock(mutex_);
    ended = ended_;
    idle = state_ == State::Absent || stopped_;
    connection = connection_;
  }
  if (ended) clear_away(now);
  reap(now);
  if (idle) return;
  if (!reader_.joinable()) {
    if (now >= start_at_ && ending_.size() < kMostEnding) start(now);
    return;
  }
  if (!ended && connection) watch(connection, now);
}

/// Ends a worker that hangs or starves, or beats but never greets, as one does whose driver hangs.
void WorkerSlot::watch(const std::shared_ptr<Connection>& connection, Clock::time_point now) {
  if (state() == State::Starting && now - started_ > times_.start) {
    kill("it did not greet", WorkerEnd::Silent);
  }
  const auto busy = [&] { return has_work(pid()); };
  switch (beats_.look(now, busy, [&] { return connection->status->beats.load(); })) {
    case Pulse::Beats: break;
    case Pulse::Silent: kill("it does not answer", WorkerEnd::Silent); break;
    case Pulse::Starved: kill("it gets no processor", WorkerEnd::Starved); break;
  }
}

void WorkerSlot::start(Clock::time_point now) {
  beats_.restart(now);
  started_ = now;
  std::shared_ptr<Connection> connection;
  try {
    auto [ours, theirs] = make_socket_pair();
    Fd page = make_memfd("kiln-status", kStatusPageBytes);
    connection = std::make_shared<Connection>(std::move(ours), page);
    std::unique_ptr<Child> child = launcher_.start(spec_, std::move(theirs), std::move(page));
    const std::lock_guard lock(mutex_);
    ++starts_;
    child_ = std::move(child);
    connection_ = connection;
    kill_reason_.clear();
    kill_end_ = WorkerEnd::Fault;
    state_ = State::Starting;
  } catch (const Error& error) {
    spdlog::error("{}: {}", spec_.name(), error.message());
    deaths_.push_back(now);
    start_at_ = now + std::max<Clock::duration>(back_off(), milliseconds(500));
    return;
  }
  reader_ = std::thread([this, connection] { read_replies(connection); });
}

/// Lets go of processes that have ended. Waits for none: who waits for a driver that hangs would
/// keep this thread from all that it looks after.
void WorkerSlot::reap(Clock::time_point now) {
  std::erase_if(ending_, [&](auto& each) {
    if (each.first->ended()) return true;
    if (now - each.second < kLongEnd) return false;
    spdlog::warn("process {} of {} was told to end but does not", each.first->pid(), spec_.name());
    each.second = now + std::chrono::minutes(10);
    return false;
  });
}

/// Joins the reader, and sets when the next worker is started.
void WorkerSlot::clear_away(Clock::time_point now) {
  reader_.join();
  std::unique_ptr<Child> child;
  bool at_once = false;
  {
    const std::lock_guard lock(mutex_);
    child = std::move(child_);
    connection_.reset();
    ended_ = false;
    at_once = at_once_;
  }
  child->kill();
  ending_.emplace_back(std::move(child), now);
  while (!deaths_.empty() && now - deaths_.front() > std::chrono::minutes(1))
    deaths_.pop_front();
  start_at_ = at_once ? now : now + back_off();
  if (!at_once) deaths_.push_back(now);
}

Clock::duration WorkerSlot::back_off() const {
  // The first death is restarted at once: most are single.
  constexpr std::array<milliseconds, 5> kDelays = {milliseconds(0), milliseconds(100),
                                                   milliseconds(500), milliseconds(2000),
                                                   milliseconds(10000)};
  return kDelays[std::min(deaths_.size(), kDelays.size() - 1)];
}

/// The reader thread of one worker: its end is the worker's, told to the owner and the supervisor.
void WorkerSlot::read_replies(const std::shared_ptr<Connection>& connection) {
  std::string why = read_until_end(*connection);
  const bool killed = why == kDied && child_->was_killed();
  bool expected = false;
  bool was_ready = false;
  WorkerEnd end = killed ? WorkerEnd::Killed : WorkerEnd::Fault;
  {
    const std::lock_guard lock(mutex_);
    if (!kill_reason_.empty()) {
      why = kill_reason_;
      end = kill_end_;
    }
    if (stopped_) end = WorkerEnd::Draining;
    expected = stopped_ || state_ == State::Absent;
    was_ready = state_ == State::Ready;
    if (state_ != State::Absent) state_ = State::Down;
    // The process may still run when it sent garbage: nothing it does counts any more.
    child_->kill();
  }
  if (!expected) spdlog::warn("the worker {} ended: {}", spec_.name(), why);
  const bool had_work = owner_.on_lost(end);
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    at_once_ = was_ready && (had_work || end == WorkerEnd::Killed);
  }
  supervisor_.wake();
}

std::string WorkerSlot::read_until_end(Connection& connection) {
  try {
    internal::FromWorker message;
    std::vector<Fd> fds;
    while (connection.channel.receive(message, fds)) {
      const bool greeting = message.kind_case() == internal::FromWorker::kHello;
      if (greeting != (state() == State::Starting)) return "it broke the protocol";
      if (!greeting) {
        owner_.on_reply(message);
        continue;
      }
      if (message.hello().protocol() != kWorkerProtocol) return "it is of another version";
      greet(message.hello());
    }
    return kDied;
  } catch (...) {
    return current_error().message();
  }
}

/// A host does not come by a device while the daemon runs, but one that was there comes back, and
/// memory that was short when a worker started is free again later.
bool WorkerSlot::is_gone_for_good(const internal::Hello& hello) const {
  return hello.absent().reason() == "NO_DEVICE" && !was_ready_;
}

void WorkerSlot::greet(const internal::Hello& hello) {
  {
    const std::lock_guard lock(mutex_);
    if (hello.has_absent() && is_gone_for_good(hello)) {
      state_ = State::Absent;
    } else if (hello.has_absent() && kill_reason_.empty()) {
      kill_reason_ = hello.absent().message();
    }
  }
  owner_.on_ready(hello);
}

void WorkerSlot::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (child_ && !ended_) {
      child_->kill();
      connection_->channel.shut_down();
    }
  }
  if (reader_.joinable()) clear_away(Clock::now());
  ending_.clear();  // each waits a little
}

}  // namespace kiln::server
