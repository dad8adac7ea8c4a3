// Calls that a worker was sent behind the one that runs.
#include <future>
#include <thread>
#include <vector>

#include <signal.h>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;

class CallsAhead : public ServiceTest {
 protected:
  /// Calls of less than `short_call` count as short.
  void start(milliseconds short_call) {
    EngineOptions options = usual_options();
    options.times.short_call = short_call;
    options.cpu_workers = 2;
    restart(options);
    waits_ = service_->kernel(add_one_of("waits", 1));
    inc_ = service_->kernel(add_one_of("inc", 2));
    ASSERT_TRUE(service_->run(inc_, {1, 2}).ok());  // a worker has its code from now on
  }

  struct Outcome {
    grpc::Status status;
    std::vector<float> output;
  };
  /// All of one client.
  std::future<Outcome> call(const std::string& kernel, std::vector<float> input,
                            milliseconds limit = kLong) {
    return std::async(std::launch::async, [this, kernel, input, limit] {
      Outcome outcome;
      outcome.status = service_->run(kernel, input, &outcome.output, limit);
      return outcome;
    });
  }
  /// Each of another client.
  std::future<Outcome> call_of_another(const std::string& kernel, std::vector<float> input) {
    v1::RunRequest request;
    request.set_kernel_id(kernel);
    request.set_session(service_->engine().sessions().open(""));
    *request.add_arguments() = inline_argument(input);
    *request.add_arguments() = output_argument();
    return std::async(std::launch::async, [this, request] {
      Outcome outcome;
      v1::RunResponse response;
      outcome.status = service_->run(request, response);
      if (outcome.status.ok()) outcome.output = floats_of(response.results(0).data());
      return outcome;
    });
  }
  /// So many calls wait or are at workers.
  bool are_there(size_t count) {
    return eventually([&] {
      for (const Engine::Queue& queue : service_->engine().queues()) {
        if (queue.name == "cpu:0") return queue.length == count;
      }
      return false;
    });
  }
  static bool is_open(const std::future<Outcome>& call) {
    return call.wait_for(milliseconds(50)) == std::future_status::timeout;
  }

  std::string waits_;
  std::string inc_;
};

