#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "server/counters.h"
#include "server/engine/calls_ahead.h"
#include "server/engine/copy_table.h"
#include "server/engine/device_call.h"
#include "server/engine/device_lane.h"
#include "server/engine/device_time.h"
#include "server/engine/fair_queue.h"
#include "server/engine/quarantine.h"

namespace kiln::server {

/// Told once, from a thread that must not be kept.
using FetchDone = std::function<void(Outcome<std::monostate>)>;

/// A device as the front end sees it: bounded queues of tenants and their clients who take turns,
/// and a worker that runs one call after another. One that works in the host's memory gets further
/// workers for those who would wait behind a long call; of one client still one call runs at a
/// time, in their order.
class DeviceQueue : private LaneOwner {
 public:
  struct Options {
    WorkerSpec spec;
    size_t limit = 256;                       // calls of one tenant that wait, and a quarter of all
    SharedQuotas quotas = shared_quotas({});  // of tenants with another limit
    int workers = 4;                          // at most; one for a device with memory of its own
    Clock::duration long_call = std::chrono::milliseconds(100);  // that others do not wait for
    Clock::duration idle = std::chrono::minutes(1);  // before a worker but the first ends
    WorkerTimes times;
  };
  DeviceQueue(Options options, Launcher& launcher, Supervisor& supervisor, ArenaPool& arenas,
              Quarantine& quarantine, DeviceTime& times, Counters& counters);

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
  /// Throws ResourceExhausted DEVICE_SECONDS when the tenant has had more than its quota.
  void require_time(const std::string& tenant) const { device_time_.require(tenant, Clock::now()); }

  const std::string& name() const { return name_; }
  /// How many devices of this kind the host has, as far as the worker has said.
  size_t kind_count() const;
  v1::Device describe() const;
  /// What the worker found out about the machine.
  std::vector<v1::Component> components() const;
  bool ready() const;
  /// It has said what it is, or that it is not.
  bool settled() const;
  /// Calls that wait or run.
  size_t waiting() const;
  int pid() const { return first_.slot.pid(); }

  void tick(Clock::time_point now);
  /// Ends the workers; what still runs or waits ends with Unavailable DRAINING.
  void stop();

 private:
  using Entry = QueuedCall;
  using Endings = std::vector<std::pair<Entry, Outcome<DeviceResult>>>;
  struct Fetching {
    std::shared_ptr<Slice> from;
    uint64_t writes = 0;          // of the copy, when it was asked for
    std::shared_ptr<Slice> into;  // null: into the slice itself
    bool stays = false;           // on the device
    FetchDone done;
  };

  void on_ready(DeviceLane& lane, const internal::Hello& hello) override;
  void on_reply(DeviceLane& lane, internal::FromWorker& reply) override;
  bool on_lost(DeviceLane& lane, WorkerEnd end) override;

  // With the lock held.
  void require_place(const std::string& tenant) const;
  DeviceLane& add_lane();
  bool any_ready() const;
  bool may_begin(const Principal& who, const Entry& entry) const;
  size_t ahead_of(const std::string& tenant) const;
  DeviceLane* free_lane(Clock::time_point now) const;
  void grow(Clock::time_point now);
  std::unique_ptr<DeviceLane> shrink(Clock::time_point now);
  Entry end_running(DeviceLane& lane);
  void send_next(Endings& endings);
  void send_ahead(Clock::time_point now, Endings& endings);
  std::optional<Error> ended_already(const Entry& entry, Clock::time_point now) const;
  void send(DeviceLane& lane, Entry& entry);
  void take_back(DeviceLane& lane);
  void go_on(DeviceLane& lane);
  void end_ahead(DeviceLane& lane, DeviceLane::Ahead& ahead, bool past_deadline, Endings& endings);
  bool send_call(DeviceLane& lane, const Entry& entry);
  bool send_program(DeviceLane& lane, const Entry& entry);
  static std::optional<Error> lost_input(const Entry& entry);
  internal::Place place_of(const Entry& entry, size_t parameter);
  /// Names the copy of `slice` here in `place`, and whether the slice is newer.
  void set_copy(Slice& slice, internal::Place& place);
  void note_copies(const Entry& entry);
  void note_copies(const ProgramSteps& steps, bool ran_to_end);
  /// Whether the device keeps a copy of this parameter's tensor.
  bool keeps(const Entry& entry, size_t parameter) const;
  bool drop_unused(DeviceLane& lane);
  bool drop_copies();
  void start_fetch(Fetching fetching);
  bool send_fetch(uint64_t number, const Fetching& fetching);
  void on_fetched(const internal::Fetched& fetched);
  static void tell_to_end(DeviceLane& lane, Entry& entry, Clock::time_point now,
                          bool past_deadline);
  void end_when_late(DeviceLane& lane, Clock::time_point now, Endings& endings);
  bool is_stuck(const DeviceLane& lane, Clock::time_point now) const;
  Outcome<DeviceResult> ending_of(const Entry& entry, const internal::Done& done) const;
  void end_answered(DeviceLane& lane, const internal::Done& done, Endings& endings);
  void end_all_lost(DeviceLane& lane, WorkerEnd end, Endings& endings);
  void end_lost(Entry entry, WorkerEnd end, Endings& endings);
  bool cancel_ahead(uint64_t number, Endings& endings);
  void end_waiting(Endings& endings, const Error& error);
  Error lost_error(const Entry& entry) const;
  Error restarting() const;

  void end_those_without_worker(Endings& endings, Clock::time_point now);

  void cancel(uint64_t number);
  static void finish(Endings& endings);

  const Options options_;
  const std::string name_ = options_.spec.name();  // "cuda:0"
  Launcher& launcher_;
  Supervisor& supervisor_;
  ArenaPool& arenas_;
  Quarantine& quarantine_;
  DeviceTime& device_time_;
  Counters& counters_;

  mutable std::mutex mutex_;
  internal::Hello hello_;
  bool greeted_ = false;
  uint64_t next_number_ = 1;
  FairQueue<Entry> waiting_;
  Clock::time_point down_since_ = Clock::now();
  bool is_up_ = false;
  bool was_ready_ = false;
  std::optional<Error> gone_;  // why the present worker has no device, though one before had

  CopyTable copies_;
  std::map<uint64_t, Fetching> fetching_;
  size_t staging_ = 0;

  /// Only the supervisor's thread adds and removes, with the lock held.
  std::vector<std::unique_ptr<DeviceLane>> lanes_;  // last: their threads use all of the above
  DeviceLane& first_;
};

}  // namespace kiln::server
