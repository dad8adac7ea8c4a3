// Tensors to the service and back in chunks. A transfer that broke off begins anew, whole: what
// arrived of an upload is no tensor yet, and a download overwrites what it wrote.
#include "client/cpp/transfer.h"

#include <algorithm>
#include <cstring>

#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

// Well under gRPC's limit of 4 MiB a message.
constexpr std::size_t kChunk = 1 << 20;

grpc::Status write_all(grpc::ClientWriter<v1::UploadRequest>& writer,
                       const v1::TensorHeader& header, const Array& array) {
  v1::UploadRequest request;
  *request.mutable_header() = header;
  bool open = writer.Write(request);
  const std::span<const std::byte> bytes = array.bytes();
  for (std::size_t at = 0; open && at < bytes.size(); at += kChunk) {
    const std::size_t size = std::min(kChunk, bytes.size() - at);
    request.set_chunk(bytes.data() + at, size);
    open = writer.Write(request);
  }
  // A refused write means that the service has answered already: Finish says what.
  writer.WritesDone();
  return writer.Finish();
}

/// Appends what the stream brings; false when it is not what the array has room for.
bool read_all(grpc::ClientReader<v1::DownloadResponse>& reader, const Array& array) {
  std::size_t filled = 0;
  v1::DownloadResponse response;
  while (reader.Read(&response)) {
    if (!response.has_chunk()) continue;
    const std::string& chunk = response.chunk();
    if (chunk.size() > array.bytes().size() - filled) return false;
    std::memcpy(array.bytes().data() + filled, chunk.data(), chunk.size());
    filled += chunk.size();
  }
  return filled == array.bytes().size();
}

}  // namespace

std::shared_ptr<const RemoteState> upload(const std::shared_ptr<Link>& link, const Array& array,
                                          const std::string& device, const std::string& session,
                                          const CallControl& control) {
  v1::TensorHeader header;
  header.set_type(static_cast<v1::DataType>(array.dtype()));
  for (const std::int64_t size : array.shape())
    header.add_shape(size);
  header.set_device(device);
  header.set_session(session);
  v1::UploadResponse response;
  link->retry(control, [&](grpc::ClientContext& context) {
    const auto writer = link->tensors().Upload(&context, &response);
    return write_all(*writer, header, array);
  });
  return std::make_shared<const RemoteState>(link, response.tensor(), array.dtype(), array.shape(),
                                             !session.empty());
}

void download(Link& link, const std::string& tensor, const Array& array,
              const CallControl& control) {
  v1::DownloadRequest request;
  request.set_tensor(tensor);
  bool whole = false;
  link.retry(control, [&](grpc::ClientContext& context) {
    const auto reader = link.tensors().Download(&context, request);
    whole = read_all(*reader, array);
    if (!whole) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return whole                                                               ? status
           : status.ok() || status.error_code() == grpc::StatusCode::CANCELLED ? grpc::Status::OK
                                                                               : status;
  });
  if (!whole) {
    fail(ErrorKind::Internal, "DOWNLOAD",
         "the service sent another number of bytes for {} than the {} "
         "of its shape",
         tensor, array.bytes().size());
  }
}

}  // namespace detail

DType RemoteArray::dtype() const { return state_->type; }
const std::vector<std::int64_t>& RemoteArray::shape() const { return state_->shape; }
const std::string& RemoteArray::id() const { return state_->id; }

Array RemoteArray::download() const {
  Array array(state_->shape, state_->type, SourceLocation::none());
  detail::download(*state_->link, state_->id, array, {});
  return array;
}

}  // namespace client
}  // namespace kiln
