#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "server/tensors/tensor_store.h"

namespace kiln::server {

/// The contents of a v1.UploadRequest that is a chunk, in the pieces in which gRPC received them.
class ReceivedChunk {
 public:
  /// Nothing for any other message.
  static std::optional<ReceivedChunk> in(const grpc::ByteBuffer& message);

  int64_t bytes() const { return bytes_; }
  void copy_to(uint8_t* place) const;

 private:
  std::vector<grpc::Slice> slices_;
  size_t skipped_ = 0;  // tag and length
  int64_t bytes_ = 0;
};

/// A v1.DownloadResponse with this part of the tensor, which is sent from where it lies; the tensor
/// lives until it is sent.
grpc::ByteBuffer chunk_of(const std::shared_ptr<const Tensor>& tensor, int64_t offset,
                          int64_t bytes);

template <typename Message>
grpc::ByteBuffer frame_of(const Message& message) {
  grpc::ByteBuffer frame;
  bool own = false;
  grpc::SerializationTraits<Message>::Serialize(message, &frame, &own);
  return frame;
}

/// False when `frame` is no such message.
template <typename Message>
bool read_frame(const grpc::ByteBuffer& frame, Message& message) {
  grpc::ByteBuffer copy = frame;  // of references
  return grpc::SerializationTraits<Message>::Deserialize(&copy, &message).ok();
}

}  // namespace kiln::server
