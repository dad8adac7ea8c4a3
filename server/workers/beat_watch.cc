// Tells a worker that hangs from one that gets no processor. Silence is summed from look to look,
// each capped: when the watcher itself was not scheduled, a late look proves nothing.
//
//   4 looks of 1.25 s without a beat or work  ->  Silent     with work  ->  Starved, after 60 s
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
  silence_ = idle_ = {};
}

Pulse BeatWatch::look(Clock::time_point now, const std::function<bool()>& has_work,
                      const std::function<uint64_t()>& beats) {
  const Clock::duration most = limits_.hang / kLooks;
  const Clock::duration passed = std::clamp(now - last_look_, Clock::duration(0), most);
  silence_ += passed;
  last_look_ = now;
  // A single look may find a thread between two states.
  if (silence_ > limits_.hang / 2) idle_ = has_work() ? Clock::duration(0) : idle_ + passed;
  const uint64_t counted = beats();
  if (counted != last_beats_) {
    last_beats_ = counted;
    silence_ = idle_ = {};
    return Pulse::Beats;
  }
  if (silence_ > limits_.hang && idle_ > most) return Pulse::Silent;
  return silence_ > limits_.starved ? Pulse::Starved : Pulse::Beats;
}

}  // namespace kiln::server
