#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "server/tensors/tensor_store.h"

namespace kiln::server {

/// Who is connected. A session is open as long as its client holds the stream; its tensors live a
/// short grace longer, so that calls on their way still find them.
class Sessions {
 public:
  Sessions(TensorStore& tensors, ArenaPool& arenas, Clock::duration grace)
      : tensors_(tensors), arenas_(arenas), grace_(grace) {}

  std::string open();
  void end(const std::string& session);
  /// Its client is on this host, and can be shown memory.
  void set_local(const std::string& session);
  bool is_local(const std::string& session) const;
  /// Throws NotFound SESSION unless `session` is empty or open.
  void require(const std::string& session) const;
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
  bool is_open(const std::string& session) const;

  TensorStore& tensors_;
  ArenaPool& arenas_;
  const Clock::duration grace_;
  mutable std::mutex mutex_;
  std::map<std::string, Clock::time_point> ended_;  // open ones have time_point::max()
  std::set<std::string> local_;
  Clock::time_point touched_ = Clock::now();
};

}  // namespace kiln::server
