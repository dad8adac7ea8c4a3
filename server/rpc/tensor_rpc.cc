// Tensors on the wire: a header, then chunks, in both directions. One chunk is under way at a time:
// what a slow client holds up is one chunk, not a queue of them.
#include "server/rpc/tensor_rpc.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "server/rpc/tensor_frames.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

namespace {

// Well under gRPC's limit of 4 MiB a message.
constexpr int64_t kChunkBytes = int64_t{1} << 20;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

/// A tensor on its way here: made by a header, filled in order, complete once all is here.
class Arrival {
 public:
  Arrival(Engine& engine, const v1::TensorHeader& header)
      : engine_(engine), session_(header.session()) {
    if (header.into().empty()) {
      tensor_ = engine_.prepare_tensor(header);
      if (header.empty()) filled_ = tensor_.bytes;
      return;
    }
    tensor_ = *engine_.tensors().find(header.into());
    const std::vector<int64_t> shape(header.shape().begin(), header.shape().end());
    if (static_cast<int>(tensor_.type) != header.type() || tensor_.shape != shape) {
      fail(
          ErrorKind::InvalidArgument, "UPLOAD_SHAPE",
          "the tensor to overwrite is {} {}, but the upload is {} {}", tensor_.type,
          shape_text(tensor_.shape),
          dtype_from_number(header.type()) ? name_of(*dtype_from_number(header.type())) : "unknown",
          shape_text(shape));
    }
  }

  /// Where the next so many bytes are to be written.
  uint8_t* take(int64_t bytes) {
    if (bytes > tensor_.bytes - filled_) {
      fail(ErrorKind::InvalidArgument, "UPLOAD_BYTES",
           "the upload has more than the {} bytes that its shape {} needs", tensor_.bytes,
           shape_text(tensor_.shape));
    }
    const int64_t offset = filled_;
    filled_ += bytes;
    engine_.arenas().use(*tensor_.slice, offset, bytes);
    return tensor_.slice->data() + offset;
  }

  /// The id. An upload that overwrites a tensor keeps its own.
  std::string complete() {
    if (filled_ != tensor_.bytes) {
      fail(ErrorKind::InvalidArgument, "UPLOAD_BYTES",
           "the upload has {} bytes, but its shape {} needs {}", filled_, shape_text(tensor_.shape),
           tensor_.bytes);
    }
    // A tensor of a session that has ended meanwhile would never be freed.
    engine_.sessions().require(session_);
    engine_.counters().uploads.fetch_add(1);
    if (tensor_.id.empty()) tensor_.id = engine_.tensors().add(std::move(tensor_))->id;
    return tensor_.id;
  }

 private:
  Engine& engine_;
  const std::string session_;
  Tensor tensor_;
  int64_t filled_ = 0;
};

/// Takes a header, then chunks into the tensor's memory. The tensor exists once all are here.
class UploadCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  UploadCall(Engine& engine, grpc::ByteBuffer* response) : engine_(engine), response_(response) {}

  void begin(grpc::CallbackServerContext* context, Gate& gate) {
    try {
      pass_ = gate.enter(*context);
    } catch (...) {
      end(status_of(current_error()));
      return;
    }
    transfer_ = engine_.uploads().enter([this] {
      end(status_of(Error(ErrorKind::DeadlineExceeded, "UPLOAD_IDLE",
                          "the upload was ended, since nothing came for a while")));
    });
    StartRead(&part_);
  }

