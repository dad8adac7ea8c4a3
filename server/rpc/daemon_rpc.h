#pragma once

#include "kiln/v1/service.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class DaemonRpc final : public v1::DaemonService::CallbackService {
 public:
  DaemonRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;
  grpc::ServerWriteReactor<v1::SessionEvent>* Session(grpc::CallbackServerContext* context,
                                                      const v1::SessionRequest* request) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
