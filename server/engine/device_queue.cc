// One call at a time for a device's worker, of tenants and clients by turns, with what the worker
// needs first: arenas, the kernel, then the call. A call whose worker died is run once more when
// running it twice has the effect of once (it is idempotent), else it fails; three deaths that it
// brought about quarantine the kernel.
//
//   exec on worker 1, which dies  ->  worker 2: add_arenas, load_kernel, exec  ->  done
#include "server/engine/device_queue.h"

#include <algorithm>

#include "runtime/core/called.h"

namespace kiln::server {

namespace {

// Loaded code in the memory of a worker; the least recently used one goes.
constexpr size_t kKernelsInWorker = 512;
// A packet has room for this many descriptors, and one of its own.
constexpr size_t kArenasAMessage = 7;
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
                         ArenaPool& arenas, Quarantine& quarantine, Counters& counters)
    : options_(options),
      arenas_(arenas),
      quarantine_(quarantine),
      counters_(counters),
      copies_(name_),
      slot_(options_.spec, launcher, supervisor, options_.times, *this) {}

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
    if (!running_) send_next(endings);
  }
  finish(endings);
  // By number, since the call may be over when its caller goes away.
  call->on_cancel([this, number] { cancel(number); });
}

/// One tenant that asks for too much leaves place for others.
void DeviceQueue::require_place(const std::string& tenant) const {
  const size_t own = waiting_.size_of(tenant);
  const bool is_full = own >= options_.limit || waiting_.size() >= 4 * options_.limit;
  if (!is_full) return;
  counters_.rejected.fetch_add(1);
  fail(ErrorKind::ResourceExhausted, "QUEUE_FULL", "{} calls wait for {} already; try again soon",
       own >= options_.limit ? own : waiting_.size(), name_);
}

void DeviceQueue::require_present() const {
  const std::lock_guard lock(mutex_);
  if (hello_.has_absent()) throw from_wire(hello_.absent());
}

void DeviceQueue::send_next(Endings& endings) {
  while (!running_ && !waiting_.empty() && slot_.state() == WorkerSlot::State::Ready) {
    Entry entry = *waiting_.pop();
    const std::string& kernel = entry.work.kernel->names.kernel;
    const Clock::time_point now = Clock::now();
    const bool late = entry.work.call->deadline() <= now;
    if (late || entry.work.call->cancelled()) {
      endings.emplace_back(std::move(entry), ended_early(late, kernel));
      continue;
    }
    if (const std::optional<Error> lost = lost_input(entry)) {
      endings.emplace_back(std::move(entry), *lost);
      continue;
    }
    entry.started = now;
    slot_.set_cancelled(false);
    running_ = std::move(entry);
    // A worker that cannot be reached is on its way to on_lost(), which decides what becomes of it.
    running_->begun = send_call(*running_);
  }
}

bool DeviceQueue::send_call(const Entry& entry) {
  if (!drop_unused() || !send_arenas(entry.work.tensors)) return false;
  if (entry.work.program) return send_program(entry);
  if (!send_kernel(*entry.work.kernel)) return false;
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
  return slot_.send(message);
}

/// All that the worker lacks of the kernels travels along.
bool DeviceQueue::send_program(const Entry& entry) {
  internal::ToWorker message;
  internal::ExecProgram& exec = *message.mutable_exec_program();
  exec = entry.work.program->message;
  exec.set_call(entry.number);
  std::vector<const KernelEntry*> missing;
  for (const std::shared_ptr<const KernelEntry>& kernel : entry.work.program->kernels) {
    if (!has_kernel(*kernel)) missing.push_back(kernel.get());
  }
  std::vector<uint64_t> unloads;
  for (const KernelEntry* kernel : missing) {
    if (!has_kernel(*kernel)) *exec.add_loads() = load_of(*kernel, unloads);
  }
  exec.mutable_unloads()->Add(unloads.begin(), unloads.end());
  return slot_.send(message);
}

/// The memory of the tensors, as far as this worker has not mapped it; the descriptors
/// travel with the messages, a few with each.
bool DeviceQueue::send_arenas(std::span<const std::shared_ptr<Slice>> slices) {
  internal::ToWorker message;
  std::vector<int> fds;
  const auto flush = [&] {
    const bool is_sent = fds.empty() || slot_.send(message, fds);
    message.Clear();
    fds.clear();
    return is_sent;
  };
  for (const std::shared_ptr<Slice>& slice : slices) {
    const Arena& arena = *slice->arena();
    if (!known_arenas_.insert(arena.number).second) continue;
    internal::AddArena& added = *message.mutable_add_arenas()->add_arenas();
    added.set_arena(arena.number);
    added.set_bytes(static_cast<uint64_t>(arena.bytes()));
    fds.push_back(arena.fd.get());
    if (fds.size() == kArenasAMessage && !flush()) return false;
  }
  return flush();
}

