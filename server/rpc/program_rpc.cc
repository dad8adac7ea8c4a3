// Programs on the wire. Parse is done here at once, since it needs no compiler. A run that nobody
// follows any more is cancelled.
#include "server/rpc/program_rpc.h"

#include <algorithm>

#include "compiler/language/text/text.h"
#include "server/rpc/event_stream.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

grpc::ServerUnaryReactor* ProgramRpc::Parse(grpc::CallbackServerContext* context,
                                            const v1::ParseProgramsRequest* request,
                                            v1::ParseProgramsResponse* response) {
  return UnaryCall<v1::ParseProgramsResponse>::start(
      context, gate_, response, [&](const auto& call) {
        call->answer([&](auto& reply) {
          for (v1::Program& program :
               language::parse_programs(request->text(), request->file_name()))
            *reply.add_programs() = std::move(program);
        });
      });
}

grpc::ServerUnaryReactor* ProgramRpc::Define(grpc::CallbackServerContext* context,
                                             const v1::DefineProgramRequest* request,
                                             v1::DefineProgramResponse* response) {
  return UnaryCall<v1::DefineProgramResponse>::start(
      context, gate_, response, [&](const auto& call) {
        call->answer(
            [&](auto& reply) { reply.set_program_id(engine_.programs().define(*request)); });
      });
}

grpc::ServerUnaryReactor* ProgramRpc::Plan(grpc::CallbackServerContext* context,
                                           const v1::PlanProgramRequest* request,
                                           v1::PlanProgramResponse* response) {
  return UnaryCall<v1::PlanProgramResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.programs().plan(*request, call->call(), [call](auto outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, v1::PlanProgramResponse& found) { reply.Swap(&found); });
    });
  });
}

grpc::ServerWriteReactor<v1::ProgramEvent>* ProgramRpc::Run(grpc::CallbackServerContext* context,
                                                            const v1::RunProgramRequest* request) {
  const auto stream = EventStream<v1::ProgramEvent>::make();
  try {
    Admission admission = gate_.enter(*context);
    Caller caller = of_session(std::move(admission.caller), request->session());
    caller.deadline = std::min(caller.deadline, deadline_after(request->timeout()));
    const auto call = std::make_shared<Call>(std::move(caller));
    stream->keep(std::move(admission.pass), [call] { call->cancel(); });
    engine_.programs().run(
        *request, call,
        {.event = [stream](const v1::ProgramEvent& event) { return stream->push(event); },
         .end = end_of(stream)});
  } catch (...) {
    stream->close(status_of(current_error()));
  }
  return stream.get();
}

}  // namespace kiln::server
