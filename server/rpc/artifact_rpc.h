#pragma once

#include "kiln/v1/artifact.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class ArtifactRpc final : public v1::ArtifactService::CallbackService {
 public:
  ArtifactRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerUnaryReactor* Export(grpc::CallbackServerContext* context,
                                   const v1::ExportRequest* request,
                                   v1::ExportResponse* response) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
