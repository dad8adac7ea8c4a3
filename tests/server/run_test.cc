#include <filesystem>
#include <thread>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;

class Run : public ServiceTest {
 protected:
  v1::RunRequest request(const std::string& kernel, const v1::Argument& input,
                         const v1::Argument& output) {
    v1::RunRequest run;
    run.set_kernel_id(service_->kernel(add_one(kernel)));
    *run.add_arguments() = input;
    *run.add_arguments() = output;
    return run;
  }
  grpc::Status status_of_run(const v1::RunRequest& request) {
    v1::RunResponse response;
    return service_->run(request, response);
  }
};

TEST_F(Run, ReturnsOutputsAndTimings) {
  v1::RunResponse response;
  const grpc::Status status =
      service_->run(request("inc", inline_argument({1, 2, 3}), output_argument()), response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).parameter(), 1U);
  EXPECT_EQ(response.results(0).type(), v1::DATA_TYPE_FLOAT32);
  EXPECT_EQ(response.results(0).shape(0), 3);
  EXPECT_EQ(response.results(0).name(), "");
  EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2, 3, 4}));
  EXPECT_GT(response.timings().kernel(), 0);
  EXPECT_GT(response.timings().upload(), 0);
}

TEST_F(Run, TakesAnyExtentEvenNone) {
  const std::string kernel = service_->kernel(add_one("inc"));
  for (const size_t size : {0, 1, 31, 1000, 100'000}) {
    std::vector<float> output;
    ASSERT_TRUE(service_->run(kernel, std::vector<float>(size, 4), &output).ok());
    EXPECT_EQ(output, std::vector<float>(size, 5));
  }
}

TEST_F(Run, TakesTheShapeOfAnInlineOutputWithoutItsContents) {
  v1::Argument output;
  output.mutable_inline_()->set_type(v1::DATA_TYPE_FLOAT32);
  output.mutable_inline_()->add_shape(2);
  v1::RunResponse response;
  ASSERT_TRUE(service_->run(request("inc", inline_argument({1, 2}), output), response).ok());
  EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2, 3}));
  output.mutable_inline_()->set_shape(0, 3);
  expect_status(status_of_run(request("inc", inline_argument({1, 2}), output)),
                grpc::StatusCode::INVALID_ARGUMENT, "ARGUMENT_SHAPE",
                "argument Y of inc: dimension 0 is 3, but must be 2 (n, from dimension 0 of X)");
}

TEST_F(Run, KeepsAnOutputThatIsToStay) {
  v1::RunResponse response;
  ASSERT_TRUE(
      service_->run(request("inc", inline_argument({1, 2}), output_argument(true)), response).ok());
  const std::string tensor = response.results(0).tensor();
  std::string bytes;
  ASSERT_TRUE(service_->download(tensor, bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{2, 3}));
  // And it can be an argument.
  v1::RunResponse again;
  ASSERT_TRUE(
      service_->run(request("inc", tensor_argument(tensor), output_argument()), again).ok());
  EXPECT_EQ(floats_of(again.results(0).data()), (std::vector<float>{3, 4}));
}

TEST_F(Run, KeepsAnOutputThatDoesNotFitTheReply) {
  const size_t size = 5 << 20;
  const std::string input = service_->upload(std::vector<float>(size, 1));
  v1::RunResponse response;
  ASSERT_TRUE(
      service_->run(request("inc", tensor_argument(input), output_argument()), response).ok());
  std::string bytes;
  ASSERT_TRUE(service_->download(response.results(0).tensor(), bytes).ok());
  EXPECT_EQ(floats_of(bytes), std::vector<float>(size, 2));
}

TEST_F(Run, WritesIntoATensorOfTheCaller) {
  const std::string output = service_->upload({0, 0});
  ASSERT_TRUE(status_of_run(request("inc", inline_argument({1, 2}), tensor_argument(output))).ok());
  std::string bytes;
  ASSERT_TRUE(service_->download(output, bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{2, 3}));
}

