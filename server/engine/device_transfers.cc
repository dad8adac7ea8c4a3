// What a device with memory of its own keeps of tensors, as the front end sees it: which copy is
// the newest, what is on its way there or back, and what a call is told of where its tensors lie.
//
//   upload x  ->  stage x     run y = f(x)  ->  y is newer on the device     download y  ->  fetch
//   y
#include "runtime/core/error.h"
#include "server/engine/device_queue.h"

namespace kiln::server {

namespace {

// A socket holds few messages for a worker that is loading code; more copies wait for their calls.
constexpr size_t kMostStaging = 64;

void set_place(const Slice& slice, internal::Place& place) {
  place.set_arena(slice.arena()->number);
  place.set_offset(static_cast<uint64_t>(slice.offset()));
}

}  // namespace

/// An input may be what the worker before this one had computed, and nobody else had.
std::optional<Error> DeviceQueue::lost_input(const Entry& entry) {
  if (entry.work.program) return std::nullopt;  // it works on what lies here
  const std::vector<Parameter>& parameters = entry.work.kernel->artifact().parameters;
  try {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].is_output) require_not_lost(*entry.work.tensors[i]);
    }
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

bool DeviceQueue::keeps(const Entry& entry, size_t parameter) const {
  return options_.spec.role == Role::Cuda && parameter < entry.work.stays.size() &&
         entry.work.stays[parameter];
}

internal::Place DeviceQueue::place_of(const Entry& entry, size_t parameter) {
  Slice& slice = *entry.work.tensors[parameter];
  internal::Place place;
  set_place(slice, place);
  const std::vector<int64_t>& shape = entry.work.bound.shapes[parameter];
  place.mutable_shape()->Add(shape.begin(), shape.end());
  if (keeps(entry, parameter)) set_copy(slice, place);
  return place;
}

void DeviceQueue::set_copy(Slice& slice, internal::Place& place) {
  const std::shared_ptr<DeviceCopy> copy = copies_.of(slice);
  place.set_resident(copy->number);
  place.set_is_newer(!copy->is_newer && copy->version != slice.version());
}

/// After a call that ran to its end: the device has its inputs as they are here, and its outputs
/// newer.
void DeviceQueue::note_copies(const Entry& entry) {
  for (size_t i = 0; i < entry.work.tensors.size(); ++i) {
    Slice& slice = *entry.work.tensors[i];
    const bool is_output = entry.work.kernel->artifact().parameters[i].is_output;
    if (!keeps(entry, i)) {
      if (is_output) slice.written();
      continue;
    }
    DeviceCopy& copy = *copies_.of(slice);
    copy.version = slice.version();
    if (is_output) copy.note_written();
  }
}

/// What steps have changed is here as it is on the device.
void DeviceQueue::note_copies(const ProgramSteps& steps, bool ran_to_end) {
  for (size_t slot = 0; slot < steps.given.size(); ++slot) {
    if (steps.given[slot] == nullptr) continue;
    Slice& slice = *steps.given[slot];
    if (steps.message.slots(static_cast<int>(slot)).is_result()) slice.written();
    if (ran_to_end && options_.spec.role == Role::Cuda)
      copies_.of(slice)->version = slice.version();
  }
}

/// The worker of a device with memory of its own reads while it runs a call.
bool DeviceQueue::drop_copies() {
  internal::DropTensors freed = copies_.take_freed();
  if (freed.residents_size() == 0) return true;
  internal::ToWorker message;
  *message.mutable_drop_tensors() = std::move(freed);
  return first_.slot.send(message);
}

void DeviceQueue::stage(const std::shared_ptr<Slice>& slice, int64_t bytes) {
  if (options_.spec.role != Role::Cuda || bytes == 0) return;
  const std::lock_guard lock(mutex_);
  // The first call that uses it copies it, otherwise.
  if (!first_.is_ready() || staging_ >= kMostStaging) return;
  const std::shared_ptr<DeviceCopy> copy = copies_.of(*slice);
  const uint64_t version = slice->version();
  internal::ToWorker message;
  message.mutable_stage()->set_bytes(static_cast<uint64_t>(bytes));
  set_place(*slice, *message.mutable_stage()->mutable_place());
  message.mutable_stage()->mutable_place()->set_resident(copy->number);
  if (!drop_copies() || !first_.send_arenas({&slice, 1}) || !first_.slot.send(message)) return;
  ++staging_;
  copy->version = version;
}

void DeviceQueue::fetch(std::shared_ptr<Slice> slice, FetchDone done) {
  start_fetch({.from = std::move(slice), .into = nullptr, .done = std::move(done)});
}

void DeviceQueue::fetch_into(std::shared_ptr<Slice> from, std::shared_ptr<Slice> into,
                             FetchDone done) {
  start_fetch({.from = std::move(from), .into = std::move(into), .done = std::move(done)});
}

void DeviceQueue::copy_within(std::shared_ptr<Slice> from, std::shared_ptr<Slice> into,
                              FetchDone done) {
  start_fetch(
      {.from = std::move(from), .into = std::move(into), .stays = true, .done = std::move(done)});
}

void DeviceQueue::start_fetch(Fetching fetching) {
  const FetchDone done = fetching.done;
  std::optional<Error> error;
  {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<DeviceCopy> copy = fetching.from->copy();
    KILN_CHECK(copy != nullptr && copy->device == name_);
    if (copy->is_lost) {
      error = tensor_lost(name_);
    } else {
      fetching.writes = copy->writes;
      const uint64_t number = next_number_++;
      // Before it is sent: a worker that ends meanwhile ends it.
      const Fetching& noted = fetching_[number] = std::move(fetching);
      if (send_fetch(number, noted)) return;
      fetching_.erase(number);
      error = restarting();
    }
  }
  done(*error);
}

bool DeviceQueue::send_fetch(uint64_t number, const Fetching& fetching) {
  const std::shared_ptr<Slice>& host = fetching.into ? fetching.into : fetching.from;
  internal::ToWorker message;
  internal::Fetch& fetch = *message.mutable_fetch();
  fetch.set_number(number);
  fetch.set_room(static_cast<uint64_t>(host->bytes()));
  set_place(*host, *fetch.mutable_place());
  fetch.mutable_place()->set_resident(fetching.from->copy()->number);
  if (fetching.stays) fetch.set_into(copies_.of(*fetching.into)->number);
  return first_.send_arenas({&host, 1}) && first_.slot.send(message);
}

void DeviceQueue::on_fetched(const internal::Fetched& fetched) {
  Fetching fetching;
  {
    const std::lock_guard lock(mutex_);
    const auto at = fetching_.find(fetched.number());
    if (at == fetching_.end()) {
      fail(ErrorKind::Internal, "PEER_GARBAGE", "it fetched what was not asked for");
    }
    fetching = std::move(at->second);
    fetching_.erase(at);
    if (!fetched.has_error() && fetching.stays) copies_.of(*fetching.into)->note_written();
  }
  if (fetched.has_error()) return fetching.done(from_wire(fetched.error()));
  if (!fetching.into) {
    const std::shared_ptr<DeviceCopy> copy = fetching.from->copy();
    const bool is_as_asked = copy != nullptr && copy->writes == fetching.writes;
    if (is_as_asked) copy->is_newer = false;
  } else if (!fetching.stays) {
    fetching.into->written();
  }
  fetching.done(std::monostate{});
}

}  // namespace kiln::server
