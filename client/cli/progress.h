#pragma once

#include <ostream>
#include <string>

#include <kiln/job.h>
#include <kiln/tune.h>

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

/// Shows how far a search is: a bar on a terminal, else a line for each schedule that is faster.
class TuneProgress {
 public:
  TuneProgress(std::ostream& out, bool terminal, std::string kernel)
      : out_(out), terminal_(terminal), kernel_(std::move(kernel)) {}

  void begin(const TuneStart& start);
  void show(const TuneTrial& trial);
  /// Ends the line of the bar.
  void finish();

 private:
  void draw(const TuneTrial& trial) const;

  std::ostream& out_;
  const bool terminal_;
  const std::string kernel_;
  TuneStart start_;
  unsigned measured_ = 0;
  double default_ = 0;
  double best_ = 0;
  bool drawn_ = false;
};

}  // namespace kiln::cli
