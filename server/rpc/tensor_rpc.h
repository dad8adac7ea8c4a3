#pragma once

#include "kiln/v1/service.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"

namespace kiln::server {

class TensorRpc final : public v1::TensorService::CallbackService {
 public:
  TensorRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}

  grpc::ServerReadReactor<v1::UploadRequest>* Upload(grpc::CallbackServerContext* context,
                                                     v1::UploadResponse* response) override;
  grpc::ServerWriteReactor<v1::DownloadResponse>* Download(
      grpc::CallbackServerContext* context, const v1::DownloadRequest* request) override;
  grpc::ServerUnaryReactor* Free(grpc::CallbackServerContext* context,
                                 const v1::FreeRequest* request,
                                 v1::FreeResponse* response) override;

 private:
  Engine& engine_;
  Gate& gate_;
};

}  // namespace kiln::server
