#pragma once

#include "kiln/v1/calls.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class CallsRpc final : public v1::CallService::CallbackService {
 public:
  CallsRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerBidiReactor<v1::CallsRequest, v1::CallsReply>* Calls(
      grpc::CallbackServerContext* context) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
