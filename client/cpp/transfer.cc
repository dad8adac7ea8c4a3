// Tensors to the service and back: as memory where the service is on this host, else in chunks that
// are sent from where they lie. A download that broke off begins anew, whole, and overwrites what
// it wrote; so does an upload to a service of a version that cannot go on with it.
#include "client/cpp/transfer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <grpcpp/impl/codegen/client_callback.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "client/cpp/array_bytes.h"
#include "client/cpp/fail.h"
#include "client/cpp/spare_memory.h"
#include "client/cpp/upload_by_name.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

// Field 2 of both kinds of messages, as bytes: tag, length, contents.
constexpr std::uint8_t kChunkTag = 2 << 3 | 2;
static_assert(v1::UploadRequest::kChunkFieldNumber == 2);
static_assert(v1::DownloadResponse::kChunkFieldNumber == 2);
constexpr std::size_t kMostPrefix = 6;

grpc::Slice prefix_of(std::size_t bytes) {
  std::array<std::uint8_t, kMostPrefix> prefix{kChunkTag};
  std::size_t count = 1;
  for (; bytes >= 0x80; bytes >>= 7)
    prefix[count++] = static_cast<std::uint8_t>(bytes | 0x80);
  prefix[count++] = static_cast<std::uint8_t>(bytes);
  return {prefix.data(), count};
}

/// In one message.
grpc::Status put_once(Link& link, grpc::ClientContext& context, const v1::TensorHeader& header,
                      const Array& array, v1::UploadResponse& response) {
  v1::PutRequest request;
  *request.mutable_header() = header;
  request.set_data(array.bytes().data(), array.bytes().size());
  return link.tensors().Put(&context, request, &response);
}

grpc::Status upload_once(Link& link, grpc::ClientContext& context, const v1::TensorHeader& header,
                         const Array& array, v1::UploadResponse& response) {
  const grpc::internal::RpcMethod method("/kiln.v1.TensorService/Upload",
                                         grpc::internal::RpcMethod::CLIENT_STREAMING);
  const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(&link.channel(), method,
                                                                    &context, &response));
  v1::UploadRequest first;
  *first.mutable_header() = header;
  bool open = writer->Write(frame_of(first));
  const std::size_t bytes = array.bytes().size();
  for (std::size_t at = 0; open && at < bytes; at += kChunk)
    open = writer->Write(chunk_of(array, at, std::min(kChunk, bytes - at)));
  // A refused write means that the service has answered already: Finish says what.
  writer->WritesDone();
  return writer->Finish();
}

/// Where the contents of a message begin that is a chunk; nothing for any other.
std::size_t prefix_size(const std::vector<grpc::Slice>& slices, std::size_t bytes) {
  std::array<std::uint8_t, kMostPrefix> prefix{};
  std::size_t count = 0;
  for (const grpc::Slice& slice : slices) {
    const std::size_t taken = std::min(slice.size(), prefix.size() - count);
    std::copy_n(slice.begin(), taken, prefix.begin() + count);
    count += taken;
  }
  if (count == 0 || prefix[0] != kChunkTag) return 0;
  std::size_t at = 1;
  while (at < count && (prefix[at] & 0x80) != 0)
    ++at;
  return std::min(at + 1, bytes);
}

/// Copies the contents of a message behind what the array has already; false when they do not fit.
bool append(const grpc::ByteBuffer& message, std::span<std::byte> array, std::size_t& filled) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return false;
  std::size_t skipped = prefix_size(slices, message.Length());
  if (skipped == 0) return true;  // the header
  if (message.Length() - skipped > array.size() - filled) return false;
  for (const grpc::Slice& slice : slices) {
    const std::size_t left_out = std::min(skipped, slice.size());
    skipped -= left_out;
    const std::size_t size = slice.size() - left_out;
    if (size == 0) continue;
    std::memcpy(array.data() + filled, slice.begin() + left_out, size);
    filled += size;
  }
  return true;
}

