#include "server/workers/beat_watch.h"

#include <array>

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "server/workers/process_state.h"
#include "tests/server/service_test.h"

extern char** environ;

namespace kiln::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A worker that is looked at every 100 ms, unless a test says otherwise.
class BeatWatchTest : public ::testing::Test {
 protected:
  BeatWatchTest() { watch_.restart(now_); }

  Pulse look(Clock::duration after = milliseconds(100)) {
    now_ += after;
    return watch_.look(
        now_, [&] { return has_work_; }, [&] { return beats_; });
  }
  /// The seconds until the watch says this; 100 when it does not say it before.
  double seconds_until(Pulse pulse) {
    const Clock::time_point begin = now_;
    while (now_ - begin < seconds(100)) {
      if (look() == pulse) break;
    }
    return seconds_between(begin, now_);
  }

  Clock::time_point now_ = Clock::now();
  uint64_t beats_ = 0;
  bool has_work_ = false;
  BeatWatch watch_{{.hang = seconds(5), .starved = seconds(60)}};
};

TEST_F(BeatWatchTest, SaysThatAWorkerIsSilentAfterTheLimit) {
  for (int i = 0; i < 200; ++i) {
    ++beats_;
    EXPECT_EQ(look(), Pulse::Beats);
  }
  EXPECT_NEAR(seconds_until(Pulse::Silent), 5, 0.25);
}

TEST_F(BeatWatchTest, CountsFromTheLastBeat) {
  for (int i = 0; i < 40; ++i)
    look();
  ++beats_;
  EXPECT_NEAR(seconds_until(Pulse::Silent), 5, 0.25);
}

TEST_F(BeatWatchTest, GivesAWorkerThatHasWorkMuchLonger) {
  has_work_ = true;
  EXPECT_NEAR(seconds_until(Pulse::Starved), 60, 0.25);
}

TEST_F(BeatWatchTest, IsPatientOnlyAsLongAsThereIsWork) {
  has_work_ = true;
  for (int i = 0; i < 300; ++i)
    EXPECT_EQ(look(), Pulse::Beats);
  has_work_ = false;
  EXPECT_EQ(look(), Pulse::Beats);
  has_work_ = true;
  EXPECT_EQ(look(), Pulse::Beats);
  has_work_ = false;
  EXPECT_NEAR(seconds_until(Pulse::Silent), 1.25, 0.25);
}

TEST_F(BeatWatchTest, SaysNothingOfTimeInWhichItDidNotLook) {
  look();
  EXPECT_EQ(look(seconds(3600)), Pulse::Beats);
  EXPECT_EQ(look(seconds(7)), Pulse::Beats);
  EXPECT_GT(seconds_until(Pulse::Silent), 2);
}

TEST_F(BeatWatchTest, BeginsAnewWithAnotherWorker) {
  seconds_until(Pulse::Silent);
  watch_.restart(now_);
  EXPECT_NEAR(seconds_until(Pulse::Silent), 5, 0.25);
}

/// A process that does this, until the test ends.
class Child {
 public:
  explicit Child(const char* script) {
    const std::array<const char*, 4> words = {"sh", "-c", script, nullptr};
    EXPECT_EQ(::posix_spawnp(&pid_, "sh", nullptr, nullptr, const_cast<char* const*>(words.data()),
                             environ),
              0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(HasWork, IsToldFromSleep) {
  const Child works("while :; do :; done");
  EXPECT_TRUE(has_work(works.pid()));
  ::kill(works.pid(), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return !has_work(works.pid()); }));
  const Child sleeps("exec sleep 1000");
  EXPECT_TRUE(eventually([&] { return !has_work(sleeps.pid()); }));
  EXPECT_FALSE(has_work(0));
}

}  // namespace
}  // namespace kiln::server
