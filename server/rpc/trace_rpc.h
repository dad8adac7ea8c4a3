#pragma once

#include "kiln/v1/trace.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class TraceRpc final : public v1::TraceService::CallbackService {
 public:
  TraceRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerUnaryReactor* Spans(grpc::CallbackServerContext* context,
                                  const v1::SpansRequest* request,
                                  v1::SpansResponse* response) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
