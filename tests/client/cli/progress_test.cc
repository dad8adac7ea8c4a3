#include "client/cli/progress.h"

#include <sstream>

#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

JobState state(JobPhase phase, double seconds) {
  return {.job = "job-1", .phase = phase, .kernel = "matmul", .seconds = seconds, .message = ""};
}

TEST(Progress, IsALineAChangeWithoutATerminal) {
  std::ostringstream out;
  Progress progress(out, false);
  progress.show(state(JobPhase::Queued, 0));
  progress.show(state(JobPhase::Done, 1.25));
  progress.finish();
  EXPECT_EQ(out.str(), "job-1: queued after 0.0 s\njob-1: done after 1.2 s\n");
}

TEST(Progress, IsABarOnATerminal) {
  std::ostringstream out;
  Progress progress(out, true);
  progress.show(state(JobPhase::Running, 0.5));
  progress.show(state(JobPhase::Done, 1));
  progress.finish();
  EXPECT_EQ(out.str(),
            "\r\x1b[Kmatmul [################........] running 0.5 s"
            "\r\x1b[Kmatmul [########################] done 1.0 s\n");
}

TuneTrial trial(unsigned number, double best, double elapsed, bool recorded = false) {
  return {.number = number,
          .candidate = "C: tile(rows=8)",
          .seconds = best,
          .failure = "",
          .recorded = recorded,
          .elapsed = elapsed,
          .best = best};
}

const TuneStart kStart{
    .candidates = 1800, .trials = 4, .seconds = 60, .joined = false, .waiting = 0};

TEST(TuneProgress, IsALineForEachFasterScheduleWithoutATerminal) {
  std::ostringstream out;
  TuneProgress progress(out, false, "matmul");
  progress.begin(kStart);
  progress.show(trial(0, 0.5, 0.1));
  progress.show(trial(1, 0.5, 0.2));
  progress.show(trial(2, 0.25, 1.26));
  progress.finish();
  EXPECT_EQ(out.str(),
            "matmul: search among 1800 candidates; at most 4 trials and 60 s\n"
            "matmul: trial 0 after 0.1 s: 500 ms a run, 1.00 times as fast\n"
            "matmul: trial 2 after 1.3 s: 250 ms a run, 2.00 times as fast\n");
}

TEST(TuneProgress, IsABarOfTheBudgetOnATerminal) {
  std::ostringstream out;
  TuneProgress progress(out, true, "matmul");
  progress.begin(kStart);
  progress.show(trial(0, 0.5, 0.1, true));
  progress.show(trial(1, 0.5, 0.2));
  progress.show(trial(2, 0.25, 45));
  progress.finish();
  EXPECT_EQ(out.str(),
            "matmul: search among 1800 candidates; at most 4 trials and 60 s\n"
            "\r\x1b[Kmatmul [........................] 0/4 0 s  500 ms a run, 1.00 times as fast"
            "\r\x1b[Kmatmul [######..................] 1/4 0 s  500 ms a run, 1.00 times as fast"
            "\r\x1b[Kmatmul [##################......] 2/4 45 s  250 ms a run, 2.00 times as fast"
            "\n");
}

TEST(TuneProgress, SaysThatOthersAreFirst) {
  std::ostringstream out;
  TuneProgress progress(out, true, "matmul");
  progress.begin({.waiting = 1});
  EXPECT_EQ(out.str(), "matmul: 1 search before this one\n");
}

}  // namespace
}  // namespace kiln::cli
