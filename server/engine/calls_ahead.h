#pragma once

#include <tuple>

#include "server/engine/device_lane.h"
#include "server/engine/fair_queue.h"

namespace kiln::server {

/// Whether a worker may be sent a call behind the one that runs, so that it need not wait for us
/// between two short ones: calls of late were short, and so is this one up to now.
bool may_send_ahead(const DeviceLane& lane, Clock::time_point now, Clock::duration short_call);

/// Whether the calls behind the one that runs have to wait for it too long.
bool waits_too_long(const DeviceLane& lane, Clock::time_point now, Clock::duration short_call);

/// Whether a call may be one of those: who measures wants the device alone, what must not run twice
/// is sent when it is to run, and of what lost its worker we want to know ourselves whether it ran.
bool may_go_ahead(const QueuedCall& entry);

/// And on this lane: a worker that computes reads no messages, and its socket holds few and small
/// ones, so all else is sent when it is read at once.
bool may_go_ahead_on(const DeviceLane& lane, const QueuedCall& entry);

/// How often the lane serves a tenant, and of that one the client: who has the least there is next.
std::tuple<size_t, size_t> calls_of(const DeviceLane& lane, const Principal& who);

/// What took `seconds` was a call of the lane.
void note_duration(DeviceLane& lane, double seconds);

/// The next call for a lane that runs one; nothing when none may go ahead.
std::optional<QueuedCall> pop_ahead(FairQueue<QueuedCall>& waiting, const DeviceLane& lane,
                                    const std::function<bool(const Principal&)>& may_join);

}  // namespace kiln::server
