// Which call goes next, to which worker, and what becomes of one whose worker died: it is run once
// more when running it twice has the effect of once (it is idempotent), else it fails; three deaths
// that it brought about quarantine the kernel.
//
//   exec on worker 1, which dies  ->  worker 2: add_arenas, load_kernel, exec  ->  done
//
// Short calls run one after another, each with the whole device. A call counts as long after a
// while, and then does not keep others from beginning: where a second worker can share the device,
// there is one (preemption by the operating system, as between any processes).
#include "server/engine/device_queue.h"

#include <algorithm>

#include "runtime/core/called.h"

namespace kiln::server {

namespace {

constexpr auto kPatience = std::chrono::seconds(10);  // of what is measured, with others' calls

/// Late and cancelled calls end alike on the worker; who waits is told which it was.
Error ended_early(bool past_deadline, const std::string& kernel) {
  if (past_deadline) {
    return Error(ErrorKind::DeadlineExceeded, "DEADLINE",
                 fmt::format("{} did not end before its deadline", called(kernel)));
  }
  return Error(ErrorKind::Cancelled, "CANCELLED", fmt::format("{} was cancelled", called(kernel)));
}

}  // namespace

DeviceQueue::DeviceQueue(Options options, Launcher& launcher, Supervisor& supervisor,
                         ArenaPool& arenas, Quarantine& quarantine, DeviceTime& times,
                         Counters& counters)
    : options_(std::move(options)),
      launcher_(launcher),
      supervisor_(supervisor),
      arenas_(arenas),
      quarantine_(quarantine),
      device_time_(times),
      counters_(counters),
      copies_(name_),
      first_(add_lane()) {}

DeviceLane& DeviceQueue::add_lane() {
  LaneOwner& owner = *this;  // a base that is nobody else's matter
  lanes_.push_back(std::make_unique<DeviceLane>(options_.spec, launcher_, supervisor_,
                                                options_.times, arenas_, owner));
  return *lanes_.back();
}

bool DeviceQueue::any_ready() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->is_ready(); });
}

bool DeviceQueue::ready() const {
  const std::lock_guard lock(mutex_);
  return any_ready();
}

void DeviceQueue::submit(DeviceCall work) {
  quarantine_.require_free(work.kernel->key, work.kernel->names.kernel);
  require_present();
  const std::shared_ptr<Call> call = work.call;
  uint64_t number = 0;
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    require_place(call->tenant());
    number = next_number_++;
    Entry entry;
    entry.number = number;
    entry.work = std::move(work);
    entry.submitted = Clock::now();
    waiting_.push(call->caller(), number, std::move(entry));
    send_next(endings);
  }
  finish(endings);
  // By number, since the call may be over when its caller goes away.
  call->on_cancel([this, number] { cancel(number); });
}

/// One tenant that asks for too much leaves place for others.
void DeviceQueue::require_place(const std::string& tenant) const {
  const size_t own = waiting_.size_of(tenant) + ahead_of(tenant);
  const size_t quota = options_.quotas->of(tenant).queue;
  const size_t most = quota == 0 ? options_.limit : quota;
  const bool is_full = own >= most || waiting_.size() >= 4 * options_.limit;
  if (!is_full) return;
  counters_.rejected.fetch_add(1);
  fail(ErrorKind::ResourceExhausted, "QUEUE_FULL", "{} calls wait for {} already; try again soon",
       own >= most ? own : waiting_.size(), name_);
}

void DeviceQueue::require_present() const {
  const std::lock_guard lock(mutex_);
  if (hello_.has_absent()) throw from_wire(hello_.absent());
}

/// Of a client one call runs at a time: its next may use what that one writes. What is measured
/// has the device for itself when it begins, unless others never let it.
bool DeviceQueue::may_begin(const Principal& who, const Entry& entry) const {
  const bool waits = entry.work.is_measured() && Clock::now() - entry.submitted < kPatience;
  return std::ranges::none_of(
      lanes_, [&](const auto& lane) { return (lane->running && waits) || lane->has_call_of(who); });
}

/// None while a call runs that is not long yet.
DeviceLane* DeviceQueue::free_lane(Clock::time_point now) const {
  DeviceLane* free = nullptr;
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
    if (lane->running && now - lane->running->started < options_.long_call) return nullptr;
    if (free == nullptr && lane->is_free()) free = lane.get();
  }
  return free;
}

