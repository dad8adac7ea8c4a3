// Short calls are sent to a worker before it asks: it would wait for the way to us and back between
// two of them, which takes longer than they do. What is sent can be taken back until it begins
// (status_page.h), so nobody waits behind a call that turns out to be long.
//
// Those who wait take turns on the lane, since what is sent has not been charged to anybody yet.
#include "server/engine/calls_ahead.h"

#include <algorithm>

#include "server/engine/device_queue.h"

namespace kiln::server {

namespace {

constexpr size_t kAhead = 4;
static_assert(kAhead + 2 < kCallSlots);  // one that runs, and one that was answered this moment
constexpr int kUsual = 2;                // times a short call, for one with its way
constexpr int kTooLong = 10;             // the same, for those behind it
constexpr double kWeight = 0.1;          // of the last call among those of late

}  // namespace

bool may_send_ahead(const DeviceLane& lane, Clock::time_point now, Clock::duration short_call) {
  return lane.running && lane.is_ready() && lane.ahead.size() < kAhead &&
         lane.typical_seconds < std::chrono::duration<double>(short_call).count() &&
         now - lane.running->started < kUsual * short_call && may_go_ahead(*lane.running);
}

bool waits_too_long(const DeviceLane& lane, Clock::time_point now, Clock::duration short_call) {
  return lane.running && now - lane.running->started >= kTooLong * short_call;
}

bool may_go_ahead(const QueuedCall& entry) {
  return !entry.work.program && !entry.work.is_measured() && entry.work.may_retry &&
         !entry.was_lost;
}

bool may_go_ahead_on(const DeviceLane& lane, const QueuedCall& entry) {
  return may_go_ahead(entry) && lane.has_all_of(entry);
}

std::tuple<size_t, size_t> calls_of(const DeviceLane& lane, const Principal& who) {
  size_t of_tenant = 0;
  size_t of_client = 0;
  const auto count = [&](const QueuedCall& call) {
    of_tenant += call.work.principal().tenant == who.tenant ? 1 : 0;
    of_client += call.work.principal() == who ? 1 : 0;
  };
  if (lane.running) count(*lane.running);
  for (const DeviceLane::Ahead& each : lane.ahead) {
    if (each.call) count(*each.call);
  }
  return {of_tenant, of_client};
}

void note_duration(DeviceLane& lane, double seconds) {
  lane.typical_seconds += kWeight * (seconds - lane.typical_seconds);
}

std::optional<QueuedCall> pop_ahead(FairQueue<QueuedCall>& waiting, const DeviceLane& lane,
                                    const std::function<bool(const Principal&)>& may_join) {
  std::optional<std::tuple<size_t, size_t>> least;
  waiting.any([&](const Principal& who, const QueuedCall& entry) {
    if (!may_go_ahead_on(lane, entry) || !may_join(who)) return false;
    const std::tuple<size_t, size_t> has = calls_of(lane, who);
    if (!least || has < *least) least = has;
    return false;
  });
  if (!least) return std::nullopt;
  return waiting.pop([&](const Principal& who, const QueuedCall& entry) {
    return may_go_ahead_on(lane, entry) && may_join(who) && calls_of(lane, who) == *least;
  });
}

/// Calls that were sent to workers but have not begun, as far as we know.
size_t DeviceQueue::ahead_of(const std::string& tenant) const {
  size_t count = 0;
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
    for (const DeviceLane::Ahead& each : lane->ahead)
      count += each.call && each.call->work.principal().tenant == tenant ? 1 : 0;
  }
  return count;
}

/// Calls behind the one that runs: of a client those alone that no other worker has one of.
void DeviceQueue::send_ahead(Clock::time_point now, Endings& endings) {
  for (const std::unique_ptr<DeviceLane>& lane : lanes_) {
    const auto may_join = [&](const Principal& who) {
      return std::ranges::none_of(
          lanes_, [&](const auto& other) { return other != lane && other->has_call_of(who); });
    };
    while (!waiting_.empty() && may_send_ahead(*lane, now, options_.times.short_call)) {
      std::optional<Entry> next = pop_ahead(waiting_, *lane, may_join);
      if (!next) break;
      if (const std::optional<Error> error = ended_already(*next, now)) {
        endings.emplace_back(*std::move(next), *error);
        continue;
      }
      send(*lane, *next);
      next->was_ahead = true;
      const uint64_t number = next->number;
      lane->ahead.push_back({number, std::move(next)});
    }
  }
}

/// Puts what has not begun back to where it waited.
void DeviceQueue::take_back(DeviceLane& lane) {
  for (DeviceLane::Ahead& each : lane.ahead) {
    if (!each.call || !lane.slot.withdraw_call(each.call->slot)) continue;
    each.call->begun = false;
    const Caller caller = each.call->work.call->caller();
    waiting_.push(caller, each.number, *std::move(each.call));
    each.call.reset();
  }
}

/// The worker has answered a call and comes to the next.
void DeviceQueue::go_on(DeviceLane& lane) {
  if (lane.running || lane.ahead.empty() || !lane.ahead.front().call) return;
  lane.running = std::move(lane.ahead.front().call);
  lane.ahead.pop_front();
  lane.running->started = Clock::now();
}

/// What was sent ahead is to blame for nothing that it had not begun. The page says so, which a
/// kernel may have overwritten before it ended its worker: it is asked once of each call.
void DeviceQueue::end_all_lost(DeviceLane& lane, WorkerEnd end, Endings& endings) {
  if (lane.running) {
    if (lane.running->was_ahead && lane.slot.withdraw_call(lane.running->slot))
      lane.running->begun = false;
    end_lost(end_running(lane), end, endings);
  }
  std::deque<DeviceLane::Ahead> ahead;
  ahead.swap(lane.ahead);
  for (DeviceLane::Ahead& each : ahead) {
    if (!each.call) continue;
    if (lane.slot.withdraw_call(each.call->slot)) each.call->begun = false;
    end_lost(*std::move(each.call), end, endings);
  }
}

}  // namespace kiln::server