bool DeviceQueue::has_kernel(const KernelEntry& kernel) {
  const auto at = kernel_uses_.find(kernel.number);
  if (at == kernel_uses_.end()) return false;
  known_kernels_.splice(known_kernels_.begin(), known_kernels_, at->second);
  return true;
}

internal::LoadKernel DeviceQueue::load_of(const KernelEntry& kernel,
                                          std::vector<uint64_t>& unloads) {
  if (known_kernels_.size() >= kKernelsInWorker) {
    unloads.push_back(known_kernels_.back());
    kernel_uses_.erase(known_kernels_.back());
    known_kernels_.pop_back();
  }
  internal::LoadKernel load;
  load.set_kernel(kernel.number);
  load.set_artifact(kernel.compiled->bytes);
  internal::Names& names = *load.mutable_names();
  names.set_kernel(kernel.names.kernel);
  for (const std::string& name : kernel.names.parameters)
    names.add_parameters(name);
  for (const std::string& name : kernel.names.sizes)
    names.add_sizes(name);
  for (const std::string& name : kernel.names.stages)
    names.add_stages(name);
  for (const SourceLocation& line : kernel.names.lines) {
    names.add_files(line.file);
    names.add_lines(static_cast<uint32_t>(line.line));
  }
  known_kernels_.push_front(kernel.number);
  kernel_uses_[kernel.number] = known_kernels_.begin();
  return load;
}

/// The artifact and the caller's names, unless this worker has them.
bool DeviceQueue::send_kernel(const KernelEntry& kernel) {
  if (has_kernel(kernel)) return true;
  std::vector<uint64_t> unloads;
  internal::ToWorker message;
  *message.mutable_load_kernel() = load_of(kernel, unloads);
  for (const uint64_t unload : unloads) {
    internal::ToWorker before;
    before.mutable_unload_kernel()->set_kernel(unload);
    if (!slot_.send(before)) return false;
  }
  return slot_.send(message);
}

void DeviceQueue::on_ready(const internal::Hello& hello) {
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
    // A new process knows nothing of what the one before was sent.
    known_arenas_.clear();
    known_kernels_.clear();
    kernel_uses_.clear();
    if (hello.has_absent()) {
      end_waiting(endings, from_wire(hello.absent()));
    } else {
      if (was_ready_) counters_.worker_restarts.fetch_add(1);
      was_ready_ = is_up_ = true;
      if (!running_) send_next(endings);
    }
  }
  finish(endings);
}

/// Takes it off the worker, and puts the time down to its caller.
DeviceQueue::Entry DeviceQueue::end_running() {
  Entry entry = *std::move(running_);
  running_.reset();
  waiting_.charge(entry.work.call->caller().principal,
                  seconds_between(entry.started, Clock::now()));
  return entry;
}

void DeviceQueue::on_reply(internal::FromWorker& reply) {
  if (reply.has_fetched()) return on_fetched(reply.fetched());
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    if (reply.has_staged() && staging_ > 0) {
      --staging_;
      return;
    }
    const bool expected = reply.kind_case() == internal::FromWorker::kDone && running_ &&
                          reply.done().call() == running_->number;
    if (!expected) {
      fail(ErrorKind::Internal, "PEER_GARBAGE", "it answered what was not asked");
    }
    Entry entry = end_running();
    if (reply.done().error().reason() == "DEVICE_FAULT") {
      quarantine_.blame(entry.work.kernel->key);
    } else {
      quarantine_.absolve(entry.work.kernel->key);
    }
    if (!reply.done().has_error()) note_copies(entry);
    send_next(endings);
    Outcome<DeviceResult> outcome = ending_of(entry, reply.done());
    endings.emplace_back(std::move(entry), std::move(outcome));
  }
  finish(endings);
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
  return result;
}