/// A worker more when all are at long calls and somebody waits who could begin.
void DeviceQueue::grow(Clock::time_point now) {
  const auto is_long = [&](const auto& lane) {
    return lane->running && now - lane->running->started >= options_.long_call;
  };
  const bool may_share = options_.spec.role == Role::Cpu;
  if (!may_share || lanes_.size() >= static_cast<size_t>(options_.workers)) return;
  if (!std::ranges::all_of(lanes_, is_long)) return;
  const bool somebody_waits =
      waiting_.any([&](const Principal& who, const Entry& entry) { return may_begin(who, entry); });
  if (somebody_waits) add_lane();
}

/// The last worker, when it has had nothing to do for long and is not the only one.
std::unique_ptr<DeviceLane> DeviceQueue::shrink(Clock::time_point now) {
  const DeviceLane& last = *lanes_.back();
  if (lanes_.size() == 1 || last.has_calls() || now - last.idle_since <= options_.idle)
    return nullptr;
  std::unique_ptr<DeviceLane> over = std::move(lanes_.back());
  lanes_.pop_back();
  return over;
}

void DeviceQueue::send_next(Endings& endings) {
  const Clock::time_point now = Clock::now();
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
    if (waits_too_long(*lane, now, options_.times.short_call)) take_back(*lane);
  }
  while (DeviceLane* const lane = free_lane(now)) {
    std::optional<Entry> next = waiting_.pop(
        [&](const Principal& who, const Entry& entry) { return may_begin(who, entry); });
    if (!next) return;
    if (const std::optional<Error> error = ended_already(*next, now)) {
      endings.emplace_back(*std::move(next), *error);
      continue;
    }
    next->started = now;
    next->was_ahead = false;
    lane->running = std::move(next);
    send(*lane, *lane->running);
  }
  if (options_.spec.role == Role::Cpu) send_ahead(now, endings);
}

/// What need not begin.
std::optional<Error> DeviceQueue::ended_already(const Entry& entry, Clock::time_point now) const {
  const bool late = entry.work.call->deadline() <= now;
  if (late || entry.work.call->cancelled())
    return ended_early(late, entry.work.kernel->names.kernel);
  return lost_input(entry);
}

void DeviceQueue::send(DeviceLane& lane, Entry& entry) {
  entry.slot = lane.take_slot();
  lane.slot.open_call(entry.slot);
  // A worker that cannot be reached is on its way to on_lost(), which decides what becomes of it.
  entry.begun = send_call(lane, entry);
}

/// A call that waits at its worker: over at once, unless it has begun this moment.
void DeviceQueue::end_ahead(DeviceLane& lane, DeviceLane::Ahead& ahead, bool past_deadline,
                            Endings& endings) {
  if (!lane.slot.withdraw_call(ahead.call->slot))
    return tell_to_end(lane, *ahead.call, Clock::now(), past_deadline);
  const Error error = ended_early(past_deadline, ahead.call->work.kernel->names.kernel);
  endings.emplace_back(*std::move(ahead.call), error);
  ahead.call.reset();
}

bool DeviceQueue::send_call(DeviceLane& lane, const Entry& entry) {
  if (!drop_unused(lane) || !lane.send_arenas(entry.work.tensors)) return false;
  if (entry.work.program) return send_program(lane, entry);
  if (!lane.send_kernel(*entry.work.kernel)) return false;
  internal::ToWorker message;
  internal::Exec& exec = *message.mutable_exec();
  exec.set_call(entry.number);
  exec.set_kernel(entry.work.kernel->number);
  for (size_t i = 0; i < entry.work.tensors.size(); ++i)
    *exec.add_tensors() = place_of(entry, i);
  const std::vector<int64_t>& scalars = entry.work.bound.scalars;
  exec.mutable_scalars()->Add(scalars.begin(), scalars.end());
  exec.set_variant(static_cast<uint32_t>(entry.work.bound.variant));
  exec.set_repeat(entry.work.repeat);
  exec.set_measurements(entry.work.measurements);
  exec.set_slot(static_cast<uint32_t>(entry.slot));
  return lane.slot.send(message);
}

