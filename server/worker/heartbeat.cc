// Beats from a thread of its own, so a long compile or kernel is no silence; only a process that is
// not scheduled is. The same thread sees the front end hang up.
#include "server/worker/heartbeat.h"

#include <chrono>

#include <poll.h>

namespace kiln::server {

namespace {
// Fifty in the five seconds after which silence ends a worker.
constexpr int kBeatMilliseconds = 100;
}  // namespace

Heartbeat::Heartbeat(SharedStatus& status, int socket, std::function<void()> abandoned)
    : status_(status),
      socket_(socket),
      abandoned_(std::move(abandoned)),
      thread_([this] { loop(); }) {}

Heartbeat::~Heartbeat() {
  stopped_.store(true);
  thread_.join();
}

void Heartbeat::loop() {
  while (!stopped_.load()) {
    // In memory that both processes map: no message can be late or lost.
    status_->beats.fetch_add(1);
    pollfd socket{.fd = socket_, .events = 0, .revents = 0};  // hanging up is always reported
    if (::poll(&socket, 1, kBeatMilliseconds) > 0) {
      abandoned_();
      return;
    }
  }
}

}  // namespace kiln::server
