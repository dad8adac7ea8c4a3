// Opens and ends sessions, and lets their tensors live a grace longer. Ids cannot be guessed, so
// having one is the right to use it.
#include "server/tensors/sessions.h"

#include <algorithm>

#include "runtime/core/error.h"

namespace kiln::server {

std::string Sessions::open() {
  const std::string session = random_hex(12);
  const std::lock_guard lock(mutex_);
  ended_[session] = Clock::time_point::max();
  return session;
}

void Sessions::end(const std::string& session) {
  const std::lock_guard lock(mutex_);
  const auto at = ended_.find(session);
  if (at != ended_.end()) at->second = touched_ = Clock::now();
}

void Sessions::set_local(const std::string& session) {
  const std::lock_guard lock(mutex_);
  if (ended_.count(session) != 0) local_.insert(session);
}

bool Sessions::is_local(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  return local_.count(session) != 0;
}

void Sessions::require(const std::string& session) const {
  if (!session.empty() && !is_open(session)) {
    fail(ErrorKind::NotFound, "SESSION", "session {} has ended; open another", session);
  }
}

std::string Sessions::owner(const std::string& session) const {
  return is_open(session) ? session : "";
}

bool Sessions::is_open(const std::string& session) const {
  const std::lock_guard lock(mutex_);
  const auto at = ended_.find(session);
  return at != ended_.end() && at->second == Clock::time_point::max();
}

void Sessions::touch() {
  const std::lock_guard lock(mutex_);
  touched_ = Clock::now();
}

void Sessions::expire(Clock::time_point now) {
  std::vector<std::string> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = ended_.begin(); at != ended_.end();) {
      if (at->second == Clock::time_point::max() || at->second + grace_ > now) {
        ++at;
        continue;
      }
      gone.push_back(at->first);
      local_.erase(at->first);
      at = ended_.erase(at);
    }
  }
  for (const std::string& session : gone) {
    tensors_.free_session(session);
    arenas_.forget_owner(session);
  }
}

int64_t Sessions::count() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(ended_.begin(), ended_.end(),
                       [](const auto& entry) { return entry.second == Clock::time_point::max(); });
}

Clock::duration Sessions::idle_for(Clock::time_point now) const {
  if (count() > 0) return Clock::duration::zero();
  const std::lock_guard lock(mutex_);
  return now - touched_;
}

}  // namespace kiln::server
