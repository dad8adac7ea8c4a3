// Progress of jobs and searches: one line drawn over on a terminal, else a line for each change, so
// that a log stays readable.
#include "client/cli/progress.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/cli/outputs.h"

namespace kiln::cli {
namespace {

constexpr int kWidth = 24;

/// The phases are the steps of the bar: a job says nothing finer.
int filled(JobPhase phase) {
  switch (phase) {
    case JobPhase::Queued: return kWidth / 8;
    case JobPhase::Compiling: return kWidth / 3;
    case JobPhase::Running: return 2 * kWidth / 3;
    default: return kWidth;
  }
}

}  // namespace

void Progress::show(const JobState& state) {
  if (!terminal_) {
    out_ << fmt::format("{}: {} after {:.1f} s\n", state.job, name_of(state.phase), state.seconds)
         << std::flush;
    return;
  }
  const int done = filled(state.phase);
  out_ << fmt::format("\r\x1b[K{} [{:#<{}}{:.<{}}] {} {:.1f} s", state.kernel, "", done, "",
                      kWidth - done, name_of(state.phase), state.seconds)
       << std::flush;
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) out_ << "\n";
  drawn_ = false;
}

void TuneProgress::begin(const TuneStart& start) {
  start_ = start;
  if (start.waiting > 0) {
    out_ << fmt::format("{}: {} search{} before this one\n", kernel_, start.waiting,
                        start.waiting == 1 ? "" : "es");
    return;
  }
  out_ << fmt::format("{}: {} {:.15g} candidates; at most {} trials and {:g} s\n", kernel_,
                      start.joined ? "joined a search among" : "search among", start.candidates,
                      start.trials, start.seconds)
       << std::flush;
}

void TuneProgress::show(const TuneTrial& trial) {
  if (!trial.recorded) ++measured_;
  if (default_ == 0) default_ = trial.best;
  if (terminal_) {
    draw(trial);
    drawn_ = true;
  } else if (best_ == 0 || trial.best < best_) {
    out_ << fmt::format("{}: trial {} after {:.1f} s: {} a run, {:.2f} times as fast\n", kernel_,
                        trial.number, trial.elapsed, time_text(trial.best), default_ / trial.best)
         << std::flush;
  }
  best_ = trial.best;
}

void TuneProgress::draw(const TuneTrial& trial) const {
  // As full as the budget that is used up first.
  const double part = std::max(measured_ / std::max(1.0, 1.0 * start_.trials),
                               trial.elapsed / std::max(1e-3, start_.seconds));
  const int done = static_cast<int>(std::clamp(part, 0.0, 1.0) * kWidth);
  out_ << fmt::format("\r\x1b[K{} [{:#<{}}{:.<{}}] {}/{} {:.0f} s  {} a run, {:.2f} times as fast",
                      kernel_, "", done, "", kWidth - done, measured_, start_.trials, trial.elapsed,
                      time_text(trial.best), default_ / trial.best)
       << std::flush;
}

void TuneProgress::finish() {
  if (drawn_) out_ << "\n";
  drawn_ = false;
}

}  // namespace kiln::cli
