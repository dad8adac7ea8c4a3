#pragma once

#include <cstdint>
#include <functional>

#include "server/clock.h"

namespace kiln::server {

enum class Pulse { Beats, Silent, Starved };

/// Judges by the beats of a worker whether it still runs.
///
/// A worker that is given no processor beats as little as one that hangs, and so does one that
/// nobody looked at: on a busy machine neither is a reason to end it. So silence is what passes
/// from look to look, where a late look counts as little as the ones before it; and a worker that
/// has work, and so waits for a processor, is silent only after a much longer time.
class BeatWatch {
 public:
  struct Limits {
    Clock::duration hang;
    Clock::duration starved;
  };

  explicit BeatWatch(Limits limits) : limits_(limits) {}

  /// A worker was started.
  void restart(Clock::time_point now);
  /// `has_work` is asked before `beats`, so that a beat between the two counts, and only where it
  /// matters.
  Pulse look(Clock::time_point now, const std::function<bool()>& has_work,
             const std::function<uint64_t()>& beats);

 private:
  const Limits limits_;
  uint64_t last_beats_ = 0;
  Clock::time_point last_look_{};
  Clock::duration silence_{};  // since the last beat
  Clock::duration idle_{};     // of it, since the worker was last seen to have work
};

}  // namespace kiln::server
