// An upload that outlives its connection: begun again under its name, it says how much is here, and
// goes on from there. Sent in chunks from where the array lies.
//
//   begin U  ->  0;  send 0..20 MiB, the connection breaks;  begin U  ->  20 MiB;  send the rest
#include "client/cpp/upload_by_name.h"

#include <algorithm>
#include <memory>

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <openssl/sha.h>

#include "client/cpp/random_id.h"
#include "client/cpp/status_border.h"
#include "client/cpp/transfer.h"
#include "kiln/v1/uploads.grpc.pb.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

static_assert(int{v1::UploadPart::kChunkFieldNumber} == int{v1::UploadRequest::kChunkFieldNumber},
              "chunk_of writes both");

std::string digest_of(const Array& array) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(array.bytes().data()), array.bytes().size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

/// The contents from the offset on that `state` has.
grpc::Status send_rest(Link& link, grpc::ClientContext& context, const std::string& upload,
                       const Array& array, v1::UploadState& state) {
  const grpc::internal::RpcMethod method("/kiln.v1.UploadService/Send",
                                         grpc::internal::RpcMethod::CLIENT_STREAMING);
  v1::UploadState sent;
  const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(&link.channel(), method,
                                                                    &context, &sent));
  v1::UploadPart first;
  first.mutable_rest()->set_upload(upload);
  first.mutable_rest()->set_offset(state.offset());
  bool open = writer->Write(frame_of(first));
  const std::size_t bytes = array.bytes().size();
  for (std::size_t at = state.offset(); open && at < bytes; at += kChunk)
    open = writer->Write(chunk_of(array, at, std::min(kChunk, bytes - at)));
  // A refused write means that the service has answered already: Finish says what.
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  state.Swap(&sent);
  return status;
}

}  // namespace

std::optional<std::string> upload_by_name(Link& link, v1::TensorHeader header, const Array& array,
                                          bool by_digest, const CallControl& control) {
  v1::UploadService::Stub stub(std::shared_ptr<grpc::ChannelInterface>(
      std::shared_ptr<grpc::ChannelInterface>(), &link.channel()));  // the link's own
  v1::BeginUploadRequest request;
  request.set_upload(random_id());
  if (by_digest) request.set_sha256(digest_of(array));
  const bool has_session = !header.session().empty();
  v1::UploadState state;
  bool is_known = true;
  link.retry(control, [&](grpc::ClientContext& sending) -> grpc::Status {
    // A session often breaks with the connection, and its tensors would go with it.
    if (has_session) header.set_session(link.session());
    *request.mutable_header() = header;
    grpc::Status status = link.run_once(control, [&](grpc::ClientContext& context) {
      return stub.Begin(&context, request, &state);
    });
    is_known = status.error_code() != grpc::StatusCode::UNIMPLEMENTED;
    if (!is_known) return grpc::Status::OK;
    if (status.ok() && state.tensor().empty())
      status = send_rest(link, sending, request.upload(), array, state);
    const bool has_lost_session =
        status.ok() ? has_session && link.session_if_open() != header.session()
                    : failed_call(status, link.address()).error.reason == "SESSION";
    if (!has_lost_session) return status;
    return {grpc::StatusCode::UNAVAILABLE, "the session has ended meanwhile"};
  });
  if (!is_known) return std::nullopt;
  return state.tensor();
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
