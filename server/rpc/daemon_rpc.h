#pragma once

#include "kiln/v1/service.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/local/local_server.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class DaemonRpc final : public v1::DaemonService::CallbackService {
 public:
  /// `local` may be null: there is no shorter way for local clients.
  DaemonRpc(Engine& engine, Gate& gate, LocalServer* local)
      : engine_(engine), gate_(gate), local_(local) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;
  grpc::ServerWriteReactor<v1::SessionEvent>* Session(grpc::CallbackServerContext* context,
                                                      const v1::SessionRequest* request) override;

 private:
  Engine& engine_;
  Gate& gate_;
  LocalServer* const local_;
};

}  // namespace kiln::server
