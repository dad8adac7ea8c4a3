#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "server/engine/device_call.h"
#include "server/workers/worker_slot.h"

namespace kiln::server {

class DeviceLane;

/// What a lane tells its queue, from its worker's thread and without a lock held; see WorkerOwner.
class LaneOwner {
 public:
  virtual ~LaneOwner() = default;
  virtual void on_ready(DeviceLane& lane, const internal::Hello& hello) = 0;
  virtual void on_reply(DeviceLane& lane, internal::FromWorker& reply) = 0;
  virtual bool on_lost(DeviceLane& lane, WorkerEnd end) = 0;
};

/// One worker of a device, what the present one was sent, and the call it runs. Its queue locks.
class DeviceLane : private WorkerOwner {
 public:
  DeviceLane(const WorkerSpec& spec, Launcher& launcher, Supervisor& supervisor,
             const WorkerTimes& times, ArenaPool& arenas, LaneOwner& owner)
      : arenas_(arenas), owner_(owner), slot(spec, launcher, supervisor, times, *this) {}

  bool is_ready() const { return slot.state() == WorkerSlot::State::Ready; }
  bool is_free() const { return !has_calls() && is_ready(); }
  bool has_calls() const { return running || !ahead.empty(); }
  /// Whether the worker was sent a call of theirs that it has not answered.
  bool has_call_of(const Principal& who) const;
  /// The number of the next slot of the status page; its last call was answered long ago.
  size_t take_slot() { return next_slot_++ % kCallSlots; }
  /// Another worker greeted, and may be sent calls from now on: forgets what the one before was
  /// sent.
  void welcome();

  // Each is false when the worker cannot be reached.
  /// The memory of the tensors, as far as this worker has not mapped it.
  bool send_arenas(std::span<const std::shared_ptr<Slice>> slices);
  /// The artifact and the caller's names, unless this worker has them.
  bool send_kernel(const KernelEntry& kernel);
  /// Arenas that the pool has given back: while a worker maps one, its memory is not free.
  bool drop_arenas();

  /// Whether the worker has it; notes that it is used.
  bool has_kernel(const KernelEntry& kernel);
  /// Whether a call takes one short message, with nothing that the worker lacks.
  bool has_all_of(const QueuedCall& call) const;
  /// Notes that the worker will have it, and what it then has no more room for.
  internal::LoadKernel load_of(const KernelEntry& kernel, std::vector<uint64_t>& unloads);

 private:
  void on_ready(const internal::Hello& hello) override { owner_.on_ready(*this, hello); }
  void on_reply(internal::FromWorker& reply) override { owner_.on_reply(*this, reply); }
  bool on_lost(WorkerEnd end) override { return owner_.on_lost(*this, end); }

  ArenaPool& arenas_;
  LaneOwner& owner_;
  std::set<uint64_t> known_arenas_;
  uint64_t drops_seen_ = 0;            // of the pool
  std::list<uint64_t> known_kernels_;  // last used first
  std::map<uint64_t, std::list<uint64_t>::iterator> kernel_uses_;
  size_t next_slot_ = 0;

 public:
  /// A call that the worker was sent behind others; none: it was taken back, which the worker
  /// has yet to say.
  struct Ahead {
    uint64_t number = 0;
    std::optional<QueuedCall> call;
  };
  std::optional<QueuedCall> running;
  std::deque<Ahead> ahead;     // in the order in which the worker will come to them
  double typical_seconds = 1;  // of its calls of late
  Clock::time_point idle_since = Clock::now();
  bool was_ready = false;  // a worker of this lane, once
  WorkerSlot slot;         // last: its thread uses all of the above
};

}  // namespace kiln::server