/// All that the worker lacks of the kernels travels along.
bool DeviceQueue::send_program(DeviceLane& lane, const Entry& entry) {
  internal::ToWorker message;
  internal::ExecProgram& exec = *message.mutable_exec_program();
  exec = entry.work.program->message;
  exec.set_call(entry.number);
  exec.set_call_slot(static_cast<uint32_t>(entry.slot));
  std::vector<const KernelEntry*> missing;
  for (const std::shared_ptr<const KernelEntry>& kernel : entry.work.program->kernels) {
    if (!lane.has_kernel(*kernel)) missing.push_back(kernel.get());
  }
  std::vector<uint64_t> unloads;
  for (const KernelEntry* kernel : missing) {
    if (!lane.has_kernel(*kernel)) *exec.add_loads() = lane.load_of(*kernel, unloads);
  }
  exec.mutable_unloads()->Add(unloads.begin(), unloads.end());
  const std::vector<std::shared_ptr<Slice>>& given = entry.work.program->given;
  for (size_t slot = 0; slot < given.size() && options_.spec.role == Role::Cuda; ++slot) {
    if (given[slot] != nullptr)
      set_copy(*given[slot], *exec.mutable_slots(static_cast<int>(slot))->mutable_place());
  }
  return lane.slot.send(message);
}

void DeviceQueue::on_ready(DeviceLane& lane, const internal::Hello& hello) {
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    greeted_ = true;
    // Who had a device is not told for a passing reason that there is none; calls wait for the
    // next.
    gone_.reset();
    if (hello.has_absent() && was_ready_) {
      gone_ = from_wire(hello.absent());
      return;
    }
    hello_ = hello;
    if (hello.has_absent()) {
      end_waiting(endings, from_wire(hello.absent()));
    } else {
      lane.welcome();
      if (lane.was_ready) counters_.worker_restarts.fetch_add(1);
      was_ready_ = is_up_ = lane.was_ready = true;
      send_next(endings);
    }
  }
  finish(endings);
}

/// Takes it off the worker, and puts the time down to its caller.
DeviceQueue::Entry DeviceQueue::end_running(DeviceLane& lane) {
  Entry entry = *std::move(lane.running);
  lane.running.reset();
  lane.idle_since = Clock::now();
  const double seconds = seconds_between(entry.started, lane.idle_since);
  note_duration(lane, seconds);
  waiting_.charge(entry.work.principal(), seconds);
  device_time_.charge(entry.work.principal().tenant, seconds, lane.idle_since);
  return entry;
}

void DeviceQueue::on_reply(DeviceLane& lane, internal::FromWorker& reply) {
  if (reply.has_fetched()) return on_fetched(reply.fetched());
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    if (reply.has_staged() && staging_ > 0) {
      --staging_;
      return;
    }
    const bool is_done = reply.kind_case() == internal::FromWorker::kDone;
    const bool was_taken_back = is_done && !lane.running && !lane.ahead.empty() &&
                                reply.done().call() == lane.ahead.front().number;
    if (was_taken_back) {
      lane.ahead.pop_front();
      go_on(lane);
      send_next(endings);
    } else if (!is_done || !lane.running || reply.done().call() != lane.running->number) {
      fail(ErrorKind::Internal, "PEER_GARBAGE", "it answered what was not asked");
    } else {
      end_answered(lane, reply.done(), endings);
    }
  }
  finish(endings);
}

void DeviceQueue::end_answered(DeviceLane& lane, const internal::Done& done, Endings& endings) {
  Entry entry = end_running(lane);
  go_on(lane);
  if (done.error().reason() == "DEVICE_FAULT") {
    quarantine_.blame(entry.work.kernel->key);
  } else {
    quarantine_.absolve(entry.work.kernel->key);
  }
  if (entry.work.program) {
    note_copies(*entry.work.program, !done.has_error());
  } else if (!done.has_error()) {
    note_copies(entry);
  }
  send_next(endings);
  Outcome<DeviceResult> outcome = ending_of(entry, done);
  endings.emplace_back(std::move(entry), std::move(outcome));
}

Outcome<DeviceResult> DeviceQueue::ending_of(const Entry& entry, const internal::Done& done) const {
  if (done.has_error()) {
    Error error = from_wire(done.error());
    if (error.kind() == ErrorKind::Cancelled) {
      return ended_early(entry.past_deadline, entry.work.kernel->names.kernel);
    }
    return error;
  }
  DeviceResult result;
  result.queue_seconds = seconds_between(entry.submitted, entry.started);
  result.upload_seconds = done.upload_seconds();
  result.kernel_seconds = done.kernel_seconds();
  result.download_seconds = done.download_seconds();
  result.measured.assign(done.measured().begin(), done.measured().end());
  result.steps = done.steps();
  result.submitted = entry.submitted;
  result.started = entry.started;
  result.time = done.time();
  return result;
}

