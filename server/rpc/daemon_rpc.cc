// Describe, and sessions: a stream that a client holds open as long as it lives, whose end frees
// its tensors. A heartbeat without messages: the connection itself is the sign of life.
#include "server/rpc/daemon_rpc.h"

#include "server/rpc/event_stream.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

grpc::ServerUnaryReactor* DaemonRpc::Describe(grpc::CallbackServerContext* context,
                                              const v1::DescribeRequest*,
                                              v1::DescribeResponse* response) {
  return UnaryCall<v1::DescribeResponse>::start(context, gate_, response, [&](const auto& call) {
    call->answer([&](auto& reply) { reply = engine_.describe(); });
  });
}

grpc::ServerWriteReactor<v1::SessionEvent>* DaemonRpc::Session(grpc::CallbackServerContext* context,
                                                               const v1::SessionRequest*) {
  const auto stream = EventStream<v1::SessionEvent>::make();
  try {
    // Not kept: a session lives as long as its client, which must not hold up the end of the
    // daemon.
    const Caller caller = without_deadline(gate_.enter(*context).caller);
    const std::string session = engine_.sessions().open(caller.principal.tenant);
    const std::weak_ptr<EventStream<v1::SessionEvent>> weak = stream;
    const uint64_t listener = gate_.on_close([weak] {
      if (const auto open = weak.lock()) {
        open->close(status_of(Error(ErrorKind::Unavailable, "DRAINING", "the daemon is ending")));
      }
    });
    stream->keep(nullptr, [this, session, listener] {
      gate_.forget(listener);
      if (local_ != nullptr) local_->dismiss(session);
      engine_.sessions().end(session);
    });
    v1::SessionEvent event;
    event.set_session(session);
    if (local_ != nullptr) {
      event.mutable_local()->set_path(local_->path());
      event.mutable_local()->set_nonce(local_->admit(session, caller));
    }
    stream->push(std::move(event));
  } catch (...) {
    stream->close(status_of(current_error()));
  }
  return stream.get();
}

}  // namespace kiln::server
