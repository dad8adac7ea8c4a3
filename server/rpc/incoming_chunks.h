#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/engine/engine.h"
#include "server/rpc/gate.h"
#include "server/rpc/status.h"
#include "server/rpc/tensor_frames.h"

namespace kiln::server {

/// A stream of messages with the contents of a tensor, of which one is taken while the next is on
/// its way. It ends with an error when it is silent for too long. Deletes itself.
class IncomingChunks : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  IncomingChunks(Engine& engine, grpc::ByteBuffer* response)
      : engine_(engine), response_(response) {}

  void begin(grpc::CallbackServerContext* context, Gate& gate) {
    try {
      admission_ = gate.enter(*context);
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
    // The next message is on its way while this one is taken, and may wait here for its turn.
    const std::lock_guard lock(mutex_);
    if (ended_.load()) return;
    try {
      if (!ok) return complete();
      grpc::ByteBuffer part;
      part.Swap(&part_);
      StartRead(&part_);
      transfer_->touch();
      take(part);
    } catch (...) {
      end(status_of(current_error()));
    }
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override {
    if (transfer_) transfer_->leave();
    delete this;
  }

 protected:
  Engine& engine() const { return engine_; }
  const Caller& caller() const { return admission_.caller; }

 private:
  // Both may throw what ends the call.
  virtual void take(const grpc::ByteBuffer& part) = 0;
  /// The reply, once no more will come.
  virtual grpc::ByteBuffer reply() = 0;

  void complete() {
    const grpc::ByteBuffer whole = reply();
    if (ended_.exchange(true)) return;
    *response_ = whole;
    Finish(grpc::Status::OK);
  }

  void end(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  Engine& engine_;
  grpc::ByteBuffer* const response_;
  std::mutex mutex_;  // of who takes a message
  grpc::ByteBuffer part_;
  std::atomic<bool> ended_{false};
  Admission admission_;
  std::shared_ptr<IdleTransfers::Transfer> transfer_;
};

}  // namespace kiln::server
