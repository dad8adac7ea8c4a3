#pragma once

#include "kiln/v1/service.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class KernelRpc final : public v1::KernelService::CallbackService {
 public:
  KernelRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerUnaryReactor* Compile(grpc::CallbackServerContext* context,
                                    const v1::CompileRequest* request,
                                    v1::CompileResponse* response) override;
  grpc::ServerUnaryReactor* Lower(grpc::CallbackServerContext* context,
                                  const v1::LowerRequest* request,
                                  v1::LowerResponse* response) override;
  grpc::ServerUnaryReactor* Inspect(grpc::CallbackServerContext* context,
                                    const v1::InspectRequest* request,
                                    v1::InspectResponse* response) override;
  grpc::ServerUnaryReactor* Parse(grpc::CallbackServerContext* context,
                                  const v1::ParseRequest* request,
                                  v1::ParseResponse* response) override;
  grpc::ServerUnaryReactor* Print(grpc::CallbackServerContext* context,
                                  const v1::PrintRequest* request,
                                  v1::PrintResponse* response) override;
  grpc::ServerUnaryReactor* Differentiate(grpc::CallbackServerContext* context,
                                          const v1::DifferentiateRequest* request,
                                          v1::DifferentiateResponse* response) override;
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, const v1::RunRequest* request,
                                v1::RunResponse* response) override;
  grpc::ServerWriteReactor<v1::TuneEvent>* Tune(grpc::CallbackServerContext* context,
                                                const v1::TuneRequest* request) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
