// Hands tasks to compiler processes, one each at a time. A task that takes too long or too much
// memory costs its compiler, which is started again; who else waited does not notice. What ended a
// compiler is told apart, because each sentence has another way out.
#include "server/engine/compiler_pool.h"

#include <algorithm>

#include "runtime/core/called.h"
#include "runtime/core/target_kind.h"
#include "server/workers/process_state.h"

namespace kiln::server {

namespace {

void set_number(internal::ToWorker& message, uint64_t number) {
  if (message.has_compile()) message.mutable_compile()->set_task(number);
  if (message.has_text()) message.mutable_text()->set_task(number);
  if (message.has_sketches()) message.mutable_sketches()->set_task(number);
  if (message.has_predict()) message.mutable_predict()->set_task(number);
}

template <typename Answer>
Outcome<internal::FromWorker> outcome_of(internal::FromWorker& reply, const Answer& answer) {
  if (answer.has_error()) return from_wire(answer.error());
  return std::move(reply);
}

/// An error in the answer is the outcome.
Outcome<internal::FromWorker> outcome_of(internal::FromWorker& reply) {
  if (reply.has_compiled()) return outcome_of(reply, reply.compiled());
  if (reply.has_sketches()) return outcome_of(reply, reply.sketches());
  if (reply.has_predicted()) return outcome_of(reply, reply.predicted());
  return outcome_of(reply, reply.text());
}

Error cancelled_error(const std::string& kernel) {
  return {ErrorKind::Cancelled, "CANCELLED",
          fmt::format("the compilation of {} was cancelled", called(kernel))};
}

int64_t seconds_of(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

/// Whether `reply` answers the task with this number and kind.
bool answers(const internal::FromWorker& reply, uint64_t number, const internal::ToWorker& asked) {
  if (asked.has_compile()) return reply.has_compiled() && reply.compiled().task() == number;
  if (asked.has_sketches()) return reply.has_sketches() && reply.sketches().task() == number;
  if (asked.has_predict()) return reply.has_predicted() && reply.predicted().task() == number;
  return reply.has_text() && reply.text().task() == number;
}

}  // namespace

CompilerPool::CompilerPool(const Options& options, Launcher& launcher, Supervisor& supervisor,
                           Quarantine& quarantine, Counters& counters)
    : options_(options),
      launcher_(launcher),
      supervisor_(supervisor),
      quarantine_(quarantine),
      counters_(counters) {
  add_compiler();
}

void CompilerPool::add_compiler() {
  const WorkerSpec spec{.role = Role::Compiler,
                        .index = static_cast<int>(compilers_.size()),
                        .threads = options_.threads};
  compilers_.push_back(
      std::make_unique<Compiler>(*this, spec, launcher_, supervisor_, options_.times));
}

std::unique_ptr<CompilerPool::Compiler> CompilerPool::grow_or_shrink(Clock::time_point now) {
  const bool all_busy = std::all_of(compilers_.begin(), compilers_.end(), [](const auto& compiler) {
    return compiler->running_.has_value();
  });
  if (!waiting_.empty() && all_busy &&
      compilers_.size() < static_cast<size_t>(options_.compilers)) {
    add_compiler();
  }
  Compiler& last = *compilers_.back();
  const bool has_idled = !last.running_ && now - last.idle_since_ > options_.idle;
  if (compilers_.size() == 1 || !waiting_.empty() || !has_idled) return nullptr;
  std::unique_ptr<Compiler> over = std::move(compilers_.back());
  compilers_.pop_back();
  return over;
}

void CompilerPool::submit(CompilerTask task) {
  quarantine_.require_free(task.key, task.kernel);
  Endings endings;
  bool is_short = false;
  {
    const std::lock_guard lock(mutex_);
    const size_t own = waiting_.size_of(task.caller.principal.tenant);
    if (own >= options_.limit || waiting_.size() >= 4 * options_.limit) {
      counters_.rejected.fetch_add(1);
      fail(ErrorKind::ResourceExhausted, "QUEUE_FULL",
           "{} kernels wait for a compiler already; try again soon",
           own >= options_.limit ? own : waiting_.size());
    }
    Entry entry;
    entry.number = next_number_++;
    set_number(task.message, entry.number);
    const Caller caller = task.caller;
    const uint64_t number = entry.number;
    entry.task = std::move(task);
    waiting_.push(caller, number, std::move(entry));
    send_next(endings);
    is_short = !waiting_.empty();
  }
  finish(endings);
  if (is_short) supervisor_.wake();
}

/// Gives waiting tasks to free compilers. With the lock held, so what is to be told goes to
/// `endings`.
void CompilerPool::send_next(Endings& endings) {
  for (const std::unique_ptr<Compiler>& compiler : compilers_) {
    while (!waiting_.empty() && !compiler->running_ &&
           compiler->slot_.state() == WorkerSlot::State::Ready) {
      Entry entry = *waiting_.pop();
      if (!entry.task.wanted()) {
        const Error error = cancelled_error(entry.task.kernel);
        endings.emplace_back(std::move(entry), error);
        continue;
      }
      entry.started = Clock::now();
      counters_.metrics.observe(Metric::QueueSeconds, {"compiler"},
                                seconds_between(entry.submitted, entry.started));
      compiler->running_ = std::move(entry);
      compiler->slot_.send(compiler->running_->task.message);
    }
  }
}

void CompilerPool::Compiler::on_ready(const internal::Hello& hello) {
  Endings endings;
  {
    const std::lock_guard lock(pool_.mutex_);
    pool_.hello_ = hello;
    if (was_ready_) pool_.counters_.compiler_restarts.fetch_add(1);
    was_ready_ = true;
    excess_ = Excess::None;
    if (!hello.has_absent()) slot_.welcome();
    pool_.send_next(endings);
  }
  finish(endings);
}

/// Takes it off the compiler, and puts the time down to its caller.
CompilerPool::Entry CompilerPool::Compiler::end_running() {
  Entry entry = *std::move(running_);
  running_.reset();
  idle_since_ = Clock::now();
  pool_.waiting_.charge(entry.task.caller.principal, seconds_between(entry.started, idle_since_));
  return entry;
}

void CompilerPool::Compiler::on_reply(internal::FromWorker& reply) {
  Endings endings;
  {
    const std::lock_guard lock(pool_.mutex_);
    // A worker is not trusted: an answer to something else would be stored under a wrong key.
    if (!running_ || !answers(reply, running_->number, running_->task.message)) {
      fail(ErrorKind::Internal, "PEER_GARBAGE", "it answered what was not asked");
    }
    Entry entry = end_running();
    if (reply.has_compiled()) {
      pool_.counters_.metrics.observe(Metric::CompileSeconds, {},
                                      seconds_between(entry.started, Clock::now()));
    }
    pool_.send_next(endings);
    endings.emplace_back(std::move(entry), outcome_of(reply));
  }
  finish(endings);
}

bool CompilerPool::Compiler::on_lost(WorkerEnd end) {
  Endings endings;
  bool had_work = false;
  {
    const std::lock_guard lock(pool_.mutex_);
    had_work = running_.has_value();
    if (running_) {
      Entry entry = end_running();
      // A machine that has too much to do is not the kernel's fault, nor is who stops or kills
      // others.
      if (end == WorkerEnd::Fault && excess_ != Excess::Unwanted) {
        pool_.quarantine_.blame(entry.task.key);
      }
      const Error error = error_of_end(end, entry.task);
      endings.emplace_back(std::move(entry), error);
    }
  }
  finish(endings);
  return had_work;
}

/// Whose bug it is that a compiler died: also of NVRTC, which runs in it, where a kernel is for
/// GPUs.
std::string CompilerPool::culprit_of(const CompilerTask& task) const {
  constexpr std::string_view kOwn = "this is a bug in kiln";
  const std::string& target = task.message.compile().request().target().name();
  const bool is_for_gpu = std::ranges::any_of(target_table(), [&](const TargetTraits& traits) {
    return traits.name == target && traits.has_threads;
  });
  if (!is_for_gpu || !hello_) return std::string(kOwn);
  for (const v1::Component& component : hello_->components())
    if (component.name() == "nvrtc" && component.ok())
      return fmt::format("{}, or in {}: KILN_NVRTC names another one to kilnd", kOwn,
                         component.message());
  return std::string(kOwn);
}

/// What the caller is told: what the task took too much of, else how the process ended.
Error CompilerPool::Compiler::error_of_end(WorkerEnd end, const CompilerTask& task) const {
  const Options& options = pool_.options_;
  const std::string kernel = called(task.kernel);
  switch (excess_) {
    case Excess::Time:
      return {ErrorKind::ResourceExhausted, "COMPILE_TIME",
              fmt::format("{} took longer than {} s to compile", kernel,
                          seconds_of(options.times.compile_limit))};
    case Excess::Memory:
      return {ErrorKind::ResourceExhausted, "COMPILE_MEMORY",
              fmt::format("{} took more than {} bytes of memory to compile", kernel,
                          options.memory_bytes)};
    case Excess::Unwanted: return cancelled_error(kernel);
    case Excess::None: break;
  }
  switch (end) {
    case WorkerEnd::Starved:
      return {
          ErrorKind::Unavailable, "COMPILER_STARVED",
          fmt::format("the compiler got no processor for {} s while it compiled {}: the machine "
                      "has too much to do; try again later",
                      seconds_of(options.times.starved), kernel)};
    case WorkerEnd::Silent:
      return {
          ErrorKind::Unavailable, "COMPILER_STOPPED",
          fmt::format("the compiler stood still for {} s while it compiled {}, as one does that "
                      "is stopped from outside; it is started again",
                      seconds_of(options.times.hang), kernel)};
    case WorkerEnd::Killed:
      return {
          ErrorKind::Unavailable, "COMPILER_KILLED",
          fmt::format("the compiler was killed from outside while it compiled {}, as the system "
                      "does when memory runs out; it is started again",
                      kernel)};
    case WorkerEnd::Draining: return {ErrorKind::Unavailable, "DRAINING", "the daemon is ending"};
    case WorkerEnd::Fault: break;
  }
  return {
      ErrorKind::Internal, "COMPILER_DIED",
      fmt::format("the compiler died while it compiled {}; {}", kernel, pool_.culprit_of(task))};
}

CompilerPool::Compiler::Excess CompilerPool::Compiler::excess_of_task(Clock::time_point now) const {
  if (!running_) return Excess::None;
  if (!running_->task.wanted()) return Excess::Unwanted;
  if (now - running_->started > pool_.options_.times.compile_limit) return Excess::Time;
  return resident_bytes(slot_.pid()) > pool_.options_.memory_bytes ? Excess::Memory : Excess::None;
}

/// Tasks nobody waits for any more leave the queue here too, when all compilers are down.
void CompilerPool::end_unwanted(Endings& endings) {
  const auto unwanted = [](uint64_t, const Entry& entry) { return !entry.task.wanted(); };
  while (std::optional<Entry> entry = waiting_.take_if(unwanted)) {
    const Error error = cancelled_error(entry->task.kernel);
    endings.emplace_back(*std::move(entry), error);
  }
}

void CompilerPool::tick(Clock::time_point now) {
  Endings endings;
  std::vector<std::pair<Compiler*, Compiler::Excess>>
      present;  // this thread alone adds and removes
  std::unique_ptr<Compiler> over;
  {
    const std::lock_guard lock(mutex_);
    end_unwanted(endings);
    over = grow_or_shrink(now);
    for (const std::unique_ptr<Compiler>& compiler : compilers_) {
      // Noted before the kill, so that on_lost() tells the reason and not the signal.
      const Compiler::Excess excess = compiler->excess_of_task(now);
      if (excess != Compiler::Excess::None) compiler->excess_ = excess;
      present.emplace_back(compiler.get(), excess);
    }
  }
  finish(endings);
  if (over) over->slot_.stop();
  for (const auto& [compiler, excess] : present) {
    switch (excess) {
      case Compiler::Excess::None: break;
      case Compiler::Excess::Time: compiler->slot_.kill("a compilation took too long"); break;
      case Compiler::Excess::Memory: compiler->slot_.kill("a compilation took much memory"); break;
      case Compiler::Excess::Unwanted: compiler->slot_.kill("nobody waits for it any more"); break;
    }
    compiler->slot_.tick(now);
  }
}

internal::Hello CompilerPool::hello() const {
  const std::lock_guard lock(mutex_);
  if (!hello_) {
    fail(ErrorKind::Unavailable, "COMPILER_STARTING",
         "the compiler has not started yet; try again soon");
  }
  return *hello_;
}

bool CompilerPool::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() &&
         std::any_of(compilers_.begin(), compilers_.end(), [](const auto& each) {
           return !each->running_ && each->slot_.state() == WorkerSlot::State::Ready;
         });
}

size_t CompilerPool::waiting() const {
  const std::lock_guard lock(mutex_);
  const auto running = std::count_if(compilers_.begin(), compilers_.end(),
                                     [](const auto& each) { return each->running_.has_value(); });
  return waiting_.size() + static_cast<size_t>(running);
}

bool CompilerPool::settled() const {
  const std::lock_guard lock(mutex_);
  return hello_.has_value();
}

bool CompilerPool::is_up() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(compilers_.begin(), compilers_.end(), [](const auto& each) {
    return each->slot_.state() == WorkerSlot::State::Ready;
  });
}

std::vector<int> CompilerPool::pids() const {
  std::vector<int> pids;
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Compiler>& compiler : compilers_)
    pids.push_back(compiler->slot_.pid());
  return pids;
}

void CompilerPool::stop() {
  for (const std::unique_ptr<Compiler>& compiler : compilers_)
    compiler->slot_.stop();
  Endings endings;
  {
    const std::lock_guard lock(mutex_);
    while (std::optional<Entry> entry = waiting_.pop()) {
      endings.emplace_back(*std::move(entry),
                           Error(ErrorKind::Unavailable, "DRAINING", "the daemon is ending"));
    }
  }
  finish(endings);
}

// Callers are told after the lock is let go: what they do next may come back here.
void CompilerPool::finish(Endings& endings) {
  for (auto& [entry, outcome] : endings)
    entry.task.done(std::move(outcome));
}

}  // namespace kiln::server
