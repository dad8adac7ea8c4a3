#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/counters.h"
#include "server/engine/fair_queue.h"
#include "server/engine/quarantine.h"
#include "server/errors.h"
#include "server/workers/worker_slot.h"

namespace kiln::server {

/// Something for a compiler process to do: a Compile, a Text or a Sketches message.
struct CompilerTask {
  internal::ToWorker message;  // its task number is filled in
  std::string kernel;          // the user's name
  std::string key;             // whom to blame when the compiler dies
  Caller caller;               // who takes turns with whom
  /// False: nobody waits for it any more: it is not begun, or ended with its compiler.
  std::function<bool()> wanted;
  /// Told once, from a thread that must not be kept. A reply with an error in it is an Error here.
  std::function<void(Outcome<internal::FromWorker>)> done;
};

/// Compiler processes, more while tasks wait for one, and bounded queues of tenants before them.
class CompilerPool {
 public:
  struct Options {
    int compilers = 1;                               // at most
    int threads = 0;                                 // of kernels on this host
    Clock::duration idle = std::chrono::minutes(1);  // before one that is not the only one ends
    size_t limit = 256;                              // tasks of one tenant that wait
    int64_t memory_bytes = int64_t{4} << 30;         // of one compiler
    WorkerTimes times;
  };
  CompilerPool(const Options& options, Launcher& launcher, Supervisor& supervisor,
               Quarantine& quarantine, Counters& counters);

  /// Throws ResourceExhausted QUEUE_FULL, Unsupported KERNEL_QUARANTINED.
  void submit(CompilerTask task);

  /// Nothing waits, and a compiler has nothing to do.
  bool idle() const;
  /// Tasks that wait or are being done.
  size_t waiting() const;

  /// What the compilers say of themselves. Throws Unavailable COMPILER_STARTING before the first
  /// did.
  internal::Hello hello() const;
  bool settled() const;
  /// A compiler runs.
  bool is_up() const;
  std::vector<int> pids() const;

  void tick(Clock::time_point now);
  void stop();

 private:
  struct Entry {
    uint64_t number = 0;
    CompilerTask task;
    Clock::time_point submitted = Clock::now();
    Clock::time_point started;
  };
  using Endings = std::vector<std::pair<Entry, Outcome<internal::FromWorker>>>;

  class Compiler : public WorkerOwner {
   public:
    Compiler(CompilerPool& pool, const WorkerSpec& spec, Launcher& launcher, Supervisor& supervisor,
             const WorkerTimes& times)
        : pool_(pool), slot_(spec, launcher, supervisor, times, *this) {}
    void on_ready(const internal::Hello& hello) override;
    void on_reply(internal::FromWorker& reply) override;
    bool on_lost(WorkerEnd end) override;

    /// Why it is ended before its task is done.
    enum class Excess { None, Time, Memory, Unwanted };

    /// With the pool's lock held.
    Entry end_running();
    Excess excess_of_task(Clock::time_point now) const;
    Error error_of_end(WorkerEnd end, const CompilerTask& task) const;

    CompilerPool& pool_;
    std::optional<Entry> running_;  // under the pool's lock
    bool was_ready_ = false;
    Clock::time_point idle_since_ = Clock::now();  // under the pool's lock
    Excess excess_ = Excess::None;                 // under the pool's lock
    WorkerSlot slot_;                              // last: its thread uses the above
  };

  // With the lock held.
  std::string culprit_of(const CompilerTask& task) const;
  void send_next(Endings& endings);
  void end_unwanted(Endings& endings);
  /// A compiler more while all are busy and somebody waits; else one that has idled for long.
  std::unique_ptr<Compiler> grow_or_shrink(Clock::time_point now);
  void add_compiler();

  static void finish(Endings& endings);

  const Options options_;
  Launcher& launcher_;
  Supervisor& supervisor_;
  Quarantine& quarantine_;
  Counters& counters_;
  mutable std::mutex mutex_;
  std::optional<internal::Hello> hello_;
  uint64_t next_number_ = 1;
  FairQueue<Entry> waiting_;
  std::vector<std::unique_ptr<Compiler>> compilers_;
};

}  // namespace kiln::server