TEST_F(Run, Measures) {
  v1::RunRequest run = request("inc", inline_argument({1}), output_argument());
  run.set_repeat(10);
  run.set_measurements(3);
  v1::RunResponse response;
  ASSERT_TRUE(service_->run(run, response).ok());
  ASSERT_EQ(response.measured_size(), 3);
  EXPECT_NEAR(response.measured(0), 1e-6, 1e-9);
  run.set_measurements(1'000'000);
  expect_status(status_of_run(run), grpc::StatusCode::INVALID_ARGUMENT, "MEASUREMENTS",
                "1000000 measurements are asked for; the limit is 100000");
}

TEST_F(Run, RefusesWrongArguments) {
  v1::RunRequest run = request("inc", inline_argument({1}), output_argument());
  run.mutable_arguments()->RemoveLast();
  expect_status(status_of_run(run), grpc::StatusCode::INVALID_ARGUMENT, "ARGUMENT_COUNT",
                "inc takes 2 arguments (X, Y), but got 1");

  v1::Argument argument = inline_argument({1, 2});
  argument.mutable_inline_()->mutable_data()->resize(7);
  expect_status(status_of_run(request("inc", argument, output_argument())),
                grpc::StatusCode::INVALID_ARGUMENT, "ARGUMENT_BYTES",
                "argument X of inc has 7 bytes of data, but its shape needs 8");

  argument.mutable_inline_()->set_type(static_cast<v1::DataType>(99));
  expect_status(status_of_run(request("inc", argument, output_argument())),
                grpc::StatusCode::INVALID_ARGUMENT, "DTYPE",
                "argument X of inc has an unknown type (number 99)");

  expect_status(status_of_run(request("inc", output_argument(), output_argument())),
                grpc::StatusCode::INVALID_ARGUMENT, "ARGUMENT_MISSING",
                "argument X of inc is an input, but nothing is given for it");

  expect_status(status_of_run(request("inc", v1::Argument(), output_argument())),
                grpc::StatusCode::INVALID_ARGUMENT, "ARGUMENT_MISSING",
                "argument X of inc is not given");
}