/// False when the stream brings something else than the array has room for.
bool download_once(Link& link, grpc::ClientContext& context, const v1::DownloadRequest& request,
                   const Array& array, grpc::Status& status) {
  const grpc::internal::RpcMethod method("/kiln.v1.TensorService/Download",
                                         grpc::internal::RpcMethod::SERVER_STREAMING);
  const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(&link.channel(), method,
                                                                    &context, request));
  std::size_t filled = 0;
  bool fits = true;
  grpc::ByteBuffer message;
  while (fits && reader->Read(&message))
    fits = append(message, array.bytes(), filled);
  const bool whole = fits && filled == array.bytes().size();
  if (!whole) context.TryCancel();
  status = reader->Finish();
  return whole;
}

grpc::Status put_locally(LocalSocket& local, const v1::TensorHeader& header, const Array& array,
                         v1::UploadResponse& response, const CallControl& control) {
  v1::LocalRequest request;
  *request.mutable_put()->mutable_header() = header;
  LocalAnswer answer;
  grpc::Status status;
  if (array.bytes().size() <= kLocalInline) {
    request.mutable_put()->set_data(array.bytes().data(), array.bytes().size());
    status = local.ask(request, answer, control);
  } else {
    request.mutable_put()->mutable_region();
    const Descriptor memory = sealed_copy(array.bytes());
    const int number = memory.get();
    status = local.ask(request, answer, control, {&number, 1});
  }
  response.Swap(answer.reply.mutable_put());
  return status;
}

[[noreturn]] void fail_size(const std::string& tensor, std::size_t bytes) {
  fail(ErrorKind::Internal, "DOWNLOAD",
       "the service sent another number of bytes for {} than the {} of its shape", tensor, bytes);
}

/// The contents of a tensor by the shorter way, mapped where they came as memory.
grpc::Status map_locally(LocalSocket& local, const std::string& tensor, DType type,
                         const std::vector<std::int64_t>& shape, const std::optional<Array>& into,
                         std::optional<Array>& array, const CallControl& control) {
  v1::LocalRequest request;
  request.mutable_map()->set_tensor(tensor);
  LocalAnswer answer;
  const grpc::Status status = local.ask(request, answer, control);
  if (!status.ok()) return status;
  const v1::LocalContents& contents = answer.reply.contents();
  if (contents.has_region() && contents.region().index() < answer.memory.size()) {
    array = array_in(answer.memory[contents.region().index()], type, shape, into);
    return status;
  }
  array = into ? *into : Array(shape, type, SourceLocation::none());
  if (contents.data().size() != array->bytes().size()) fail_size(tensor, array->bytes().size());
  if (!contents.data().empty()) {
    std::memcpy(array->bytes().data(), contents.data().data(), contents.data().size());
  }
  return status;
}

/// Into the array that is given, or a new one.
Array fetch(Link& link, const std::string& tensor, DType type,
            const std::vector<std::int64_t>& shape, const std::optional<Array>& into,
            const CallControl& control) {
  v1::DownloadRequest request;
  request.set_tensor(tensor);
  std::optional<Array> array;
  bool whole = true;
  link.retry(control, [&](grpc::ClientContext& context) {
    if (const std::shared_ptr<LocalSocket> local = link.local()) {
      return map_locally(*local, tensor, type, shape, into, array, control);
    }
    array = into ? *into : array_to_fill(type, shape);
    grpc::Status status;
    whole = download_once(link, context, request, *array, status);
    const bool ended_here = status.ok() || status.error_code() == grpc::StatusCode::CANCELLED;
    return !whole && ended_here ? grpc::Status::OK : status;
  });
  if (!whole) fail_size(tensor, array->bytes().size());
  return *array;
}

}  // namespace

grpc::ByteBuffer chunk_of(const Array& array, std::size_t at, std::size_t bytes) {
  const auto let_go = [](void* owner) { delete static_cast<Array*>(owner); };
  const std::array<grpc::Slice, 2> parts = {
      prefix_of(bytes), grpc::Slice(array.bytes().data() + at, bytes, let_go, new Array(array))};
  return {parts.data(), parts.size()};
}

