// Calls without waiting to a service elsewhere, which go over one stream.
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>
#include <signal.h>

#include "tests/client/cpp/expect_client_error.h"
#include "tests/client/cpp/on_a_daemon.h"

namespace kiln::test {
namespace {

class Submitted : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = new testing::Daemon({.program = KILND, .listen = "127.0.0.1:0"});
  }
  static void TearDownTestSuite() {
    delete daemon_;
    daemon_ = nullptr;
  }

  static Array filled(float value, std::int64_t size = 8) {
    Array array({size});
    for (float& each : array.values<float>())
      each = value;
    return array;
  }
  static float first(Future& future) { return Array(future.get()).values<float>()[0]; }
  Kernel plus() {
    const Tensor X = placeholder({8}, float32, "X");
    const Tensor Y = compute(
        {8}, [&](Expr i) { return X(i) + 1; }, "Y");
    return connection_.build({X, Y}, {.name = "plus"});
  }

  static inline testing::Daemon* daemon_ = nullptr;
  Connection connection_ = connect(daemon_->address());
};

TEST_F(Submitted, ManyCallsAreUnderWayAtOnce) {
  const Kernel f = plus();
  std::vector<Future> futures;
  for (int i = 0; i < 1000; ++i)
    futures.push_back(f.submit(filled(static_cast<float>(i))));
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(first(futures[static_cast<std::size_t>(i)]), static_cast<float>(i + 1));
  EXPECT_GT(f.timings().kernel, 0);
}

TEST_F(Submitted, CallsFailEachForItself) {
  const Kernel f = plus();
  Future good = f.submit(filled(1));
  Future bad = f.submit(filled(1, 9));
  Future worse = f.submit(filled(1), filled(1), filled(1));
  expect_client_error([&] { bad.get(); }, ErrorKind::InvalidArgument, "ARGUMENT_SHAPE",
                      "argument X of plus: dimension 0 is 9, but must be 8");
  EXPECT_THROW(worse.get(), InvalidArgument);
  EXPECT_EQ(first(good), 2);
}

TEST_F(Submitted, CallsAreCancelledOnTheService) {
  const Kernel f = endless(connection_);
  Future future = f.submit_call({filled(0)}, {.sizes = {{"m", std::int64_t{1} << 40}}});
  EXPECT_EQ(future.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  future.cancel();
  EXPECT_THROW(future.get(), Cancelled);
  // The client's next call runs once that one has ended.
  Future next = plus().submit(filled(1));
  EXPECT_EQ(first(next), 2);
}

TEST_F(Submitted, CallsAreWaitedForWhereTheyAreDropped) {
  const Kernel f = plus();
  for (int i = 0; i < 100; ++i)
    f.submit(filled(1));
  Future replaced = f.submit(filled(1));
  replaced = f.submit(filled(2));
  EXPECT_EQ(first(replaced), 3);
}

TEST_F(Submitted, CallsOutliveAWorker) {
  const Kernel f = plus();
  f(filled(1));
  std::vector<Future> futures;
  for (int i = 0; i < 50; ++i)
    futures.push_back(f.submit(filled(1)));
  ::kill(daemon_->children("kiln-worker").front(), SIGKILL);
  for (Future& future : futures)
    EXPECT_EQ(first(future), 2);
}

TEST_F(Submitted, CallsOutliveAConnectionThatIsClosed) {
  const Kernel f = endless(connection_);
  Future future = f.submit_call({filled(0)}, {.sizes = {{"m", std::int64_t{1} << 40}}});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  connection_.close();
  EXPECT_THROW(future.get(), Error);
}

}  // namespace
}  // namespace kiln::test
