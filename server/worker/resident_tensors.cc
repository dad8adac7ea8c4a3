// Keeps tensors on the device. One thread brings them there and one takes them away, so that the
// inputs of the next call and the results of the one before travel while a call computes.
//
//   stage 7, exec {7}   ->  the call waits for the copy, or copies where that failed
#include "server/worker/resident_tensors.h"

#include "server/errors.h"

namespace kiln::server {

namespace {

/// What `work` throws.
template <typename Work>
std::optional<Error> error_of(Work&& work) {
  try {
    work();
    return std::nullopt;
  } catch (...) {
    return current_error();
  }
}

}  // namespace

ResidentTensors::Found ResidentTensors::get(uint64_t resident, int64_t bytes) {
  std::unique_lock lock(mutex_);
  Tensor& tensor = tensors_[resident];
  staged_.wait(lock, [&] { return tensor.staging == 0; });
  const bool is_new = !tensor.buffer || tensor.buffer->bytes() != bytes;
  if (is_new) tensor.buffer = device_.allocate(bytes);
  return {tensor.buffer, is_new};
}

std::shared_ptr<DeviceBuffer> ResidentTensors::find(uint64_t resident) {
  const std::lock_guard lock(mutex_);
  const auto at = tensors_.find(resident);
  return at != tensors_.end() ? at->second.buffer : nullptr;
}

/// Other memory than a call uses that still runs.
std::shared_ptr<DeviceBuffer> ResidentTensors::buffer_to_fill(uint64_t resident, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<DeviceBuffer>& buffer = tensors_[resident].buffer;
  const bool is_free = buffer && buffer.use_count() == 1 && buffer->bytes() == bytes;
  if (!is_free) buffer = device_.allocate(bytes);
  return buffer;
}

void ResidentTensors::drop(uint64_t resident) {
  std::unique_lock lock(mutex_);
  const auto at = tensors_.find(resident);
  if (at == tensors_.end()) return;
  if (at->second.staging != 0) {
    // Who fills it has it by its number.
    at->second.buffer.reset();
    lock.unlock();
    in_.post([this, resident] { drop(resident); });
    return;
  }
  tensors_.erase(at);
}

void ResidentTensors::stage(uint64_t resident, HostPlace from, int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    ++tensors_[resident].staging;
  }
  in_.post([this, resident, from = std::move(from), bytes] {
    const std::optional<Error> error = stage_now(resident, from, bytes);
    internal::FromWorker answer;
    answer.mutable_staged()->set_resident(resident);
    {
      const std::lock_guard lock(mutex_);
      Tensor& tensor = tensors_[resident];
      if (error) tensor.buffer.reset();
      --tensor.staging;
    }
    staged_.notify_all();
    answer_(answer, error);
  });
}

std::optional<Error> ResidentTensors::stage_now(uint64_t resident, const HostPlace& from,
                                                int64_t bytes) {
  return error_of([&] {
    const std::shared_ptr<DeviceBuffer> buffer = buffer_to_fill(resident, bytes);
    device_.copy_in(buffer->data(), from.data, bytes);
  });
}

void ResidentTensors::fetch(const internal::Fetch& message, HostPlace into) {
  out_.post([this, message, into = std::move(into)] {
    const std::optional<Error> error = fetch_now(message, into);
    internal::FromWorker answer;
    answer.mutable_fetched()->set_number(message.number());
    if (error) *answer.mutable_fetched()->mutable_error() = to_wire(*error);
    answer_(answer, error);
  });
}

std::optional<Error> ResidentTensors::fetch_now(const internal::Fetch& message,
                                                const HostPlace& into) {
  return error_of([&] {
    const std::shared_ptr<DeviceBuffer> from = find(message.place().resident());
    KILN_CHECK(from != nullptr);
    const int64_t bytes = from->bytes();
    if (message.into() != 0) {
      const std::shared_ptr<DeviceBuffer> to = buffer_to_fill(message.into(), bytes);
      device_.copy_within(to->data(), from->data(), bytes);
    } else {
      KILN_CHECK(bytes <= static_cast<int64_t>(message.room()));
      device_.copy_out(into.data, from->data(), bytes);
    }
  });
}

}  // namespace kiln::server
