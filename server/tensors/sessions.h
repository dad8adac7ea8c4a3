#pragma once

#include <map>
#include <mutex>
#include <string>

#include "server/tensors/tensor_store.h"

namespace kiln::server {

/// Who is connected. A session is open as long as its client holds the stream; its tensors live a
/// short grace longer, so that calls on their way still find them.
class Sessions {
 public:
  Sessions(TensorStore& tensors, ArenaPool& arenas, Clock::duration grace)
      : tensors_(tensors), arenas_(arenas), grace_(grace) {}

  std::string open(const std::string& tenant);
  void end(const std::string& session);
  /// Its client is on this host, and can be shown memory.
  void set_local(const std::string& session);
  bool is_local(const std::string& session) const;
  /// Throws NotFound SESSION unless `session` is empty, or open and the tenant's.
  void require(const std::string& tenant, const std::string& session) const;
  /// Whom a new tensor belongs to: `session`, or nobody when it ended meanwhile.
  std::string owner(const std::string& session) const;

  /// Something happened: the daemon is not idle.
  void touch();
  /// Frees what ended sessions left.
  void expire(Clock::time_point now);
  int64_t count() const;
  /// How long nobody is connected and nothing was asked; zero while a session is open.
  Clock::duration idle_for(Clock::time_point now) const;

 private:
  struct Session {
    std::string tenant;
    bool is_local = false;
    Clock::time_point ended = Clock::time_point::max();  // none: it is open
    bool is_open() const { return ended == Clock::time_point::max(); }
  };

  TensorStore& tensors_;
  ArenaPool& arenas_;
  const Clock::duration grace_;
  mutable std::mutex mutex_;
  std::map<std::string, Session> sessions_;
  Clock::time_point touched_ = Clock::now();
};

}  // namespace kiln::server
