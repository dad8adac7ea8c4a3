#include "server/workers/beat_watch.h"

#include <algorithm>

namespace kiln::server {

namespace {
// Of the limit, what one look can add to the silence.
constexpr int kLooks = 4;
}  // namespace

void BeatWatch::restart(Clock::time_point now) {
  last_beats_ = 0;
  last_look_ = now;
  silence_ = {};
}

Pulse BeatWatch::look(Clock::time_point now, const std::function<bool()>& has_work,
                      const std::function<uint64_t()>& beats) {
  silence_ += std::clamp(now - last_look_, Clock::duration(0), limits_.hang / kLooks);
  last_look_ = now;
  const bool long_silent = silence_ > limits_.hang;
  const bool starves = long_silent && has_work();
  const uint64_t counted = beats();
  if (counted != last_beats_) {
    last_beats_ = counted;
    silence_ = {};
    return Pulse::Beats;
  }
  if (!long_silent) return Pulse::Beats;
  if (!starves) return Pulse::Silent;
  return silence_ > limits_.starved ? Pulse::Starved : Pulse::Beats;
}

}  // namespace kiln::server
