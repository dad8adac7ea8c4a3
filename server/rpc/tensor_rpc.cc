// Tensors on the wire: a header, then chunks, in both directions. One or two chunks are under way
// at a time: what a slow client holds up is these, not a queue of them.
#include "server/rpc/tensor_rpc.h"

#include <algorithm>
#include <optional>

#include "server/rpc/incoming_chunks.h"
#include "server/rpc/tensor_arrival.h"
#include "server/rpc/unary_call.h"

namespace kiln::server {

namespace {

// Well under gRPC's limit of 4 MiB a message.
constexpr int64_t kChunkBytes = int64_t{1} << 20;

/// Takes a header, then chunks into the tensor's memory. The tensor exists once all are here.
class UploadCall final : public IncomingChunks {
 public:
  using IncomingChunks::IncomingChunks;

 private:
  void take(const grpc::ByteBuffer& part) override {
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
      arrival_.emplace(engine(), request.header(), caller());
      return;
    }
    started().append(request.chunk());
  }

  grpc::ByteBuffer reply() override {
    v1::UploadResponse response;
    response.set_tensor(started().complete());
    return frame_of(response);
  }

  TensorArrival& started() {
    if (!arrival_)
      fail(ErrorKind::InvalidArgument, "UPLOAD_HEADER", "an upload starts with a header");
    return *arrival_;
  }

  std::optional<TensorArrival> arrival_;
};

/// Sends the header, then the contents in chunks.
class DownloadCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  void begin(grpc::CallbackServerContext* context, const grpc::ByteBuffer& message, Engine& engine,
             Gate& gate) {
    try {
      admission_ = gate.enter(*context);
      v1::DownloadRequest request;
      if (!read_frame(message, request)) {
        fail(ErrorKind::InvalidArgument, "DOWNLOAD_MESSAGE", "the request of a download is none");
      }
      tensor_ = engine.tensors().find(admission_.caller.principal.tenant, request.tensor());
    } catch (...) {
      end(status_of(current_error()));
      return;
    }
    engine.counters().downloads.fetch_add(1);
    engine.counters().downloaded_bytes.fetch_add(tensor_->bytes);
    users_.fetch_add(1);
    engine.bring_home(*tensor_, [this](const Outcome<std::monostate>& outcome) {
      if (const Error* error = std::get_if<Error>(&outcome)) {
        end(status_of(*error));
      } else if (!ended_.load()) {
        send_header();
      }
      release();
    });
  }

  void send_header() {
    v1::DownloadResponse first;
    write_header(*tensor_, *first.mutable_header());
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
  void OnDone() override { release(); }

 private:
  void end(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }
  void release() {
    if (users_.fetch_sub(1) == 1) delete this;
  }

  std::atomic<int> users_{1};  // gRPC, and a device that is to bring the contents
  std::shared_ptr<const Tensor> tensor_;
  int64_t sent_ = 0;
  grpc::ByteBuffer part_;
  std::atomic<bool> ended_{false};
  Admission admission_;
};

void write_state(const Holdings::Held& held, Clock::time_point now, v1::TensorState& state) {
  const Tensor& tensor = *held.tensor;
  state.set_tensor(tensor.id);
  state.set_type(static_cast<v1::DataType>(tensor.type));
  state.mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
  state.set_bytes(tensor.bytes);
  state.set_device(tensor.device);
  state.set_session(tensor.session);
  state.set_unused_ms(
      std::chrono::duration_cast<std::chrono::milliseconds>(now - held.used).count());
}

}  // namespace

grpc::ServerUnaryReactor* TensorRpc::Put(grpc::CallbackServerContext* context,
                                         const v1::PutRequest* request,
                                         v1::UploadResponse* response) {
  return UnaryCall<v1::UploadResponse>::start(context, gate_, response, [&](const auto& call) {
    TensorArrival arrival(engine_, request->header(), call->call()->caller());
    arrival.append(request->data());
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
    const int freed = engine_.tensors().free(call->call()->tenant(), ids);
    call->answer([&](auto& reply) { reply.set_freed(static_cast<uint32_t>(freed)); });
  });
}

grpc::ServerUnaryReactor* TensorRpc::Copy(grpc::CallbackServerContext* context,
                                          const v1::CopyRequest* request,
                                          v1::UploadResponse* response) {
  return UnaryCall<v1::UploadResponse>::start(context, gate_, response, [&](const auto& call) {
    engine_.copy(*request, call->call()->caller(), [call](Outcome<std::string> outcome) {
      end_call(call, std::move(outcome),
               [](auto& reply, const std::string& tensor) { reply.set_tensor(tensor); });
    });
  });
}

grpc::ServerUnaryReactor* TensorRpc::ListTensors(grpc::CallbackServerContext* context,
                                                 const v1::ListTensorsRequest* request,
                                                 v1::ListTensorsResponse* response) {
  return UnaryCall<v1::ListTensorsResponse>::start(context, gate_, response, [&](const auto& call) {
    constexpr uint32_t kMost = 10'000;  // a message of a megabyte or two
    const uint32_t limit = request->limit() == 0 ? kMost : std::min(request->limit(), kMost);
    const Holdings held = engine_.tensors().list(call->call()->tenant(), limit);
    const Clock::time_point now = Clock::now();
    call->answer([&](auto& reply) {
      for (const Holdings::Held& each : held.largest)
        write_state(each, now, *reply.add_tensors());
      reply.set_count(held.count);
      reply.set_bytes(held.bytes);
      reply.set_limit_bytes(held.limit_bytes);
    });
  });
}

}  // namespace kiln::server