  void OnReadDone(bool ok) override {
    if (ended_.load()) return;
    try {
      if (!ok) {
        complete();
        return;
      }
      transfer_->touch();
      take(part_);
    } catch (...) {
      end(status_of(current_error()));
      return;
    }
    StartRead(&part_);
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override {
    if (transfer_) transfer_->leave();
    delete this;
  }

 private:
  void take(const grpc::ByteBuffer& part) {
    if (const std::optional<ReceivedChunk> chunk = ReceivedChunk::in(part)) {
      chunk->copy_to(started().take(chunk->bytes()));
      return;
    }
    v1::UploadRequest request;
    if (!read_frame(part, request)) {
      fail(ErrorKind::InvalidArgument, "UPLOAD_MESSAGE", "the upload has a message that is none");
    }
    if (request.has_header()) {
      if (arrival_) fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload has one header");
      arrival_.emplace(engine_, request.header());
      return;
    }
    const std::string& chunk = request.chunk();
    uint8_t* const place = started().take(static_cast<int64_t>(chunk.size()));
    std::memcpy(place, chunk.data(), chunk.size());
  }

  Arrival& started() {
    if (!arrival_)
      fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload starts with a header");
    return *arrival_;
  }

  void complete() {
    v1::UploadResponse response;
    response.set_tensor(started().complete());
    if (ended_.exchange(true)) return;
    *response_ = frame_of(response);
    Finish(grpc::Status::OK);
  }

  void end(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  Engine& engine_;
  grpc::ByteBuffer* const response_;
  grpc::ByteBuffer part_;
  std::optional<Arrival> arrival_;
  std::atomic<bool> ended_{false};
  Gate::Pass pass_;
  std::shared_ptr<IdleTransfers::Transfer> transfer_;
};

/// Sends the header, then the contents in chunks.
class DownloadCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  void begin(grpc::CallbackServerContext* context, const grpc::ByteBuffer& message, Engine& engine,
             Gate& gate) {
    try {
      pass_ = gate.enter(*context);
      v1::DownloadRequest request;
      if (!read_frame(message, request)) {
        fail(ErrorKind::InvalidArgument, "DOWNLOAD_MESSAGE", "the request of a download is none");
      }
      tensor_ = engine.tensors().find(request.tensor());
    } catch (...) {
      end(status_of(current_error()));
      return;
    }
    engine.counters().downloads.fetch_add(1);
    v1::DownloadResponse first;
    v1::TensorHeader& header = *first.mutable_header();
    header.set_type(static_cast<v1::DataType>(tensor_->type));
    header.mutable_shape()->Add(tensor_->shape.begin(), tensor_->shape.end());
    header.set_device(tensor_->device);
    part_ = frame_of(first);
    StartWrite(&part_);
  }

  void OnWriteDone(bool ok) override {
    if (ended_.load()) return;
    if (!ok) {
      end(grpc::Status::CANCELLED);
      return;
    }
    const int64_t bytes = std::min(tensor_->bytes - sent_, kChunkBytes);
    if (bytes == 0) {
      end(grpc::Status::OK);
      return;
    }
    part_ = chunk_of(tensor_, sent_, bytes);
    sent_ += bytes;
    StartWrite(&part_);
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void end(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  std::shared_ptr<const Tensor> tensor_;
  int64_t sent_ = 0;
  grpc::ByteBuffer part_;
  std::atomic<bool> ended_{false};
  Gate::Pass pass_;
};

}  // namespace

grpc::ServerUnaryReactor* TensorRpc::Put(grpc::CallbackServerContext* context,
                                         const v1::PutRequest* request,
                                         v1::UploadResponse* response) {
  return UnaryCall<v1::UploadResponse>::start(context, gate_, response, [&](const auto& call) {
    Arrival arrival(engine_, request->header());
    const std::string& data = request->data();
    if (!data.empty()) {
      std::memcpy(arrival.take(static_cast<int64_t>(data.size())), data.data(), data.size());
    }
    const std::string tensor = arrival.complete();
    call->answer([&](auto& reply) { reply.set_tensor(tensor); });
  });
}

grpc::ServerReadReactor<grpc::ByteBuffer>* TensorRpc::Upload(grpc::CallbackServerContext* context,
                                                             grpc::ByteBuffer* response) {
  auto* const call = new UploadCall(engine_, response);  // deletes itself in OnDone
  call->begin(context, gate_);
  return call;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TensorRpc::Download(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  auto* const call = new DownloadCall;  // deletes itself in OnDone
  call->begin(context, *request, engine_, gate_);
  return call;
}

grpc::ServerUnaryReactor* TensorRpc::Free(grpc::CallbackServerContext* context,
                                          const v1::FreeRequest* request,
                                          v1::FreeResponse* response) {
  return UnaryCall<v1::FreeResponse>::start(context, gate_, response, [&](const auto& call) {
    const std::vector<std::string> ids(request->tensors().begin(), request->tensors().end());
    const int freed = engine_.tensors().free(ids);
    call->answer([&](auto& reply) { reply.set_freed(static_cast<uint32_t>(freed)); });
  });
}

}  // namespace kiln::server