grpc::ByteBuffer frame_of(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

std::shared_ptr<const RemoteState> upload(const std::shared_ptr<Link>& link, const Array& array,
                                          const UploadOptions& options, const std::string& session,
                                          const CallControl& control) {
  v1::TensorHeader header;
  header.set_type(static_cast<v1::DataType>(array.dtype()));
  for (const std::int64_t size : array.shape())
    header.add_shape(size);
  header.set_device(options.device);
  header.set_session(session);
  const auto owned = [&](const std::string& tensor) {
    return std::make_shared<const RemoteState>(link, tensor, array.dtype(), array.shape(),
                                               options.device, !session.empty());
  };
  // What has no session outlives this process, and is nothing of a local connection's.
  const bool is_local = !session.empty() && link->local() != nullptr;
  if (!is_local && array.bytes().size() > kChunk) {
    const auto tensor = upload_by_name(*link, header, array, options.by_digest, control);
    if (tensor) return owned(*tensor);
  }
  v1::UploadResponse response;
  link->retry(control, [&](grpc::ClientContext& context) {
    const std::shared_ptr<LocalSocket> local = session.empty() ? nullptr : link->local();
    if (local) return put_locally(*local, header, array, response, control);
    return array.bytes().size() <= kChunk ? put_once(*link, context, header, array, response)
                                          : upload_once(*link, context, header, array, response);
  });
  return owned(response.tensor());
}

Array array_to_fill(DType type, const std::vector<std::int64_t>& shape) {
  return array_over(type, shape, memory_to_fill(bytes_of(type, shape)));
}

Array array_in(const Descriptor& memory, DType type, const std::vector<std::int64_t>& shape,
               const std::optional<Array>& into) {
  const std::size_t bytes = bytes_of(type, shape);
  Array mapped = array_over(type, shape, mapped_memory(memory, bytes));
  if (!into) return mapped;
  std::copy_n(mapped.bytes().data(), std::min(bytes, into->bytes().size()), into->bytes().data());
  return *into;
}

Array download(Link& link, const std::string& tensor, DType type,
               const std::vector<std::int64_t>& shape, const CallControl& control) {
  return fetch(link, tensor, type, shape, {}, control);
}

void download(Link& link, const std::string& tensor, const Array& array,
              const CallControl& control) {
  fetch(link, tensor, array.dtype(), array.shape(), array, control);
}

}  // namespace detail

DType RemoteArray::dtype() const { return state_->type; }
const std::vector<std::int64_t>& RemoteArray::shape() const { return state_->shape; }
const std::string& RemoteArray::id() const { return state_->id; }
const std::string& RemoteArray::device() const { return state_->device; }

Array RemoteArray::download() const {
  return detail::download(*state_->link, state_->id, state_->type, state_->shape, {});
}

RemoteArray RemoteArray::copy_to(const std::string& device, SourceLocation where) const {
  return detail::at_line(where, [&] {
    const std::shared_ptr<detail::Link>& link = state_->link;
    v1::CopyRequest request;
    request.set_tensor(state_->id);
    request.set_device(device);
    request.set_session(link->session());
    v1::UploadResponse response;
    link->call(link->tensors(), &v1::TensorService::Stub::Copy, request, response);
    return RemoteArray(std::make_shared<const detail::RemoteState>(
        link, response.tensor(), state_->type, state_->shape, device));
  });
}

void RemoteArray::copy_to(const RemoteArray& into, SourceLocation where) const {
  detail::at_line(where, [&] {
    v1::CopyRequest request;
    request.set_tensor(state_->id);
    request.set_into(into.id());
    v1::UploadResponse response;
    state_->link->call(state_->link->tensors(), &v1::TensorService::Stub::Copy, request, response);
  });
}

}  // namespace client
}  // namespace kiln
