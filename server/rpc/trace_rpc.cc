// The spans of a trace on the wire. A trace of another tenant is one without spans.
#include "server/rpc/trace_rpc.h"

#include "runtime/core/host_clock.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

grpc::ServerUnaryReactor* TraceRpc::Spans(grpc::CallbackServerContext* context,
                                          const v1::SpansRequest* request,
                                          v1::SpansResponse* response) {
  return UnaryCall<v1::SpansResponse>::start(context, gate_, response, [&](const auto& call) {
    call->answer([&](auto& reply) {
      for (const Span& span :
           engine_.counters().spans.of(call->call()->tenant(), request->trace())) {
        v1::Span& written = *reply.add_spans();
        written.set_name(span.name);
        written.set_process(span.process);
        written.set_pid(static_cast<uint32_t>(span.pid));
        written.set_track(span.track);
        written.set_begin(span.begin);
        written.set_end(span.end);
      }
      reply.set_now(nanoseconds(Clock::now()));
    });
  });
}

}  // namespace kiln::server
