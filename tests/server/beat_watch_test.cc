#include "server/workers/beat_watch.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "server/workers/process_state.h"
#include "tests/server/service_test.h"

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
        now_, [&] { return waits_; }, [&] { return beats_; });
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
  bool waits_ = false;
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

TEST_F(BeatWatchTest, GivesAWorkerWithoutAProcessorMuchLonger) {
  waits_ = true;
  EXPECT_NEAR(seconds_until(Pulse::Starved), 60, 0.25);
}

TEST_F(BeatWatchTest, IsPatientOnlyAsLongAsTheWorkerWaits) {
  waits_ = true;
  for (int i = 0; i < 300; ++i)
    EXPECT_EQ(look(), Pulse::Beats);
  waits_ = false;
  EXPECT_EQ(look(), Pulse::Silent);
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

/// The system's number of a thread that runs `body`, which ends once it is told to.
template <typename Body>
void with_thread(Body&& body, const std::function<void(int)>& check) {
  std::atomic<int> number{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    number = ::gettid();
    body(stop);
  });
  while (number == 0)
    std::this_thread::yield();
  check(number);
  stop = true;
  thread.join();
}

TEST(WaitsToRun, ToldFromSleep) {
  with_thread(
      [](const std::atomic<bool>& stop) {
        while (!stop) {
        }
      },
      [](int thread) { EXPECT_TRUE(waits_to_run(::getpid(), thread)); });
  with_thread(
      [](const std::atomic<bool>& stop) {
        while (!stop)
          std::this_thread::sleep_for(milliseconds(100));
      },
      [](int thread) {
        EXPECT_TRUE(eventually([&] { return !waits_to_run(::getpid(), thread); }));
      });
  EXPECT_FALSE(waits_to_run(::getpid(), 0));
}

}  // namespace
}  // namespace kiln::server
