#include "server/engine/device_lane.h"

#include <atomic>

#include <gtest/gtest.h>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

/// What a queue might send when its worker greets, before it has heard of that itself.
class Observer : public LaneOwner {
 public:
  std::atomic<int> greetings{0};
  std::atomic<bool> was_free_before{false};
  std::atomic<bool> was_free_after{false};
  std::atomic<bool> was_free_when_lost{false};
  std::atomic<int> ends{0};

 private:
  void on_ready(DeviceLane& lane, const internal::Hello& /*hello*/) override {
    was_free_before = was_free_before || lane.is_free();
    lane.welcome();
    was_free_after = lane.is_free();
    ++greetings;
  }
  void on_reply(DeviceLane& /*lane*/, internal::FromWorker& /*reply*/) override {}
  bool on_lost(DeviceLane& lane, WorkerEnd /*end*/) override {
    was_free_when_lost = was_free_when_lost || lane.is_free();
    ++ends;
    return true;
  }
};

/// Whoever looks for a free worker between its greeting and the queue's hearing of it would send a
/// call without the kernel and the memory that only the worker before was sent.
TEST(DeviceLane, IsFreeOnlyOnceItsQueueKnowsThatTheWorkerIsAnother) {
  Observer observer;
  ProcessLauncher launcher(KILN_FAKE_LIBEXEC);
  Supervisor supervisor(std::chrono::milliseconds(20));
  ArenaPool arenas({});
  DeviceLane lane({}, launcher, supervisor, {}, arenas, observer);
  const auto have_greeted = [&](int workers) {
    return eventually([&] {
      lane.slot.tick(Clock::now());
      return observer.greetings == workers;
    });
  };
  ASSERT_TRUE(have_greeted(1));
  EXPECT_TRUE(lane.is_free());
  lane.slot.kill("the test wants another");
  ASSERT_TRUE(eventually([&] { return observer.ends == 1; }));
  EXPECT_FALSE(lane.is_free());
  ASSERT_TRUE(have_greeted(2));
  EXPECT_FALSE(observer.was_free_before);
  EXPECT_TRUE(observer.was_free_after);
  EXPECT_FALSE(observer.was_free_when_lost);
}

}  // namespace
}  // namespace kiln::server