TEST_F(Run, RefusesShapesThatNoMemoryHolds) {
  v1::Argument argument = inline_argument({1});
  argument.mutable_inline_()->set_shape(0, int64_t{1} << 62);
  const grpc::Status status = status_of_run(request("inc", argument, output_argument()));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  argument.mutable_inline_()->set_shape(0, -1);
  EXPECT_EQ(status_of_run(request("inc", argument, output_argument())).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Run, TellsWhatWentWrongInTheKernel) {
  expect_status(service_->run(service_->kernel(add_one("fails")), {1}),
                grpc::StatusCode::INVALID_ARGUMENT, "INDEX_OUT_OF_RANGE",
                "index 9 is out of range in Y");
  EXPECT_EQ(service_->counter("failed_runs"), 1);
}

TEST_F(Run, EndsAKernelWhoseCallerGoesAway) {
  EngineOptions options = usual_options();
  options.times.margin = kLong;  // a busy machine may take long to tell the kernel
  restart(options);
  const std::string polls = service_->kernel(add_one("polls"));
  grpc::ClientContext context;
  v1::RunRequest run;
  run.set_kernel_id(polls);
  *run.add_arguments() = inline_argument({1});
  *run.add_arguments() = output_argument();
  std::thread caller([&] {
    v1::RunResponse response;
    EXPECT_EQ(service_->kernels->Run(&context, run, &response).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  ASSERT_TRUE(has_begun("polls"));
  context.TryCancel();
  caller.join();
  // The device is free again, and its worker the same.
  ASSERT_TRUE(eventually([&] { return service_->counter("queued_runs") == 0; }));
  EXPECT_EQ(service_->counter("worker_restarts"), 0);
}

TEST_F(Run, EndsAtTheDeadline) {
  EngineOptions options = usual_options();
  options.times.margin = kLong;
  restart(options);
  const std::string polls = service_->kernel(add_one("polls"));
  EXPECT_EQ(service_->run(polls, {1}, nullptr, milliseconds(100)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(eventually([&] { return service_->counter("queued_runs") == 0; }));
  EXPECT_EQ(service_->counter("worker_restarts"), 0);
}

TEST_F(Run, EndsAKernelThatDoesNotListenByEndingItsWorker) {
  const std::string hangs = service_->kernel(add_one("hangs"));
  const std::string inc = service_->kernel(add_one_of("inc", 1));
  const int before = service_->engine().cpu_pid();
  // Until one has begun in time, on a busy machine: others are only taken off the queue.
  do {
    EXPECT_EQ(service_->run(hangs, {1}, nullptr, milliseconds(500)).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  } while (!std::filesystem::exists(folder_.path() / "hangs.begun"));
  EXPECT_TRUE(service_->run(inc, {1}).ok());
  EXPECT_NE(service_->engine().cpu_pid(), before);
  EXPECT_EQ(service_->counter("worker_restarts"), 1);
}

TEST_F(Run, RefusesCallsPastTheQueue) {
  EngineOptions options = usual_options();
  options.queue = 2;
  restart(options);
  const std::string waits = service_->kernel(add_one("waits"));
  std::atomic<int> done{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      const grpc::Status status = service_->run(waits, {1});
      if (status.ok()) {
        ++done;
        return;
      }
      ++refused;
      expect_status(status, grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL",
                    "2 calls wait for cpu:0 already; try again soon");
      EXPECT_DOUBLE_EQ(retry_seconds_of(status), 0.1);
    });
  }
  // One runs, two wait.
  EXPECT_TRUE(eventually([&] { return refused == 5; }));
  let_go();
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(done.load(), 3);
  EXPECT_EQ(service_->counter("rejected"), 5);
}

TEST_F(Run, NobodyWaitsBehindALongCallOfAnother) {
  const std::string waits = service_->kernel(add_one("waits"));
  const std::string inc = service_->kernel(add_one_of("inc", 1));
  std::thread first([&] { EXPECT_TRUE(service_->run(waits, {1}).ok()); });
  ASSERT_TRUE(eventually([&] { return has_begun("waits"); }));
  // The client's own next call may use what the first writes.
  std::atomic<bool> second_done{false};
  std::thread second([&] {
    EXPECT_TRUE(service_->run(inc, {1}).ok());
    second_done = true;
  });
  v1::RunRequest others = request("inc", inline_argument({1}), output_argument());
  others.set_session(service_->engine().sessions().open(""));
  for (int i = 0; i < 3; ++i) {
    v1::RunResponse response;
    const grpc::Status status = service_->run(others, response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2}));
  }
  EXPECT_FALSE(second_done);
  let_go();
  first.join();
  second.join();
  EXPECT_EQ(service_->counter("worker_restarts"), 0);
}

TEST_F(Run, OneWorkerAloneRunsOneCallAfterAnother) {
  EngineOptions options = usual_options();
  options.cpu_workers = 1;
  restart(options);
  const std::string waits = service_->kernel(add_one("waits"));
  std::thread first([&] { EXPECT_TRUE(service_->run(waits, {1}).ok()); });
  ASSERT_TRUE(eventually([&] { return has_begun("waits"); }));
  v1::RunRequest others = request("inc", inline_argument({1}), output_argument());
  others.set_session(service_->engine().sessions().open(""));
  v1::RunResponse response;
  EXPECT_EQ(service_->run(others, response, milliseconds(500)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  let_go();
  first.join();
}

TEST_F(Run, ServesManyAtATime) {
  const std::string kernel = service_->kernel(add_one("inc"));
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      const auto stub = v1::KernelService::NewStub(service_->channel());
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(t * 1000 + i);
        grpc::ClientContext context;
        v1::RunRequest run;
        run.set_kernel_id(kernel);
        *run.add_arguments() = inline_argument({value, value});
        *run.add_arguments() = output_argument();
        v1::RunResponse response;
        if (!stub->Run(&context, run, &response).ok() ||
            floats_of(response.results(0).data()) != std::vector<float>(2, value + 1)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(service_->counter("runs"), 200);
}

}  // namespace
}  // namespace kiln::server
