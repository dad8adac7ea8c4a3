#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <kiln/array.h>

#include "client/cpp/link.h"

namespace kiln {
inline namespace client {
namespace detail {

/// A tensor of the service. Freed with the last handle, unless the service is to forget it by
/// itself.
struct RemoteState {
  RemoteState(std::shared_ptr<Link> link, std::string id, DType type,
              std::vector<std::int64_t> shape, std::string device = {}, bool frees = true)
      : link(std::move(link)),
        id(std::move(id)),
        type(type),
        shape(std::move(shape)),
        device(std::move(device)),
        frees(frees) {}
  RemoteState(const RemoteState&) = delete;
  RemoteState& operator=(const RemoteState&) = delete;
  ~RemoteState() {
    if (frees) link->free_tensor(id, bytes());
  }

  std::size_t bytes() const {
    std::size_t bytes = size_of(type);
    for (const std::int64_t size : shape)
      bytes *= static_cast<std::size_t>(size);
    return bytes;
  }

  const std::shared_ptr<Link> link;
  const std::string id;
  const DType type;
  const std::vector<std::int64_t> shape;
  const std::string device;
  const bool frees;
};

/// Sends the array to a device. `session` owns the tensor; with none, the service frees it when
/// it has not been used for a while.
std::shared_ptr<const RemoteState> upload(const std::shared_ptr<Link>& link, const Array& array,
                                          const UploadOptions& options, const std::string& session,
                                          const CallControl& control);

/// A message with a part of the array, which lives until it is sent: one field of bytes, as chunks
/// of uploads are.
grpc::ByteBuffer chunk_of(const Array& array, std::size_t at, std::size_t bytes);
grpc::ByteBuffer frame_of(const google::protobuf::MessageLite& message);
// Well under gRPC's limit of 4 MiB a message.
constexpr std::size_t kChunk = 1 << 20;

/// Of any contents, for who fills all of it. Throws InvalidArgument SHAPE.
Array array_to_fill(DType type, const std::vector<std::int64_t>& shape);

/// The contents of memory that the service sent: mapped, or copied into the array that is given.
Array array_in(const Descriptor& memory, DType type, const std::vector<std::int64_t>& shape,
               const std::optional<Array>& into);

/// A tensor as a new array.
Array download(Link& link, const std::string& tensor, DType type,
               const std::vector<std::int64_t>& shape, const CallControl& control);

/// Streams a tensor into `array`, whose type and shape must be the tensor's.
void download(Link& link, const std::string& tensor, const Array& array,
              const CallControl& control);

}  // namespace detail
}  // namespace client
}  // namespace kiln
