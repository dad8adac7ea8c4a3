#pragma once

#include <ostream>
#include <string>

#include <kiln/job.h>

namespace kiln::cli {

/// Shows how far a job is: a bar that is drawn over on a terminal, else a line a change.
class Progress {
 public:
  Progress(std::ostream& out, bool terminal) : out_(out), terminal_(terminal) {}

  void show(const JobState& state);
  /// Ends the line of the bar.
  void finish();

 private:
  std::ostream& out_;
  const bool terminal_;
  bool drawn_ = false;
};

}  // namespace kiln::cli
