#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "server/call.h"
#include "server/counters.h"
#include "server/engine/copy_table.h"
#include "server/engine/fair_queue.h"
#include "server/engine/kernel_table.h"
#include "server/engine/quarantine.h"
#include "server/errors.h"
#include "server/tensors/arena_pool.h"
#include "server/workers/worker_slot.h"

namespace kiln::server {

/// What a device found out about a call that ran to the end.
struct DeviceResult {
  double queue_seconds = 0;
  double upload_seconds = 0;  // to a device with memory of its own
  double kernel_seconds = 0;
  double download_seconds = 0;
  std::vector<double> measured;
  internal::StepsDone steps;  // of a program
};

/// Some steps of a program: its kernels, and what the worker is told but for the number of the
/// call.
struct ProgramSteps {
  std::vector<std::shared_ptr<const KernelEntry>> kernels;
  internal::ExecProgram message;
};

/// One call of a kernel, or some steps of a program, its arguments checked and in place.
struct DeviceCall {
  std::shared_ptr<const KernelEntry> kernel;    // of a program: its name and key
  std::shared_ptr<const ProgramSteps> program;  // null: a kernel
  BoundCall bound;
  std::vector<std::shared_ptr<Slice>> tensors;  // one a parameter; of a program: all it touches
  /// One a parameter: a tensor of the client's, which a device with memory of its own keeps there.
  /// Others are copied in before the call and out after it.
  std::vector<bool> stays;  // empty: none
  uint32_t repeat = 1;
  uint32_t measurements = 1;
  /// From when it begins; the deadline of the call counts the wait before, too.
  Clock::duration limit = Clock::duration::max();
  /// Whether it may run once more when its worker is lost: it is idempotent, as no output lies on
  /// an input.
  bool may_retry = true;
  bool overwrites_input = false;
  std::shared_ptr<Call> call;
  /// Told once, from a thread that must not be kept.
  std::function<void(Outcome<DeviceResult>)> done;
};

/// Told once, from a thread that must not be kept.
using FetchDone = std::function<void(Outcome<std::monostate>)>;

/// A device as the front end sees it: bounded queues of tenants and their clients who take turns,
/// and a worker that runs one call after another.
class DeviceQueue : private WorkerOwner {
 public:
  struct Options {
    WorkerSpec spec;
    size_t limit = 256;  // calls of one tenant that wait, and a quarter of all
    WorkerTimes times;
  };
  DeviceQueue(Options options, Launcher& launcher, Supervisor& supervisor, ArenaPool& arenas,
              Quarantine& quarantine, Counters& counters);

  /// Throws ResourceExhausted QUEUE_FULL, Unavailable NO_DEVICE, Unsupported KERNEL_QUARANTINED.
  void submit(DeviceCall call);
  // Also while a call runs; nothing for a device that works in the host's memory.
  /// Copies the contents, of so many bytes, to the device ahead of the calls that will use them.
  void stage(const std::shared_ptr<Slice>& slice, int64_t bytes);
  /// Copies what this device has newer into the slice.
  void fetch(std::shared_ptr<Slice> slice, FetchDone done);
  /// The same, but into another slice.
  void fetch_into(std::shared_ptr<Slice> from, std::shared_ptr<Slice> into, FetchDone done);
  /// The device copies what it has newer of `from` to where it keeps `into`.
  void copy_within(std::shared_ptr<Slice> from, std::shared_ptr<Slice> into, FetchDone done);
  /// Throws Unavailable NO_DEVICE when there is no such device.
  void require_present() const;

  const std::string& name() const { return name_; }
  /// How many devices of this kind the host has, as far as the worker has said.
  size_t kind_count() const;
  v1::Device describe() const;
  /// What the worker found out about the machine.
  std::vector<v1::Component> components() const;
  bool ready() const { return slot_.state() == WorkerSlot::State::Ready; }
  /// It has said what it is, or that it is not.
  bool settled() const;
  size_t waiting() const;
  int pid() const { return slot_.pid(); }

  void tick(Clock::time_point now);
  /// Ends the worker; what still runs or waits ends with Unavailable DRAINING.
  void stop();

 private:
  struct Entry {
    uint64_t number = 0;
    DeviceCall work;
    Clock::time_point submitted;
    Clock::time_point started;
    Clock::time_point told_to_end{};  // none: not told
    bool past_deadline = false;
    bool retried = false;
    bool begun = false;  // its worker was sent all of it
  };
  using Endings = std::vector<std::pair<Entry, Outcome<DeviceResult>>>;
  struct Fetching {
    std::shared_ptr<Slice> from;
    uint64_t writes = 0;          // of the copy, when it was asked for
    std::shared_ptr<Slice> into;  // null: into the slice itself
    bool stays = false;           // on the device
    FetchDone done;
  };

  void on_ready(const internal::Hello& hello) override;
  void on_reply(internal::FromWorker& reply) override;
  bool on_lost(WorkerEnd end) override;

  // With the lock held.
  void require_place(const std::string& tenant) const;
  Entry end_running();
  void send_next(Endings& endings);
  bool send_call(const Entry& entry);
  bool send_program(const Entry& entry);
  bool send_arenas(std::span<const std::shared_ptr<Slice>> slices);
  static std::optional<Error> lost_input(const Entry& entry);
  internal::Place place_of(const Entry& entry, size_t parameter);
  void note_copies(const Entry& entry);
  /// Whether the device keeps a copy of this parameter's tensor.
  bool keeps(const Entry& entry, size_t parameter) const;
  bool send_kernel(const KernelEntry& kernel);
  /// Whether the worker has it; notes that it is used.
  bool has_kernel(const KernelEntry& kernel);
  /// Notes that the worker will have it, and what it then has no more room for.
  internal::LoadKernel load_of(const KernelEntry& kernel, std::vector<uint64_t>& unloads);
  bool drop_unused();
  bool drop_copies();
  void start_fetch(Fetching fetching);
  bool send_fetch(uint64_t number, const Fetching& fetching);
  void on_fetched(const internal::Fetched& fetched);
  void tell_to_end(Clock::time_point now, bool past_deadline);
  Outcome<DeviceResult> ending_of(const Entry& entry, const internal::Done& done) const;
  void end_waiting(Endings& endings, const Error& error);
  Error lost_error(const Entry& entry) const;
  Error restarting() const;

  void end_those_without_worker(Endings& endings, Clock::time_point now);

  void cancel(uint64_t number);
  static void finish(Endings& endings);

  const Options options_;
  const std::string name_ = options_.spec.name();  // "cuda:0"
  ArenaPool& arenas_;
  Quarantine& quarantine_;
  Counters& counters_;

  mutable std::mutex mutex_;
  internal::Hello hello_;
  bool greeted_ = false;
  uint64_t next_number_ = 1;
  FairQueue<Entry> waiting_;
  std::optional<Entry> running_;
  Clock::time_point down_since_ = Clock::now();
  bool is_up_ = false;
  bool was_ready_ = false;
  std::optional<Error> gone_;  // why the present worker has no device, though one before had

  CopyTable copies_;
  std::map<uint64_t, Fetching> fetching_;
  size_t staging_ = 0;

  // What the present worker has.
  std::set<uint64_t> known_arenas_;
  uint64_t drops_seen_ = 0;            // of the pool
  std::list<uint64_t> known_kernels_;  // last used first
  std::map<uint64_t, std::list<uint64_t>::iterator> kernel_uses_;

  WorkerSlot slot_;  // last: its thread uses all of the above
};

}  // namespace kiln::server
