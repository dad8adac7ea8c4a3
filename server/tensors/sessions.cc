// Opens and ends sessions, and lets their tensors live a grace longer. Ids cannot be guessed, so
// having one is the right to use it.
#include "server/tensors/sessions.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::server {

std::string Sessions::open(const std::string& tenant) {
  const std::string session = random_hex(12);
  const std::lock_guard lock(mutex_);
  sessions_[session].tenant = tenant;
  return session;
}

void Sessions::end(const std::string& session) {
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(session);
  if (at != sessions_.end()) at->second.ended = touched_ = Clock::now();
}

void Sessions::set_local(const std::string& session) {
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(session);
  if (at != sessions_.end()) at->second.is_local = true;
}

bool Sessions::is_local(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(session);
  return at != sessions_.end() && at->second.is_local;
}

void Sessions::require(const std::string& tenant, const std::string& session) const {
  if (session.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(session);
  if (at == sessions_.end() || !at->second.is_open() || at->second.tenant != tenant) {
    fail(ErrorKind::NotFound, "SESSION", "session {} has ended; open another", session);
  }
}

std::string Sessions::owner(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  const auto at = sessions_.find(session);
  return at != sessions_.end() && at->second.is_open() ? session : "";
}

void Sessions::touch() {
  const std::lock_guard lock(mutex_);
  touched_ = Clock::now();
}

void Sessions::expire(Clock::time_point now) {
  std::vector<std::string> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      if (at->second.is_open() || at->second.ended + grace_ > now) {
        ++at;
        continue;
      }
      gone.push_back(at->first);
      at = sessions_.erase(at);
    }
  }
  for (const std::string& session : gone) {
    tensors_.free_session(session);
    arenas_.forget_owner(session);
  }
}

int64_t Sessions::count() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(sessions_.begin(), sessions_.end(),
                       [](const auto& session) { return session.second.is_open(); });
}

Clock::duration Sessions::idle_for(Clock::time_point now) const {
  if (count() > 0) return Clock::duration::zero();
  const std::lock_guard lock(mutex_);
  return now - touched_;
}

}  // namespace kiln::server
