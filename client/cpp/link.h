#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <kiln/connection.h>

#include "client/cpp/call_control.h"
#include "client/cpp/diagnose.h"
#include "client/cpp/free_queue.h"
#include "client/cpp/local_socket.h"
#include "kiln/v1/program.grpc.pb.h"
#include "kiln/v1/service.grpc.pb.h"

namespace kiln {
inline namespace client {
namespace detail {

/// The answer to a call of a kernel, and the memory that its regions name.
struct RunReply {
  v1::RunResponse response;
  std::vector<Descriptor> memory;
};

class CallStream;
class SessionStream;

/// One channel to one service, with its session. Every call goes through retry(). Thread-safe.
class Link {
 public:
  /// `address` empty: the private daemon of this user.
  Link(std::string address, const ConnectOptions& options);
  ~Link();

  const std::string& address() const { return address_; }

  /// Tries `attempt` until it succeeds, fails for good, or the time is over. Errors of transport
  /// are tried again, and those for which the service asks for it.
  void retry(const CallControl& control,
             const std::function<grpc::Status(grpc::ClientContext&)>& attempt);

  /// Tries once, with a context of its own.
  grpc::Status run_once(const CallControl& control,
                        const std::function<grpc::Status(grpc::ClientContext&)>& attempt);

  template <typename Stub, typename Request, typename Response>
  void call(Stub& stub,
            grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, Response& response, const CallControl& control = {}) {
    retry(control, [&](grpc::ClientContext& context) {
      return (stub.*method)(&context, request, &response);
    });
  }

  /// One call of a kernel, by the shorter way where there is one.
  void run(v1::RunRequest& request, RunReply& reply, const CallControl& control);

  /// Opens the session when there is none, without waiting for it: the service stays up for it.
  void start_session();
  /// The id of the session, which is opened when there is none.
  std::string session();
  /// The id when the session is open already, else nothing.
  std::string session_if_open() const;
  /// The shorter way to a service on this host, once the session is open; nothing elsewhere.
  std::shared_ptr<LocalSocket> local() const;
  /// For calls that nobody waits for one by one; nothing where the service has no such stream.
  std::shared_ptr<CallStream> call_stream();
  /// Frees tensors without waiting for it.
  void free_tensor(const std::string& id, std::size_t bytes) { freed_.push(id, bytes); }
  void close();

  grpc::ChannelInterface& channel() { return *channel_; }
  v1::KernelService::Stub& kernels() { return *kernels_; }
  v1::TensorService::Stub& tensors() { return *tensors_; }
  v1::JobService::Stub& jobs() { return *jobs_; }
  v1::ProgramService::Stub& programs() { return *programs_; }
  v1::DaemonService::Stub& daemon() { return *daemon_; }

 private:
  /// The same of attempts that have contexts of their own, or none.
  void retry_each(const CallControl& control, const std::function<grpc::Status()>& attempt);
  static grpc::Status run_once(const std::shared_ptr<LocalSocket>& local, v1::RunRequest& request,
                               RunReply& reply, const CallControl& control);
  void prepare(grpc::ClientContext& context, const CallControl& control) const;
  /// Waits between two tries; false when there is no time for another.
  bool pause(const CallControl& control, std::chrono::milliseconds time) const;
  /// Starts the private daemon where it does not run, and connects to it.
  void reach_private_daemon(const CallControl& control) const;
  void require_open() const;
  /// After the first answer: refuses a service whose version is too far from ours.
  void check_version(const CallControl& control);
  void free_now(const std::vector<std::string>& tensors);
  std::shared_ptr<SessionStream> session_stream();

  const bool private_;
  const std::vector<std::pair<std::string, std::string>> metadata_;  // of each call
  const Trust trust_;
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::KernelService::Stub> kernels_;
  std::unique_ptr<v1::TensorService::Stub> tensors_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::ProgramService::Stub> programs_;
  std::unique_ptr<v1::DaemonService::Stub> daemon_;

  mutable std::mutex mutex_;
  std::shared_ptr<SessionStream> session_;
  std::shared_ptr<CallStream> calls_;
  bool closed_ = false;
  std::atomic<bool> reached_ = false;  // it has answered, and is of a version that we know
  FreeQueue freed_{[this](const auto& tensors) { free_now(tensors); }};
};

}  // namespace detail
}  // namespace client
}  // namespace kiln
