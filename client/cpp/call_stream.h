#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "client/cpp/session_stream.h"
#include "kiln/v1/calls.grpc.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

/// Many calls over one stream (calls.proto): what a call of its own costs is paid once for as many
/// as are under way. Thread-safe.
class CallStream {
 public:
  /// Told once, mostly from the stream's thread, which others wait for. Without details,
  /// CANCELLED is by cancel(), UNAVAILABLE that the stream has broken, and UNIMPLEMENTED that the
  /// service, of an earlier version, has none.
  using Done = std::function<void(const grpc::Status& status, v1::RunResponse& response)>;

  CallStream(const std::shared_ptr<grpc::ChannelInterface>& channel, const Metadata& metadata);
  /// Breaks it. Not in its own thread.
  ~CallStream();
  CallStream(const CallStream&) = delete;
  CallStream& operator=(const CallStream&) = delete;

  /// Of a call to come.
  std::uint64_t next_number() { return next_.fetch_add(1); }
  /// False when the stream has broken.
  bool run(std::uint64_t number, const v1::RunRequest& request, Done done);
  /// Ends the call here and on the service, unless it has ended.
  void cancel(std::uint64_t call);
  /// Breaks it: what is under way is told so.
  void close();
  bool is_open() const;
  /// False: the service, of an earlier version, has no such stream.
  bool is_known() const;

 private:
  void write();
  void read();
  bool take(v1::CallsRequest& request);
  void end(const v1::SmallReply& reply);
  void stop();
  Done take_pending(std::uint64_t call);

  grpc::ClientContext context_;
  const std::unique_ptr<v1::CallService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::CallsRequest, v1::CallsReply>> stream_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::SmallCall> waiting_;
  std::map<std::uint64_t, Done> pending_;
  std::atomic<std::uint64_t> next_ = 1;
  bool is_open_ = true;
  bool is_known_ = true;
  std::thread writer_;
  std::thread reader_;
};

}  // namespace detail
}  // namespace client
}  // namespace kiln
