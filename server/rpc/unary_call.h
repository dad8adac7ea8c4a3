#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "server/call.h"
#include "server/errors.h"
#include "server/rpc/gate.h"
#include "server/rpc/status.h"

namespace kiln::server {

/// A unary call that is answered later, from any thread, by whoever is first: the work, or the
/// caller who went away. gRPC waits for ever for a reactor that does not finish when it is
/// cancelled.
template <typename Response>
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  using Ptr = std::shared_ptr<UnaryCall>;

  explicit UnaryCall(Response* response) : response_(response) {}

  /// Lets the call in and runs `begin(call)`; what that throws is the answer. `session` is what the
  /// request says it belongs to.
  template <typename Begin>
  static grpc::ServerUnaryReactor* start(grpc::CallbackServerContext* context, Gate& gate,
                                         Response* response, Begin&& begin,
                                         const std::string& session = {}) {
    const Ptr call = std::make_shared<UnaryCall>(response);
    call->self_ = call;
    try {
      Admission admission = gate.enter(*context);
      call->pass_ = std::move(admission.pass);
      call->call_ = std::make_shared<Call>(of_session(std::move(admission.caller), session));
      begin(call);
    } catch (...) {
      call->fail(current_error());
    }
    return call.get();
  }

  const std::shared_ptr<Call>& call() const { return call_; }

  /// From now on the end of the daemon does not wait for this call.
  void hold_up_nothing() { pass_.reset(); }

  /// Answers with what `fill(response)` writes.
  template <typename Fill>
  void answer(Fill&& fill) {
    if (ended_.exchange(true)) return;
    grpc::Status status;
    try {
      fill(*response_);
    } catch (...) {
      status = status_of(current_error());
    }
    Finish(status);
  }

  void fail(const Error& error) {
    if (!ended_.exchange(true)) Finish(status_of(error));
  }

  void OnCancel() override {
    if (!ended_.exchange(true)) Finish(grpc::Status::CANCELLED);
    if (call_) call_->cancel();
  }
  void OnDone() override {
    pass_.reset();
    self_.reset();  // the work may still hold it
  }

 private:
  std::shared_ptr<Call> call_;  // none: it was not let in
  Response* const response_;    // gRPC's, until Finish
  std::atomic<bool> ended_{false};
  std::shared_ptr<void> pass_;
  Ptr self_;
};

/// What unary calls do with an outcome: answer with `fill(response, value)`, or fail.
template <typename T, typename Call, typename Fill>
void end_call(const Call& call, Outcome<T> outcome, Fill fill) {
  if (const Error* error = std::get_if<Error>(&outcome)) {
    call->fail(*error);
  } else {
    call->answer([&](auto& response) { fill(response, std::get<T>(outcome)); });
  }
}

}  // namespace kiln::server
