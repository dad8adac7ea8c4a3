// Lets calls in: the token first, so that strangers learn nothing, then whether the daemon is
// ending, then the count that draining waits for.
#include "server/rpc/gate.h"

#include <string_view>
#include <vector>

#include <openssl/crypto.h>

#include "runtime/core/error.h"

namespace kiln::server {

namespace {

/// Takes the same time for any presented token of one length, so that it cannot be guessed
/// bytewise.
bool same_token(std::string_view expected, std::string_view presented) {
  return expected.size() == presented.size() &&
         CRYPTO_memcmp(expected.data(), presented.data(), expected.size()) == 0;
}

bool carries(const grpc::CallbackServerContext& context, const std::string& token) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto at = begin; at != end; ++at) {
    const std::string_view value(at->second.data(), at->second.size());
    if (value.substr(0, kScheme.size()) == kScheme &&
        same_token(token, value.substr(kScheme.size()))) {
      return true;
    }
  }
  return false;
}

}  // namespace

Gate::Pass Gate::enter(const grpc::CallbackServerContext& context) {
  if (!token_.empty() && !carries(context, token_)) {
    fail(ErrorKind::Unauthenticated, "TOKEN",
         "this daemon asks for a token, and the one given is missing or wrong");
  }
  return enter();
}

Gate::Pass Gate::enter() {
  if (closed_.load()) {
    fail(ErrorKind::Unavailable, "DRAINING", "the daemon is ending and takes no more calls");
  }
  sessions_.touch();
  active_.fetch_add(1);
  // A pass is its destructor: however a call ends, it is counted out once.
  return {nullptr, [this](void*) {
            active_.fetch_sub(1);
            sessions_.touch();
          }};
}

void Gate::close() {
  std::vector<std::function<void()>> listeners;
  {
    const std::lock_guard lock(mutex_);
    closed_.store(true);
    for (const auto& [number, listener] : listeners_)
      listeners.push_back(listener);
  }
  for (const auto& listener : listeners)
    listener();
}

uint64_t Gate::on_close(std::function<void()> listener) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_++;
    if (!closed_.load()) {
      listeners_[number] = std::move(listener);
      return number;
    }
  }
  listener();
  return number;
}

void Gate::forget(uint64_t listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

Clock::time_point deadline_of(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  // gRPC's "no deadline" is a date so far away that the sum would overflow.
  if (left > std::chrono::hours(24 * 365)) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
}

}  // namespace kiln::server
