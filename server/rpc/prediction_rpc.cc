// Predictions on the wire.
#include "server/rpc/prediction_rpc.h"

#include "server/rpc/unary_call.h"

namespace kiln::server {

grpc::ServerUnaryReactor* PredictionRpc::Predict(grpc::CallbackServerContext* context,
                                                 const v1::PredictRequest* request,
                                                 v1::PredictResponse* response) {
  return UnaryCall<v1::PredictResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.predict(*request, call->call(), [call](Outcome<v1::PredictResponse> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, v1::PredictResponse& predicted) { reply = std::move(predicted); });
    });
  });
}

}  // namespace kiln::server
