#include "client/cpp/session_stream.h"

#include <utility>

#include <kiln/connection.h>
#include <unistd.h>

namespace kiln {
inline namespace client {
namespace detail {

void SessionStream::start(v1::DaemonService::Stub& stub, const std::string& token) {
  if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  request_.set_client("kiln-cpp/" + version() + " pid " + std::to_string(getpid()));
  self_ = shared_from_this();
  stub.async()->Session(&context_, &request_, this);
  StartRead(&event_);
  StartCall();
}

grpc::Status SessionStream::wait_for_id(std::string& id) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || !id_.empty(); });
  id = id_;
  return ended_ ? status_ : grpc::Status::OK;
}

std::string SessionStream::id_if_open() const {
  const std::lock_guard lock(mutex_);
  return ended_ ? "" : id_;
}

bool SessionStream::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void SessionStream::stop() {
  context_.TryCancel();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
}

void SessionStream::OnReadDone(bool ok) {
  if (!ok) return;
  {
    const std::lock_guard lock(mutex_);
    if (id_.empty()) id_ = event_.session();
  }
  changed_.notify_all();
  StartRead(&event_);
}

void SessionStream::OnDone(const grpc::Status& status) {
  std::shared_ptr<SessionStream> self;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    status_ = status;
    self = std::move(self_);
  }
  changed_.notify_all();
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
