// A stream is a list of functions that have not been called yet. Each takes half a millisecond of a
// clock of its own, so that times between events say how much work lay between them.
#include "tests/cuda/fake/streams.h"

namespace kiln::fake {
namespace {

constexpr double kMillisecondsOfWork = 0.5;

}  // namespace

Stream* Streams::create() {
  auto stream = std::make_unique<Stream>();
  Stream* const handle = stream.get();
  streams_[handle] = std::move(stream);
  return handle;
}

int Streams::destroy(Stream* stream) {
  if (streams_.count(stream) == 0) return kInvalidHandle;
  run_all(stream);
  streams_.erase(stream);
  return kSuccess;
}

int Streams::add(Stream* stream, Work work) {
  if (streams_.count(stream) == 0) return kInvalidHandle;
  if (stream->is_recording) {
    stream->recorded.push_back(std::move(work));
  } else {
    stream->work.push_back(std::move(work));
  }
  return kSuccess;
}

int Streams::run_first(Stream& stream) {
  const Work work = std::move(stream.work.front());
  stream.work.pop_front();
  const int result = work();
  if (result != kSuccess && sticky_ == kSuccess) sticky_ = result;
  return result;
}

int Streams::run_all(Stream* stream) {
  if (streams_.count(stream) == 0) return kInvalidHandle;
  if (stream->is_recording) return kCaptureInvalidated;
  while (sticky_ == kSuccess && !stream->work.empty())
    run_first(*stream);
  return sticky_;
}

void Streams::come_to_rest() {
  for (const auto& [handle, stream] : streams_)
    run_all(handle);
}

int Streams::record(Event& event, Stream* stream) {
  event.stream = stream;
  ++event.pending;
  return add(stream, [this, &event] {
    --event.pending;
    event.milliseconds = clock_;
    clock_ += kMillisecondsOfWork;
    return kSuccess;
  });
}

int Streams::wait_for(Event& event) {
  while (sticky_ == kSuccess && event.pending > 0 && !event.stream->work.empty())
    run_first(*event.stream);
  return sticky_;
}

int Streams::begin_recording(Stream* stream) {
  if (streams_.count(stream) == 0) return kInvalidHandle;
  stream->is_recording = true;
  stream->recorded.clear();
  return kSuccess;
}

int Streams::end_recording(Stream* stream, std::vector<Work>& recorded) {
  if (streams_.count(stream) == 0 || !stream->is_recording) return kInvalidHandle;
  stream->is_recording = false;
  recorded = std::move(stream->recorded);
  stream->recorded.clear();
  return kSuccess;
}

}  // namespace kiln::fake
