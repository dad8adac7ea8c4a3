#pragma once

#include "kiln/v1/predict.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class PredictionRpc final : public v1::PredictionService::CallbackService {
 public:
  PredictionRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const v1::PredictRequest* request,
                                    v1::PredictResponse* response) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
