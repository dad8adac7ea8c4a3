#include "server/rpc/kernel_rpc.h"

#include "server/engine/shape_text.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

namespace {

void write_compiled(const CompileResult& result, v1::CompileResponse& response) {
  const KernelEntry& kernel = *result.kernel;
  response.set_kernel_id(kernel.id);
  response.set_cache(result.level);
  response.mutable_timings()->set_compile(result.seconds);
  response.mutable_timings()->set_cache(result.level);
  for (size_t i = 0; i < kernel.names.parameters.size(); ++i) {
    const Parameter& parameter = kernel.artifact().parameters[i];
    v1::Parameter& written = *response.add_parameters();
    written.set_name(kernel.names.parameters[i]);
    written.set_type(static_cast<v1::DataType>(parameter.type));
    written.set_output(parameter.is_output);
    for (const SizeExpr& extent : parameter.shape) {
      written.add_shape(text_of(extent, kernel.names.sizes));
    }
  }
}

}  // namespace

grpc::ServerUnaryReactor* KernelRpc::Compile(grpc::CallbackServerContext* context,
                                             const v1::CompileRequest* request,
                                             v1::CompileResponse* response) {
  return UnaryCall<v1::CompileResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.compile(*request, call->call(), [call](Outcome<CompileResult> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, const CompileResult& result) { write_compiled(result, reply); });
    });
  });
}

grpc::ServerUnaryReactor* KernelRpc::Lower(grpc::CallbackServerContext* context,
                                           const v1::LowerRequest* request,
                                           v1::LowerResponse* response) {
  return UnaryCall<v1::LowerResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.lower(*request, call->call(), [call](Outcome<std::string> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, std::string& text) { reply.set_text(std::move(text)); });
    });
  });
}

grpc::ServerUnaryReactor* KernelRpc::Inspect(grpc::CallbackServerContext* context,
                                             const v1::InspectRequest* request,
                                             v1::InspectResponse* response) {
  return UnaryCall<v1::InspectResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.inspect(*request, call->call(), [call](Outcome<v1::InspectResponse> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, v1::InspectResponse& found) { reply.Swap(&found); });
    });
  });
}

grpc::ServerUnaryReactor* KernelRpc::Run(grpc::CallbackServerContext* context,
                                         const v1::RunRequest* request, v1::RunResponse* response) {
  return UnaryCall<v1::RunResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.run(*request, call->call(), [call](Outcome<RunResult> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, const RunResult& result) { write_reply(result, reply); });
    });
  });
}

}  // namespace kiln::server
