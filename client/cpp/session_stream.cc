// Holds the session's stream open and knows its id. The first event has the id; the end of the
// stream, whoever ends it, is the end of the session.
#include "client/cpp/session_stream.h"

#include <kiln/connection.h>
#include <unistd.h>

namespace kiln {
inline namespace client {
namespace detail {

SessionStream::SessionStream(v1::DaemonService::Stub& stub, const Metadata& metadata) {
  for (const auto& [key, value] : metadata)
    context_.AddMetadata(key, value);
  thread_ = std::thread([this, &stub] { read(stub); });
}

SessionStream::~SessionStream() {
  context_.TryCancel();
  thread_.join();
}

void SessionStream::read(v1::DaemonService::Stub& stub) {
  v1::SessionRequest request;
  request.set_client("kiln-cpp/" + version() + " pid " + std::to_string(getpid()));
  const auto reader = stub.Session(&context_, request);
  v1::SessionEvent event;
  while (reader->Read(&event)) {
    const std::shared_ptr<LocalSocket> local = LocalSocket::open(event.local());
    {
      const std::lock_guard lock(mutex_);
      if (id_.empty()) {
        id_ = event.session();
        local_ = local;
      }
    }
    changed_.notify_all();
  }
  const grpc::Status status = reader->Finish();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    status_ = status;
  }
  changed_.notify_all();
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

std::shared_ptr<LocalSocket> SessionStream::local_if_open() const {
  const std::lock_guard lock(mutex_);
  return !ended_ && local_ && local_->is_open() ? local_ : nullptr;
}

bool SessionStream::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