TEST_F(CallsAhead, RunInTheirOrderWhenTheirTurnComes) {
  start(milliseconds(60'000));
  std::future<Outcome> first = call(waits_, {1});
  ASSERT_TRUE(has_begun("waits"));
  std::vector<std::future<Outcome>> behind;
  for (int i = 0; i < 8; ++i)
    behind.push_back(call(inc_, {static_cast<float>(i), 0}));
  ASSERT_TRUE(are_there(9));
  EXPECT_TRUE(is_open(behind[0]));
  let_go();
  EXPECT_TRUE(first.get().status.ok());
  for (int i = 0; i < 8; ++i) {
    const Outcome outcome = behind[static_cast<size_t>(i)].get();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.output, (std::vector<float>{static_cast<float>(i) + 1, 1}));
  }
}

TEST_F(CallsAhead, EndAtOnceWhenTheirTimeIsOver) {
  start(milliseconds(60'000));
  std::future<Outcome> first = call(waits_, {1});
  ASSERT_TRUE(has_begun("waits"));
  std::future<Outcome> late = call(inc_, {1, 2}, milliseconds(200));
  std::future<Outcome> patient = call(inc_, {3, 4});
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(late.get().status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_LT(seconds_between(begin, Clock::now()), 2.0);
  // The worker was not ended for it, and what was taken back is not run.
  EXPECT_TRUE(is_open(first));
  let_go();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_EQ(patient.get().output, (std::vector<float>{4, 5}));
  EXPECT_TRUE(service_->run(inc_, {1, 2}).ok());
  EXPECT_EQ(service_->counter("worker_restarts"), 0);
}

/// Three deaths would quarantine a kernel that was to blame.
TEST_F(CallsAhead, AreNotToBlameForTheDeathOfTheirWorker) {
  start(milliseconds(60'000));
  for (int64_t round = 1; round <= 4; ++round) {
    const std::string dies = service_->kernel(add_one_of(fmt::format("dies_{}", round), 1));
    hold_again();
    ASSERT_TRUE(service_->run(inc_, {1, 2}).ok());
    std::future<Outcome> first = call(waits_, {1});
    ASSERT_TRUE(has_begun("waits"));
    std::future<Outcome> deadly = call(dies, {1});
    ASSERT_TRUE(are_there(2));
    std::future<Outcome> innocent = call(inc_, {1, 2});
    ASSERT_TRUE(are_there(3));
    let_go();
    EXPECT_TRUE(first.get().status.ok());
    EXPECT_EQ(detail_of(deadly.get().status).reason(), "WORKER_RESTARTED");
    const Outcome outcome = innocent.get();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.output, (std::vector<float>{2, 3}));
  }
  EXPECT_TRUE(service_->run(inc_, {1, 2}).ok());
}

/// Without an end it would end one worker after the other, and be taken for one that never began.
TEST_F(CallsAhead, AreToBlameThoughTheyOverwroteThatTheyBegan) {
  start(milliseconds(60'000));
  const std::string wipes = service_->kernel(add_one_of("wipes", 1));
  ASSERT_TRUE(service_->run(wipes, {1}).ok());  // the worker has its code, so it may go ahead
  std::future<Outcome> first = call(waits_, {1});
  ASSERT_TRUE(has_begun("waits"));
  std::future<Outcome> deadly = call(wipes, {2});
  ASSERT_TRUE(are_there(2));
  let_go();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_EQ(detail_of(deadly.get().status).reason(), "WORKER_RESTARTED");
}

TEST_F(CallsAhead, SurviveAKillFromOutside) {
  start(milliseconds(60'000));
  std::future<Outcome> first = call(waits_, {1});
  ASSERT_TRUE(has_begun("waits"));
  std::vector<std::future<Outcome>> behind;
  for (int i = 0; i < 4; ++i)
    behind.push_back(call(inc_, {1, 2}));
  ASSERT_TRUE(are_there(5));
  ::kill(service_->engine().cpu_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return service_->counter("worker_restarts") == 1; }));
  let_go();
  EXPECT_TRUE(first.get().status.ok());
  for (std::future<Outcome>& each : behind) {
    const Outcome outcome = each.get();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    EXPECT_EQ(outcome.output, (std::vector<float>{2, 3}));
  }
}

/// A worker that computes reads no messages, of which its socket holds few.
TEST_F(CallsAhead, TakeNothingAlongThatTheWorkerLacks) {
  start(milliseconds(60'000));
  const std::string fresh = service_->kernel(add_one_of("fresh", 1));
  std::future<Outcome> first = call(waits_, {1});
  ASSERT_TRUE(has_begun("waits"));
  std::future<Outcome> known = call(inc_, {1, 2});
  ASSERT_TRUE(are_there(2));
  std::future<Outcome> unknown = call(fresh, {1});
  ASSERT_TRUE(are_there(3));
  ::kill(service_->engine().cpu_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return service_->counter("worker_restarts") == 1; }));
  let_go();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_EQ(known.get().output, (std::vector<float>{2, 3}));
  EXPECT_EQ(unknown.get().output, (std::vector<float>{2}));
  EXPECT_EQ(service_->counter("retried_runs"), 2);  // what the worker had been sent
}

TEST_F(CallsAhead, ThatWriteTheirInputAreSentWhenTheyAreToRun) {
  start(milliseconds(60'000));
  const std::string tensor = service_->upload({1, 2});
  v1::RunRequest in_place;
  in_place.set_kernel_id(inc_);
  *in_place.add_arguments() = tensor_argument(tensor);
  *in_place.add_arguments() = tensor_argument(tensor);
  std::future<Outcome> first = call(waits_, {1});
  ASSERT_TRUE(has_begun("waits"));
  std::future<grpc::Status> second = std::async(std::launch::async, [&] {
    v1::RunResponse response;
    return service_->run(in_place, response);
  });
  ASSERT_TRUE(are_there(2));
  // It never reached the worker that dies, so it runs, and once.
  ::kill(service_->engine().cpu_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return service_->counter("worker_restarts") == 1; }));
  let_go();
  EXPECT_TRUE(first.get().status.ok());
  EXPECT_TRUE(second.get().ok());
  std::string bytes;
  ASSERT_TRUE(service_->download(tensor, bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{2, 3}));
}

TEST_F(CallsAhead, AreTakenBackFromBehindALongCall) {
  start(milliseconds(30));
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(service_->run(inc_, {1, 2}).ok());
  std::future<Outcome> first = call(waits_, {1});
  std::vector<std::future<Outcome>> behind;
  for (int i = 0; i < 6; ++i)
    behind.push_back(call_of_another(inc_, {1, 2}));
  for (std::future<Outcome>& each : behind)
    EXPECT_EQ(each.get().output, (std::vector<float>{2, 3}));
  EXPECT_TRUE(is_open(first));
  let_go();
  EXPECT_TRUE(first.get().status.ok());
}

}  // namespace
}  // namespace kiln::server
