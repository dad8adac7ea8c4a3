#include "client/cli/progress.h"

#include <fmt/format.h>

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

}  // namespace kiln::cli
