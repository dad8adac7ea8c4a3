// Tensors on the wire: a header, then chunks, in both directions. One chunk is under way at a time:
// what a slow client holds up is one chunk, not a queue of them.
#include "server/rpc/tensor_rpc.h"

#include <algorithm>
#include <cstring>

#include "server/rpc/unary_call.h"

namespace kiln::server {

namespace {

// Well under gRPC's limit of 4 MiB a message.
constexpr int64_t kChunkBytes = int64_t{1} << 20;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

/// Takes a header, then chunks into the tensor's memory. The tensor exists once all are here.
class UploadCall final : public grpc::ServerReadReactor<v1::UploadRequest> {
 public:
  UploadCall(Engine& engine, v1::UploadResponse* response) : engine_(engine), response_(response) {}

  void begin(grpc::CallbackServerContext* context, Gate& gate) {
    try {
      pass_ = gate.enter(*context);
    } catch (...) {
      end(status_of(current_error()));
      return;
    }
    StartRead(&part_);
  }

  void OnReadDone(bool ok) override {
    if (ended_.load()) return;
    try {
      if (!ok) {
        complete();
        return;
      }
      if (part_.has_header()) {
        take_header(part_.header());
      } else {
        take_chunk(part_.chunk());
      }
    } catch (...) {
      end(status_of(current_error()));
      return;
    }
    StartRead(&part_);
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void take_header(const v1::TensorHeader& header) {
    if (started_) fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload has one header");
    started_ = true;
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

  void take_chunk(const std::string& chunk) {
    if (!started_)
      fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload starts with a header");
    const auto bytes = static_cast<int64_t>(chunk.size());
    if (bytes > tensor_.bytes - filled_) {
      fail(ErrorKind::InvalidArgument, "UPLOAD_BYTES",
           "the upload has more than the {} bytes that its shape {} needs", tensor_.bytes,
           shape_text(tensor_.shape));
    }
    std::memcpy(tensor_.slice->data() + filled_, chunk.data(), chunk.size());
    filled_ += bytes;
  }

  void complete() {
    if (!started_)
      fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload starts with a header");
    if (filled_ != tensor_.bytes) {
      fail(ErrorKind::InvalidArgument, "UPLOAD_BYTES",
           "the upload has {} bytes, but its shape {} needs {}", filled_, shape_text(tensor_.shape),
           tensor_.bytes);
    }
    if (ended_.exchange(true)) return;
    engine_.counters().uploads.fetch_add(1);
    // An upload that overwrites a tensor keeps its id.
    if (tensor_.id.empty()) tensor_.id = engine_.tensors().add(std::move(tensor_))->id;
    response_->set_tensor(tensor_.id);
    Finish(grpc::Status::OK);
  }

  void end(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  Engine& engine_;
  v1::UploadResponse* const response_;
  v1::UploadRequest part_;
  bool started_ = false;
  Tensor tensor_;
  int64_t filled_ = 0;
  std::atomic<bool> ended_{false};
  Gate::Pass pass_;
};

/// Sends the header, then the contents in chunks.
class DownloadCall final : public grpc::ServerWriteReactor<v1::DownloadResponse> {
 public:
  void begin(grpc::CallbackServerContext* context, const v1::DownloadRequest& request,
             Engine& engine, Gate& gate) {
    try {
      pass_ = gate.enter(*context);
      tensor_ = engine.tensors().find(request.tensor());
    } catch (...) {
      end(status_of(current_error()));
      return;
    }
    engine.counters().downloads.fetch_add(1);
    v1::TensorHeader& header = *part_.mutable_header();
    header.set_type(static_cast<v1::DataType>(tensor_->type));
    header.mutable_shape()->Add(tensor_->shape.begin(), tensor_->shape.end());
    header.set_device(tensor_->device);
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
    part_.set_chunk(tensor_->slice->data() + sent_, static_cast<size_t>(bytes));
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
  v1::DownloadResponse part_;
  std::atomic<bool> ended_{false};
  Gate::Pass pass_;
};

}  // namespace

grpc::ServerReadReactor<v1::UploadRequest>* TensorRpc::Upload(grpc::CallbackServerContext* context,
                                                              v1::UploadResponse* response) {
  auto* const call = new UploadCall(engine_, response);  // deletes itself in OnDone
  call->begin(context, gate_);
  return call;
}

grpc::ServerWriteReactor<v1::DownloadResponse>* TensorRpc::Download(
    grpc::CallbackServerContext* context, const v1::DownloadRequest* request) {
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
