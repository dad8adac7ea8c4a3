#pragma once

#include "kiln/v1/program.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class ProgramRpc final : public v1::ProgramService::CallbackService {
 public:
  ProgramRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerUnaryReactor* Parse(grpc::CallbackServerContext* context,
                                  const v1::ParseProgramsRequest* request,
                                  v1::ParseProgramsResponse* response) override;
  grpc::ServerUnaryReactor* Define(grpc::CallbackServerContext* context,
                                   const v1::DefineProgramRequest* request,
                                   v1::DefineProgramResponse* response) override;
  grpc::ServerUnaryReactor* Plan(grpc::CallbackServerContext* context,
                                 const v1::PlanProgramRequest* request,
                                 v1::PlanProgramResponse* response) override;
  grpc::ServerWriteReactor<v1::ProgramEvent>* Run(grpc::CallbackServerContext* context,
                                                  const v1::RunProgramRequest* request) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