bool DeviceQueue::on_lost(DeviceLane& lane, WorkerEnd end) {
  Endings endings;
  std::map<uint64_t, Fetching> fetching;
  bool had_work = false;
  {
    const std::lock_guard lock(mutex_);
    copies_.lose_all();
    fetching.swap(fetching_);
    staging_ = 0;
    // Workers that end as they start prolong no wait.
    if (is_up_ && !any_ready()) {
      down_since_ = Clock::now();
      is_up_ = false;
    }
    if (lane.has_calls()) {
      had_work = !lane.running || lane.running->begun;
      end_all_lost(lane, end, endings);
      send_next(endings);
    }
  }
  finish(endings);
  for (const auto& [number, each] : fetching)
    each.done(tensor_lost(name_));
  return had_work;
}

void DeviceQueue::end_lost(Entry entry, WorkerEnd end, Endings& endings) {
  if (entry.told_to_end != Clock::time_point{}) {
    const Error error = ended_early(entry.past_deadline, entry.work.kernel->names.kernel);
    endings.emplace_back(std::move(entry), error);
    return;
  }
  // Who kills a worker from outside, or starves or stops it, may do so amid any kernel.
  const bool at_fault = end == WorkerEnd::Fault && entry.begun;
  const bool refused = at_fault && quarantine_.blame(entry.work.kernel->key);
  const bool may_repeat = !entry.begun || (entry.work.may_retry && !entry.retried);
  if (!may_repeat || refused) {
    const Error error = lost_error(entry);
    endings.emplace_back(std::move(entry), error);
    return;
  }
  entry.retried = entry.begun;
  entry.begun = false;
  entry.was_lost = true;
  counters_.retried_runs.fetch_add(1);
  const uint64_t number = entry.number;
  const Caller caller = entry.work.call->caller();
  waiting_.push(caller, number, std::move(entry));
}

Error DeviceQueue::restarting() const {
  if (gone_) {
    return Error(ErrorKind::Unavailable, "DEVICE_GONE",
                 fmt::format("{} was here but is not any more, and is looked for again: {}", name_,
                             gone_->message()));
  }
  return Error(ErrorKind::Unavailable, "WORKER_RESTARTED",
               fmt::format("the worker of {} is being started again; try again soon", name_));
}

Error DeviceQueue::lost_error(const Entry& entry) const {
  if (entry.work.overwrites_input) {
    // Of another reason than below, which tells clients to try again.
    return Error(ErrorKind::Unavailable, "WORKER_LOST",
                 fmt::format("the worker of {} ended while it ran {}, which overwrites its own "
                             "input; what it wrote is unknown, so it is not run again",
                             name_, called(entry.work.kernel->names.kernel)));
  }
  return Error(ErrorKind::Unavailable, "WORKER_RESTARTED",
               fmt::format("the worker of {} ended while it ran {}; it is started again", name_,
                           called(entry.work.kernel->names.kernel)));
}

void DeviceQueue::cancel(uint64_t number) {
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
      if (!lane->running || lane->running->number != number) continue;
      tell_to_end(*lane, *lane->running, Clock::now(),
                  lane->running->work.call->deadline() <= Clock::now());
      return;
    }
    if (!cancel_ahead(number, endings)) {
      std::optional<Entry> entry = waiting_.take(number);
      if (!entry) return;
      const bool late = entry->work.call->deadline() <= Clock::now();
      const Error error = ended_early(late, entry->work.kernel->names.kernel);
      endings.emplace_back(*std::move(entry), error);
    }
  }
  finish(endings);
}

/// Whether it was at a worker already.
bool DeviceQueue::cancel_ahead(uint64_t number, Endings& endings) {
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
    for (DeviceLane::Ahead& each : lane->ahead) {
      if (!each.call || each.number != number) continue;
      end_ahead(*lane, each, each.call->work.call->deadline() <= Clock::now(), endings);
      return true;
    }
  }
  return false;
}

/// By the flag in shared memory, which a kernel sees while it runs; tick() ends a worker that does
/// not.
void DeviceQueue::tell_to_end(DeviceLane& lane, Entry& entry, Clock::time_point now,
                              bool past_deadline) {
  if (entry.told_to_end != Clock::time_point{}) return;
  entry.told_to_end = now;
  entry.past_deadline = past_deadline;
  lane.slot.cancel_call(entry.slot);
}

