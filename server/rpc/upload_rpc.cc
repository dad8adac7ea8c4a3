// Uploads by name on the wire: what is here of one, and a stream with the rest.
#include "server/rpc/upload_rpc.h"

#include <optional>

#include "server/rpc/incoming_chunks.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

namespace {

/// Takes the name of an upload, then chunks of it. What came stays when this breaks.
class SendCall final : public IncomingChunks {
 public:
  SendCall(Engine& engine, ResumableUploads& uploads, grpc::ByteBuffer* response)
      : IncomingChunks(engine, response), uploads_(uploads) {}

 private:
  static_assert(int{v1::UploadPart::kChunkFieldNumber} == int{v1::UploadRequest::kChunkFieldNumber},
                "ReceivedChunk reads both");

  void take(const grpc::ByteBuffer& part) override {
    if (const std::optional<ReceivedChunk> chunk = ReceivedChunk::in(part)) {
      ResumableUpload& upload = started();
      upload.append(sender_, *chunk);
      upload.transfer->touch();
      return;
    }
    v1::UploadPart first;
    if (!read_frame(part, first) || !first.has_rest()) {
      fail(ErrorKind::InvalidArgument, "UPLOAD_MESSAGE", "the upload has a message that is none");
    }
    if (upload_) fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload has one header");
    name_ = first.rest().upload();
    upload_ = uploads_.find(caller().principal.tenant, name_);
    sender_ = upload_->take_over(first.rest().offset());
  }

  grpc::ByteBuffer reply() override {
    started();
    v1::UploadState state;
    state.set_tensor(uploads_.complete(caller().principal.tenant, name_, upload_, sender_));
    return frame_of(state);
  }

  ResumableUpload& started() const {
    if (!upload_)
      fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload starts with a header");
    return *upload_;
  }

  ResumableUploads& uploads_;
  std::string name_;
  std::shared_ptr<ResumableUpload> upload_;
  uint64_t sender_ = 0;
};

}  // namespace

grpc::ServerUnaryReactor* UploadRpc::Begin(grpc::CallbackServerContext* context,
                                           const v1::BeginUploadRequest* request,
                                           v1::UploadState* response) {
  return UnaryCall<v1::UploadState>::start(context, gate_, response, [&](const auto& call) {
    const v1::UploadState state = uploads_.begin(*request, call->call()->caller());
    call->answer([&](auto& reply) { reply = state; });
  });
}

grpc::ServerReadReactor<grpc::ByteBuffer>* UploadRpc::Send(grpc::CallbackServerContext* context,
                                                           grpc::ByteBuffer* response) {
  auto* const call = new SendCall(engine_, uploads_, response);  // deletes itself in OnDone
  call->begin(context, gate_);
  return call;
}

}  // namespace kiln::server
