// One thread writes the calls that wait, as many in a message as there are, and one reads replies
// and tells whoever asked. When the stream breaks, all that is under way is told so.
#include "client/cpp/call_stream.h"

#include <utility>

#include <google/rpc/status.pb.h>

namespace kiln {
inline namespace client {
namespace detail {

namespace {
constexpr std::size_t kMessageBytes = 1 << 20;  // of several calls
}  // namespace

CallStream::CallStream(const std::shared_ptr<grpc::ChannelInterface>& channel,
                       const Metadata& metadata)
    : stub_(v1::CallService::NewStub(channel)) {
  for (const auto& [key, value] : metadata)
    context_.AddMetadata(key, value);
  stream_ = stub_->Calls(&context_);
  writer_ = std::thread([this] { write(); });
  reader_ = std::thread([this] { read(); });
}

CallStream::~CallStream() {
  close();
  reader_.join();
}

void CallStream::close() {
  stop();
  context_.TryCancel();
}

bool CallStream::run(std::uint64_t number, const v1::RunRequest& request, Done done) {
  const std::lock_guard lock(mutex_);
  if (!is_open_) return false;
  pending_[number] = std::move(done);
  v1::SmallCall& call = waiting_.emplace_back();
  call.set_id(number);
  *call.mutable_run() = request;
  changed_.notify_one();
  return true;
}

void CallStream::cancel(std::uint64_t call) {
  const Done done = take_pending(call);
  if (!done) return;
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back().set_cancel(call);
    changed_.notify_one();
  }
  v1::RunResponse none;
  done(grpc::Status::CANCELLED, none);
}

bool CallStream::is_open() const {
  const std::lock_guard lock(mutex_);
  return is_open_;
}

bool CallStream::is_known() const {
  const std::lock_guard lock(mutex_);
  return is_known_;
}

void CallStream::stop() {
  const std::lock_guard lock(mutex_);
  is_open_ = false;
  changed_.notify_one();
}

CallStream::Done CallStream::take_pending(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  const auto at = pending_.find(call);
  if (at == pending_.end()) return nullptr;  // it has ended
  Done done = std::move(at->second);
  pending_.erase(at);
  return done;
}

/// What is to be sent next; false when there is nothing more.
bool CallStream::take(v1::CallsRequest& request) {
  request.Clear();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_.empty() || !is_open_; });
  for (std::size_t bytes = 0; !waiting_.empty(); waiting_.pop_front()) {
    const std::size_t more = waiting_.front().ByteSizeLong();
    if (bytes != 0 && bytes + more > kMessageBytes) break;
    bytes += more;
    *request.add_calls() = std::move(waiting_.front());
  }
  return is_open_ && request.calls_size() > 0;
}

void CallStream::write() {
  v1::CallsRequest request;
  while (take(request)) {
    if (!stream_->Write(request)) return;
  }
}

void CallStream::read() {
  v1::CallsReply reply;
  while (stream_->Read(&reply)) {
    for (const v1::SmallReply& each : reply.replies())
      end(each);
  }
  stop();
  writer_.join();  // gRPC wants the last word
  const grpc::Status status = stream_->Finish();
  std::map<std::uint64_t, Done> pending;
  {
    const std::lock_guard lock(mutex_);
    is_known_ = status.error_code() != grpc::StatusCode::UNIMPLEMENTED;
    pending.swap(pending_);
  }
  const auto code = status.error_code() == grpc::StatusCode::UNIMPLEMENTED
                        ? grpc::StatusCode::UNIMPLEMENTED
                        : grpc::StatusCode::UNAVAILABLE;
  v1::RunResponse none;
  for (const auto& [number, done] : pending)
    done({code, "the stream of calls has ended"}, none);
}

void CallStream::end(const v1::SmallReply& reply) {
  const Done done = take_pending(reply.id());
  if (!done) return;  // it was cancelled
  v1::RunResponse response = reply.run();
  if (!reply.has_failed()) return done(grpc::Status::OK, response);
  google::rpc::Status status;
  status.ParseFromString(reply.failed());
  done({static_cast<grpc::StatusCode>(status.code()), status.message(), reply.failed()}, response);
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
