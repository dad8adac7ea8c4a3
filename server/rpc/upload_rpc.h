#pragma once

#include "kiln/v1/uploads.grpc.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/gate.h"
#include "server/rpc/resumable_uploads.h"

namespace kiln::server {

/// Sends see the bytes of messages, to copy contents once.
using RawUploadService =
    v1::UploadService::WithRawCallbackMethod_Send<v1::UploadService::CallbackService>;

class UploadRpc final : public RawUploadService {
 public:
  UploadRpc(Engine& engine, Gate& gate) : engine_(engine), gate_(gate), uploads_(engine) {}

  grpc::ServerUnaryReactor* Begin(grpc::CallbackServerContext* context,
                                  const v1::BeginUploadRequest* request,
                                  v1::UploadState* response) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* Send(grpc::CallbackServerContext* context,
                                                  grpc::ByteBuffer* response) override;

 private:
  Engine& engine_;
  Gate& gate_;
  ResumableUploads uploads_;
};

}  // namespace kiln::server
