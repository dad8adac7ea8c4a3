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

}  // namespace
}  // namespace kiln::cli
