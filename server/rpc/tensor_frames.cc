// Chunks of tensors as bytes on the wire, so that they are copied once on their way in, and not at
// all on their way out. A chunk is one field of protobuf's encoding: tag, length, contents.
//
//   UploadRequest{chunk = 1 MiB}  =  12 80 80 40 ...
#include "server/rpc/tensor_frames.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kiln/v1/service.pb.h"

namespace kiln::server {

namespace {

constexpr uint8_t tag_of(int field) {
  constexpr int kLengthDelimited = 2;
  return static_cast<uint8_t>(field << 3 | kLengthDelimited);
}
// A tag and the longest length that a message of gRPC can have.
constexpr size_t kMostPrefix = 6;

/// The first bytes of a message, as many as there are.
size_t read_prefix(const std::vector<grpc::Slice>& slices, std::array<uint8_t, kMostPrefix>& to) {
  size_t count = 0;
  for (const grpc::Slice& slice : slices) {
    const size_t taken = std::min(slice.size(), to.size() - count);
    std::copy_n(slice.begin(), taken, to.begin() + count);
    count += taken;
    if (count == to.size()) break;
  }
  return count;
}

grpc::Slice prefix_of(size_t bytes) {
  std::array<uint8_t, kMostPrefix> prefix{};
  size_t count = 0;
  prefix[count++] = tag_of(v1::DownloadResponse::kChunkFieldNumber);
  for (; bytes >= 0x80; bytes >>= 7)
    prefix[count++] = static_cast<uint8_t>(bytes | 0x80);
  prefix[count++] = static_cast<uint8_t>(bytes);
  return {prefix.data(), count};
}

}  // namespace

std::optional<ReceivedChunk> ReceivedChunk::in(const grpc::ByteBuffer& message) {
  ReceivedChunk chunk;
  if (!message.Dump(&chunk.slices_).ok()) return std::nullopt;
  std::array<uint8_t, kMostPrefix> prefix{};
  const size_t count = read_prefix(chunk.slices_, prefix);
  if (count == 0 || prefix[0] != tag_of(v1::UploadRequest::kChunkFieldNumber)) return std::nullopt;
  uint64_t bytes = 0;
  size_t at = 1;
  for (bool goes_on = true; goes_on; ++at) {
    if (at >= count) return std::nullopt;
    bytes |= static_cast<uint64_t>(prefix[at] & 0x7F) << (7 * (at - 1));
    goes_on = (prefix[at] & 0x80) != 0;
  }
  // Anything behind it would be another field.
  if (message.Length() != at + bytes) return std::nullopt;
  chunk.skipped_ = at;
  chunk.bytes_ = static_cast<int64_t>(bytes);
  return chunk;
}

void ReceivedChunk::copy_to(uint8_t* place) const {
  size_t skipped = skipped_;
  for (const grpc::Slice& slice : slices_) {
    const size_t left_out = std::min(skipped, slice.size());
    skipped -= left_out;
    if (slice.size() == left_out) continue;
    std::memcpy(place, slice.begin() + left_out, slice.size() - left_out);
    place += slice.size() - left_out;
  }
}

grpc::ByteBuffer chunk_of(const std::shared_ptr<const Tensor>& tensor, int64_t offset,
                          int64_t bytes) {
  using Owner = std::shared_ptr<const Tensor>;
  const auto let_go = [](void* owner) { delete static_cast<Owner*>(owner); };
  auto owner = std::make_unique<Owner>(tensor);
  const std::array<grpc::Slice, 2> parts = {
      prefix_of(static_cast<size_t>(bytes)),
      grpc::Slice(tensor->slice->data() + offset, static_cast<size_t>(bytes), let_go,
                  owner.release())};
  return {parts.data(), parts.size()};
}

}  // namespace kiln::server
