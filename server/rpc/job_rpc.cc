// Jobs on the wire. Submit is answered once the job is kept; Watch streams states until the last;
// Result waits for the end as long as its caller does.
#include "server/rpc/job_rpc.h"

#include "server/rpc/event_stream.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

grpc::ServerUnaryReactor* JobRpc::Submit(grpc::CallbackServerContext* context,
                                         const v1::SubmitRequest* request,
                                         v1::SubmitResponse* response) {
  return UnaryCall<v1::SubmitResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.submit(*request, call->call()->caller(), [call](Outcome<std::string> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, const std::string& job) { reply.set_job(job); });
    });
  });
}

grpc::ServerWriteReactor<v1::JobState>* JobRpc::Watch(grpc::CallbackServerContext* context,
                                                      const v1::WatchRequest* request) {
  const auto stream = EventStream<v1::JobState>::make();
  try {
    // Its pass is not kept, as in Result().
    const std::string tenant = gate_.enter(*context).caller.principal.tenant;
    engine_.jobs().watch(tenant, request->job(), [stream](const v1::JobState& state) {
      const bool goes_on = stream->push(state);
      if (goes_on && state.phase() >= v1::JOB_PHASE_DONE) stream->close(grpc::Status::OK);
      return goes_on;
    });
  } catch (...) {
    stream->close(status_of(current_error()));
  }
  return stream.get();
}

grpc::ServerUnaryReactor* JobRpc::Result(grpc::CallbackServerContext* context,
                                         const v1::ResultRequest* request,
                                         v1::RunResponse* response) {
  return UnaryCall<v1::RunResponse>::start(context, gate_, response, [&](const auto& call) {
    // The job is kept: the end of the daemon waits for what is under way, not for who waits for it.
    call->hold_up_nothing();
    engine_.jobs().result(call->call()->tenant(), *request, [call](auto outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, v1::RunResponse& result) { reply.Swap(&result); });
    });
  });
}

grpc::ServerUnaryReactor* JobRpc::Cancel(grpc::CallbackServerContext* context,
                                         const v1::CancelRequest* request,
                                         v1::CancelResponse* response) {
  return UnaryCall<v1::CancelResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.jobs().cancel(call->call()->tenant(), request->job(), [call](auto outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, v1::JobState& state) { reply.mutable_state()->Swap(&state); });
    });
  });
}

grpc::ServerUnaryReactor* JobRpc::List(grpc::CallbackServerContext* context, const v1::ListRequest*,
                                       v1::ListResponse* response) {
  return UnaryCall<v1::ListResponse>::start(context, gate_, response, [&](const auto& call) {
    call->answer([&](auto& reply) {
      for (const v1::JobState& state : engine_.jobs().list(call->call()->tenant()))
        *reply.add_jobs() = state;
    });
  });
}

}  // namespace kiln::server
