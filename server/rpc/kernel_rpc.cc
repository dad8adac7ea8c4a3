// Kernels on the wire: each call hands its request to the engine and writes the answer. Parse,
// Print and Differentiate are done here at once, since they need no compiler.
#include "server/rpc/kernel_rpc.h"

#include "compiler/autodiff/differentiate.h"
#include "compiler/language/text/text.h"
#include "compiler/language/wire/decode.h"
#include "server/engine/shape_text.h"
#include "server/rpc/event_stream.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

namespace {

/// From memory, all there is to do is what the daemon does for this request since it `came`.
void write_compiled(const CompileResult& result, Clock::time_point came,
                    v1::CompileResponse& response) {
  const KernelEntry& kernel = *result.kernel;
  response.set_kernel_id(kernel.id);
  response.set_cache(result.level);
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
  const bool is_from_memory = result.level == v1::CACHE_LEVEL_MEMORY;
  response.mutable_timings()->set_compile(is_from_memory ? seconds_between(came, Clock::now())
                                                         : result.seconds);
}

void write_kernels(const v1::ParseRequest& request, v1::ParseResponse& response) {
  for (const language::TextKernel& parsed :
       language::parse_text(request.text(), request.file_name())) {
    v1::KernelText& written = *response.add_kernels();
    *written.mutable_definition() = language::encode(parsed.kernel.definition);
    *written.mutable_source_map() = language::encode(parsed.kernel.names);
    for (const auto& [target, schedule] : parsed.schedules) {
      v1::ScheduleBlock& block = *written.add_schedules();
      block.set_target(target);
      *block.mutable_schedule() = language::encode(schedule);
    }
  }
}

std::string text_of(const v1::KernelText& wire) {
  language::TextKernel kernel{.kernel = language::decode(wire.definition(), wire.source_map())};
  for (const v1::ScheduleBlock& block : wire.schedules()) {
    kernel.schedules.emplace_back(block.target(),
                                  language::decode_schedule(block.schedule(), kernel.kernel));
  }
  return language::print_text(kernel);
}

/// The ids that a request names, which must be those of tensors.
std::vector<language::TensorId> tensors_of(
    const google::protobuf::RepeatedPtrField<v1::TensorId>& wire,
    const language::Definition& definition) {
  std::vector<language::TensorId> tensors;
  for (const v1::TensorId& id : wire) {
    if (id.stage() >= definition.stages.size() ||
        id.output() >= language::output_count(definition.stages[id.stage()])) {
      fail(ErrorKind::InvalidArgument, "MALFORMED",
           "the gradient names output {} of stage {}, which the definition has not", id.output(),
           id.stage());
    }
    tensors.push_back({id.stage(), id.output()});
  }
  return tensors;
}

void write_gradient(const v1::DifferentiateRequest& request, v1::DifferentiateResponse& response) {
  const language::Kernel kernel = language::decode(request.definition(), request.source_map());
  autodiff::GradientRequest gradient = autodiff::whole_request(kernel);
  if (!request.outputs().empty())
    gradient.outputs = tensors_of(request.outputs(), kernel.definition);
  if (!request.inputs().empty()) gradient.inputs = tensors_of(request.inputs(), kernel.definition);
  gradient.leading = request.leading();
  gradient.identity = request.identity();
  const autodiff::Gradient found = autodiff::differentiate(kernel, gradient);
  *response.mutable_definition() = language::encode(found.kernel.definition);
  *response.mutable_source_map() = language::encode(found.kernel.names);
  const auto write = [](const std::vector<language::TensorId>& tensors, auto& to) {
    for (const language::TensorId tensor : tensors) {
      v1::TensorId& id = *to.Add();
      id.set_stage(tensor.stage);
      id.set_output(tensor.output);
    }
  };
  write(found.heads, *response.mutable_heads());
  write(found.gradients, *response.mutable_gradients());
}

}  // namespace

grpc::ServerUnaryReactor* KernelRpc::Compile(grpc::CallbackServerContext* context,
                                             const v1::CompileRequest* request,
                                             v1::CompileResponse* response) {
  const Clock::time_point came = Clock::now();
  return UnaryCall<v1::CompileResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.compile(*request, call->call(), [call, came](Outcome<CompileResult> outcome) {
      end_call(call, std::move(outcome), [came](auto& reply, const CompileResult& result) {
        write_compiled(result, came, reply);
      });
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

grpc::ServerUnaryReactor* KernelRpc::Parse(grpc::CallbackServerContext* context,
                                           const v1::ParseRequest* request,
                                           v1::ParseResponse* response) {
  return UnaryCall<v1::ParseResponse>::start(context, gate_, response, [&](const auto& call) {
    call->answer([&](auto& reply) { write_kernels(*request, reply); });
  });
}

grpc::ServerUnaryReactor* KernelRpc::Print(grpc::CallbackServerContext* context,
                                           const v1::PrintRequest* request,
                                           v1::PrintResponse* response) {
  return UnaryCall<v1::PrintResponse>::start(context, gate_, response, [&](const auto& call) {
    call->answer([&](auto& reply) { reply.set_text(text_of(request->kernel())); });
  });
}

grpc::ServerUnaryReactor* KernelRpc::Differentiate(grpc::CallbackServerContext* context,
                                                   const v1::DifferentiateRequest* request,
                                                   v1::DifferentiateResponse* response) {
  return UnaryCall<v1::DifferentiateResponse>::start(
      context, gate_, response, [&](const auto& call) {
        call->answer([&](auto& reply) { write_gradient(*request, reply); });
      });
}

grpc::ServerUnaryReactor* KernelRpc::Run(grpc::CallbackServerContext* context,
                                         const v1::RunRequest* request, v1::RunResponse* response) {
  const auto begin = [&](const auto& call) {
    engine_.run(*request, call->call(), [call](Outcome<RunResult> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, const RunResult& result) { write_reply(result, reply); });
    });
  };
  return UnaryCall<v1::RunResponse>::start(context, gate_, response, begin, request->session());
}

grpc::ServerWriteReactor<v1::TuneEvent>* KernelRpc::Tune(grpc::CallbackServerContext* context,
                                                         const v1::TuneRequest* request) {
  const auto stream = EventStream<v1::TuneEvent>::make();
  // Filled in once the search is begun; a stream that ends before leaves nothing (0 is no ticket).
  const auto ticket = std::make_shared<uint64_t>(0);
  try {
    Admission admission = gate_.enter(*context);
    stream->keep(std::move(admission.pass), [this, ticket] { engine_.tunes().leave(*ticket); });
    *ticket =
        engine_.tune(*request, admission.caller,
                     {.event = [stream](const v1::TuneEvent& event) { return stream->push(event); },
                      .end = end_of(stream)});
  } catch (...) {
    stream->close(status_of(current_error()));
  }
  return stream.get();
}

}  // namespace kiln::server
