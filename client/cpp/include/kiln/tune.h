#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include <kiln/kernel.h>

namespace kiln {
inline namespace client {

/// One automatic schedule that was measured, or whose code was read.
struct TuneTrial {
  unsigned number = 0;    // from 0, which is the schedule without tuning
  std::string candidate;  // "C: outer products(rows=8, lanes=32)"
  double seconds = 0;     // a run; 0 when it failed
  std::string failure;    // why it is no candidate
  bool recorded = false;  // measured by an earlier search
  double elapsed = 0;     // seconds since the search began
  double best = 0;        // seconds a run of the fastest so far
};

/// A search that begins, or waits for others.
struct TuneStart {
  double candidates = 0;  // in all, which may be more than an integer can count; 0 while it waits
  unsigned trials = 0;    // at most so many are measured
  double seconds = 0;     // at most for so long
  bool joined = false;    // somebody else's search for the same, with that one's budget
  unsigned waiting = 0;   // searches before this one
  /// The arch whose code is read, since the service has no such device: seconds are predicted, and
  /// nothing runs. Empty: candidates are measured.
  std::string read_for = {};
};

struct TuneOptions {
  /// Sizes that no input's shape gives, by name.
  std::map<std::string, std::int64_t> sizes = {};
  /// The inputs to measure with, in order; none: the service makes them up. Where code is read,
  /// there are none.
  std::vector<Argument> inputs = {};
  /// How many candidates are measured, and for how many seconds, at most; 0: as the service allows.
  unsigned trials = 0;
  double seconds = 0;
  std::function<void(const TuneStart&)> on_start = {};
  std::function<void(const TuneTrial&)> on_trial = {};
  /// Ends the search; what was found stays.
  std::stop_token stop = {};
};

struct TuneResult {
  double default_seconds = 0;  // a run under the schedule without tuning
  double best_seconds = 0;
  std::string candidate;              // empty: none was faster
  std::vector<std::string> schedule;  // its steps, as a kernel file has them
  std::string record;                 // its id in reports
  unsigned trials = 0;
  unsigned failures = 0;
  /// "trials", "seconds" or "candidates": what there was no more of; "stopped" by the caller.
  std::string end;
  std::string problem;        // why the record will not outlive the daemon; empty: it will
  std::string read_for = {};  // as in TuneStart
};

}  // namespace client
}  // namespace kiln