void DeviceQueue::end_when_late(DeviceLane& lane, Clock::time_point now, Endings& endings) {
  for (DeviceLane::Ahead& each : lane.ahead) {
    if (each.call && each.call->work.call->deadline() <= now) end_ahead(lane, each, true, endings);
  }
  if (!lane.running) return;
  const DeviceCall& work = lane.running->work;
  const Clock::time_point limit =
      std::min(work.call->deadline(),
               lane.running->started + std::min(work.limit, options_.times.run_limit));
  if (now >= limit) tell_to_end(lane, *lane.running, now, true);
}

/// Whether its call was told to end but does not.
bool DeviceQueue::is_stuck(const DeviceLane& lane, Clock::time_point now) const {
  return lane.running && lane.running->told_to_end != Clock::time_point{} &&
         now - lane.running->told_to_end > options_.times.margin;
}

void DeviceQueue::tick(Clock::time_point now) {
  Endings endings;
  std::vector<std::pair<DeviceLane*, bool>> present;  // and whether it is stuck
  std::unique_ptr<DeviceLane> over;
  {
    const std::lock_guard lock(mutex_);
    end_those_without_worker(endings, now);
    send_next(endings);  // what runs may have become long
    grow(now);
    over = shrink(now);
    for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
      end_when_late(*lane, now, endings);
      present.emplace_back(lane.get(), is_stuck(*lane, now));
      if (lane->is_free()) drop_unused(*lane);
    }
  }
  finish(endings);
  if (over) over->slot.stop();
  for (const auto& [lane, stuck] : present) {
    // Kernels look at the flag now and then; one that does not is ended with its process.
    if (stuck) lane->slot.kill("a kernel did not end when it was told to");
    lane->slot.tick(now);
  }
}

void DeviceQueue::end_those_without_worker(Endings& endings, Clock::time_point now) {
  if (any_ready()) return;
  const Clock::duration grace = was_ready_ ? options_.times.restart_grace : options_.times.start;
  if (now - down_since_ <= grace) return;
  end_waiting(endings, was_ready_
                           ? restarting()
                           : Error(ErrorKind::Unavailable, "DEVICE_STARTING",
                                   fmt::format("{} has not started yet; try again soon", name_)));
}

/// Arenas that the pool has given back, and tensors that the device keeps for nobody. Only a worker
/// that runs nothing is told. False when it cannot be reached.
bool DeviceQueue::drop_unused(DeviceLane& lane) { return drop_copies() && lane.drop_arenas(); }

void DeviceQueue::end_waiting(Endings& endings, const Error& error) {
  while (std::optional<Entry> entry = waiting_.pop())
    endings.emplace_back(*std::move(entry), error);
}

/// Who is told may free the tensors at once, and counts on their memory for the next call.
void DeviceQueue::finish(Endings& endings) {
  for (auto& [entry, outcome] : endings) {
    entry.work.tensors.clear();
    entry.work.done(std::move(outcome));
  }
}

v1::Device DeviceQueue::describe() const {
  const std::lock_guard lock(mutex_);
  v1::Device device = hello_.device();
  device.set_name(name_);
  const bool is_absent = first_.slot.state() == WorkerSlot::State::Absent;
  device.set_state(any_ready() ? "ready" : is_absent ? "absent" : "starting");
  return device;
}

size_t DeviceQueue::kind_count() const {
  const std::lock_guard lock(mutex_);
  return hello_.devices();
}

std::vector<v1::Component> DeviceQueue::components() const {
  const std::lock_guard lock(mutex_);
  return {hello_.components().begin(), hello_.components().end()};
}

bool DeviceQueue::settled() const {
  const std::lock_guard lock(mutex_);
  return greeted_;
}

size_t DeviceQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  size_t at_workers = 0;
  for (const std::unique_ptr<DeviceLane>& lane : lanes_)
    at_workers += (lane->running ? 1 : 0) + lane->ahead.size();
  return waiting_.size() + at_workers;
}

void DeviceQueue::stop() {
  for (const std::unique_ptr<DeviceLane>& lane : lanes_)
    lane->slot.stop();
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    const Error error(ErrorKind::Unavailable, "DRAINING", "the daemon is ending");
    for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
      if (lane->running) endings.emplace_back(*std::move(lane->running), error);
      lane->running.reset();
      for (DeviceLane::Ahead& each : lane->ahead) {
        if (each.call) endings.emplace_back(*std::move(each.call), error);
      }
      lane->ahead.clear();
    }
    end_waiting(endings, error);
  }
  finish(endings);
}

}  // namespace kiln::server