bool DeviceQueue::on_lost(WorkerEnd end) {
  Endings endings;
  std::map<uint64_t, Fetching> fetching;
  bool had_work = false;
  {
    const std::lock_guard lock(mutex_);
    copies_.lose_all();
    fetching.swap(fetching_);
    staging_ = 0;
    // Workers that end as they start prolong no wait.
    if (is_up_) down_since_ = Clock::now();
    is_up_ = false;
    if (running_) {
      had_work = running_->begun;
      Entry entry = end_running();
      if (entry.told_to_end != Clock::time_point{}) {
        const Error error = ended_early(entry.past_deadline, entry.work.kernel->names.kernel);
        endings.emplace_back(std::move(entry), error);
      } else {
        // Who kills a worker from outside, or starves or stops it, may do so amid any kernel.
        const bool at_fault = end == WorkerEnd::Fault && entry.begun;
        const bool refused = at_fault && quarantine_.blame(entry.work.kernel->key);
        const bool may_repeat = !entry.begun || (entry.work.may_retry && !entry.retried);
        if (may_repeat && !refused) {
          entry.retried = entry.begun;
          entry.begun = false;
          counters_.retried_runs.fetch_add(1);
          const uint64_t number = entry.number;
          const Caller caller = entry.work.call->caller();
          waiting_.push(caller, number, std::move(entry));
        } else {
          const Error error = lost_error(entry);
          endings.emplace_back(std::move(entry), error);
        }
      }
    }
  }
  finish(endings);
  for (const auto& [number, each] : fetching)
    each.done(tensor_lost(name_));
  return had_work;
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
    if (running_ && running_->number == number) {
      tell_to_end(Clock::now(), running_->work.call->deadline() <= Clock::now());
      return;
    }
    std::optional<Entry> entry = waiting_.take(number);
    if (!entry) return;
    const bool late = entry->work.call->deadline() <= Clock::now();
    const Error error = ended_early(late, entry->work.kernel->names.kernel);
    endings.emplace_back(*std::move(entry), error);
  }
  finish(endings);
}

/// By the flag in shared memory, which a kernel sees while it runs; tick() ends a worker that does
/// not.
void DeviceQueue::tell_to_end(Clock::time_point now, bool past_deadline) {
  if (running_->told_to_end != Clock::time_point{}) return;
  running_->told_to_end = now;
  running_->past_deadline = past_deadline;
  slot_.set_cancelled(true);
}

void DeviceQueue::tick(Clock::time_point now) {
  bool stuck = false;
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    if (running_) {
      const Clock::time_point limit =
          std::min(running_->work.call->deadline(),
                   running_->started + std::min(running_->work.limit, options_.times.run_limit));
      if (now >= limit) tell_to_end(now, true);
      stuck = running_->told_to_end != Clock::time_point{} &&
              now - running_->told_to_end > options_.times.margin;
    }
    end_those_without_worker(endings, now);
    if (!running_ && slot_.state() == WorkerSlot::State::Ready) drop_unused();
  }
  finish(endings);
  // Kernels look at the flag now and then; one that does not is ended with its process.
  if (stuck) slot_.kill("a kernel did not end when it was told to");
  slot_.tick(now);
}

void DeviceQueue::end_those_without_worker(Endings& endings, Clock::time_point now) {
  if (slot_.state() == WorkerSlot::State::Ready) return;
  const Clock::duration grace = was_ready_ ? options_.times.restart_grace : options_.times.start;
  if (now - down_since_ <= grace) return;
  end_waiting(endings, was_ready_
                           ? restarting()
                           : Error(ErrorKind::Unavailable, "DEVICE_STARTING",
                                   fmt::format("{} has not started yet; try again soon", name_)));
}

/// Arenas that the pool has given back: while a worker maps one, its memory is not free. The same
/// goes for tensors that a device keeps. Only a worker that runs nothing is told, and of all at
/// once: a socket holds few messages for one that does not read. False when it cannot be reached.
bool DeviceQueue::drop_unused() {
  if (!drop_copies()) return false;
  const uint64_t drops = arenas_.drops();
  if (drops == drops_seen_) return true;
  drops_seen_ = drops;
  const std::vector<uint64_t> present = arenas_.arenas();
  internal::ToWorker message;
  std::erase_if(known_arenas_, [&](uint64_t arena) {
    if (std::binary_search(present.begin(), present.end(), arena)) return false;
    message.mutable_drop_arenas()->add_arenas(arena);
    return true;
  });
  return !message.has_drop_arenas() || slot_.send(message);
}

void DeviceQueue::end_waiting(Endings& endings, const Error& error) {
  while (std::optional<Entry> entry = waiting_.pop())
    endings.emplace_back(*std::move(entry), error);
}

void DeviceQueue::finish(Endings& endings) {
  for (auto& [entry, outcome] : endings)
    entry.work.done(std::move(outcome));
}

v1::Device DeviceQueue::describe() const {
  const WorkerSlot::State state = slot_.state();
  const std::lock_guard lock(mutex_);
  v1::Device device = hello_.device();
  device.set_name(name_);
  device.set_state(state == WorkerSlot::State::Ready    ? "ready"
                   : state == WorkerSlot::State::Absent ? "absent"
                                                        : "starting");
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
  return waiting_.size() + (running_ ? 1 : 0);
}

void DeviceQueue::stop() {
  slot_.stop();
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    const Error error(ErrorKind::Unavailable, "DRAINING", "the daemon is ending");
    if (running_) endings.emplace_back(std::move(*running_), error);
    running_.reset();
    end_waiting(endings, error);
  }
  finish(endings);
}

}  // namespace kiln::server
