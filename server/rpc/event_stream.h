#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include <grpcpp/support/server_callback.h>

#include "server/rpc/gate.h"
#include "server/rpc/status.h"

namespace kiln::server {

/// A stream of events that others push, from any thread, while its caller listens.
template <typename Event>
class EventStream final : public grpc::ServerWriteReactor<Event> {
 public:
  using Ptr = std::shared_ptr<EventStream>;

  static Ptr make() {
    const Ptr stream = std::make_shared<EventStream>();
    stream->self_ = stream;
    return stream;
  }

  /// Kept until the call is done: its pass, and what is to be done then.
  void keep(std::shared_ptr<void> pass, std::function<void()> at_end = {}) {
    pass_ = std::move(pass);
    at_end_ = std::move(at_end);
  }

  /// False when the caller is gone.
  bool push(Event event) {
    const std::lock_guard lock(mutex_);
    if (finished_ || closing_) return false;
    waiting_.push_back(std::move(event));
    if (!writing_) write_next();
    return true;
  }

  /// Ends the stream once what was pushed is written.
  void close(grpc::Status status) {
    const std::lock_guard lock(mutex_);
    if (finished_ || closing_) return;
    closing_ = true;
    status_ = std::move(status);
    if (!writing_) finish(status_);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (finished_) return;
    if (!ok) {
      finish(grpc::Status::CANCELLED);
    } else if (!waiting_.empty()) {
      write_next();
    } else if (closing_) {
      finish(status_);
    }
  }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    if (!finished_) finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    if (at_end_) at_end_();
    pass_.reset();
    self_.reset();
  }

 private:
  void write_next() {
    writing_ = true;
    event_ = std::move(waiting_.front());
    waiting_.pop_front();
    this->StartWrite(&event_);
  }
  void finish(const grpc::Status& status) {
    finished_ = true;
    this->Finish(status);
  }

  std::mutex mutex_;
  std::deque<Event> waiting_;
  Event event_;
  bool writing_ = false;
  bool closing_ = false;
  bool finished_ = false;
  grpc::Status status_;
  std::shared_ptr<void> pass_;
  std::function<void()> at_end_;
  Ptr self_;
};

/// What ends the stream, with an error or without.
template <typename Event>
std::function<void(const Error*)> end_of(std::shared_ptr<EventStream<Event>> stream) {
  return [stream = std::move(stream)](const Error* error) {
    stream->close(error == nullptr ? grpc::Status::OK : status_of(*error));
  };
}

}  // namespace kiln::server
