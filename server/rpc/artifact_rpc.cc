// Compiled kernels as files.
#include "server/rpc/artifact_rpc.h"

#include "runtime/core/error.h"
#include "runtime/core/exported_kernel.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

grpc::ServerUnaryReactor* ArtifactRpc::Export(grpc::CallbackServerContext* context,
                                              const v1::ExportRequest* request,
                                              v1::ExportResponse* response) {
  return UnaryCall<v1::ExportResponse>::start(context, gate_, response, [&](const auto& call) {
    call->answer([&](auto& reply) {
      const std::shared_ptr<const KernelEntry> kernel = engine_.get_kernel(request->kernel_id());
      reply.set_file(serialize(ExportedKernel{kernel->artifact(), kernel->names}));
    });
  });
}

}  // namespace kiln::server
