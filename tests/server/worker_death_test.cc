#include <algorithm>
#include <future>
#include <thread>

#include <signal.h>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;

class WorkerDeath : public ServiceTest {};

TEST_F(WorkerDeath, EndsNoCallBadlyAndLosesNoTensor) {
  const std::string kernel = service_->kernel(add_one("slow"));
  const std::string tensor = service_->upload({1, 2, 3});
  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([&] {
      while (!stop) {
        const Clock::time_point begin = Clock::now();
        std::vector<float> output;
        const grpc::Status status = service_->run(kernel, {4}, &output);
        EXPECT_LT(seconds_between(begin, Clock::now()), 2.0 + 3 * 0.1);
        if (status.ok()) {
          EXPECT_EQ(output, std::vector<float>{5});
          ++done;
        } else {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
          EXPECT_EQ(detail_of(status).reason(), "WORKER_RESTARTED");
        }
      }
    });
  }
  for (int64_t i = 1; i <= 2; ++i) {
    std::this_thread::sleep_for(milliseconds(250));
    ::kill(service_->engine().cpu_pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return service_->counter("worker_restarts") == i; }));
  }
  EXPECT_TRUE(eventually([&] { return done >= 3; }));
  stop = true;
  for (std::thread& caller : callers)
    caller.join();
  std::string bytes;
  ASSERT_TRUE(service_->download(tensor, bytes).ok());
  EXPECT_EQ(floats_of(bytes), (std::vector<float>{1, 2, 3}));
}

TEST_F(WorkerDeath, RunsACallAgainOnce) {
  std::vector<float> output;
  const grpc::Status status = service_->run(service_->kernel(add_one("dies_once")), {1}, &output);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(output, std::vector<float>{2});
  EXPECT_EQ(service_->counter("retried_runs"), 1);
  EXPECT_EQ(service_->counter("worker_restarts"), 1);
}

TEST_F(WorkerDeath, DoesNotRepeatACallThatWritesItsInput) {
  const std::string tensor = service_->upload({1});
  v1::RunRequest run;
  run.set_kernel_id(service_->kernel(add_one("dies_once")));
  *run.add_arguments() = tensor_argument(tensor);
  *run.add_arguments() = tensor_argument(tensor);
  v1::RunResponse response;
  expect_status(service_->run(run, response), grpc::StatusCode::UNAVAILABLE, "WORKER_LOST",
                "the worker of cpu:0 ended while it ran dies_once, which overwrites its own input; "
                "what it wrote is unknown, so it is not run again");
  EXPECT_EQ(service_->counter("retried_runs"), 0);
}

TEST_F(WorkerDeath, QuarantinesAKernelThatBringsItAbout) {
  const std::string dies = service_->kernel(add_one("dies"));
  const std::string inc = service_->kernel(add_one_of("inc", 1));
  const Clock::time_point begin = Clock::now();
  const grpc::Status first = service_->run(dies, {1});
  EXPECT_LT(seconds_between(begin, Clock::now()), 2.0);
  expect_status(first, grpc::StatusCode::UNAVAILABLE, "WORKER_RESTARTED",
                "the worker of cpu:0 ended while it ran dies; it is started again");
  EXPECT_DOUBLE_EQ(retry_seconds_of(first), 0.5);
  service_->run(dies, {1});
  expect_status(service_->run(dies, {1}), grpc::StatusCode::FAILED_PRECONDITION,
                "KERNEL_QUARANTINED", "dies ended its worker 3 times; it is refused for 600 s");
  EXPECT_TRUE(eventually([&] { return service_->run(inc, {1}).ok(); }));
}

TEST_F(WorkerDeath, IsNotBlamedOnAKernelThatRunsWell) {
  const std::string waits = service_->kernel(add_one("waits"));
  for (int64_t i = 1; i <= 3; ++i) {
    hold_again();
    std::thread caller([&] { EXPECT_TRUE(service_->run(waits, {1}).ok()); });
    EXPECT_TRUE(has_begun("waits"));
    ::kill(service_->engine().cpu_pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return service_->counter("worker_restarts") == i; }));
    let_go();
    caller.join();
  }
}

TEST_F(WorkerDeath, OfSomeKernelsKeepsNobodyElseWaiting) {
  const std::string inc = service_->kernel(add_one("inc"));
  std::vector<std::string> deadly;
  for (int64_t i = 1; i <= 4; ++i)
    deadly.push_back(service_->kernel(add_one_of(fmt::format("dies_{}", i), i)));
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < deadly.size(); ++i) {
    // Each is run twice.
    EXPECT_EQ(detail_of(service_->run(deadly[i], std::vector<float>(i + 1))).reason(),
              "WORKER_RESTARTED");
  }
  EXPECT_TRUE(service_->run(inc, {1}).ok());
  EXPECT_LT(seconds_between(begin, Clock::now()), 10.0);
}

TEST_F(WorkerDeath, FromOutsideIsNotBlamedOnTheKernelThatRan) {
  const std::string waits = service_->kernel(add_one("waits"));
  for (int64_t call = 0; call < 2; ++call) {
    hold_again();
    std::thread caller([&] {
      // A call is run once more, and then its caller is told.
      EXPECT_EQ(detail_of(service_->run(waits, {1})).reason(), "WORKER_RESTARTED");
    });
    for (int64_t kill = 1; kill <= 2; ++kill) {
      EXPECT_TRUE(has_begun("waits"));
      hold_again();
      ::kill(service_->engine().cpu_pid(), SIGKILL);
      EXPECT_TRUE(
          eventually([&] { return service_->counter("worker_restarts") == 2 * call + kill; }));
    }
    caller.join();
  }
  let_go();
  const grpc::Status status = service_->run(waits, {1});
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// A socket holds fewer messages than tensors are freed here while nobody reads it.
TEST_F(WorkerDeath, IsNotTheEndOfOneThatIsBusyWhileTensorsAreFreed) {
  EngineOptions options = usual_options();
  options.arenas.arena_bytes = 4096;
  options.arenas.warm_bytes = 0;
  restart(options);
  const std::string inc = service_->kernel(add_one_of("inc", 1024));
  const std::vector<float> page(1024);
  std::vector<std::string> tensors;
  for (int i = 0; i < 600; ++i) {
    tensors.push_back(service_->upload(page));
    v1::RunRequest run;
    run.set_kernel_id(inc);
    *run.add_arguments() = tensor_argument(tensors.back());
    *run.add_arguments() = output_argument();
    v1::RunResponse response;
    ASSERT_TRUE(service_->run(run, response).ok());
  }
  const std::string waits = service_->kernel(add_one("waits"));
  std::thread caller([&] { EXPECT_TRUE(service_->run(waits, {1}).ok()); });
  EXPECT_TRUE(has_begun("waits"));
  EXPECT_EQ(service_->engine().tensors().free("", tensors), 600);
  std::this_thread::sleep_for(milliseconds(200));
  let_go();
  caller.join();
  EXPECT_EQ(service_->counter("worker_restarts"), 0);
  EXPECT_EQ(service_->counter("retried_runs"), 0);
}

TEST_F(WorkerDeath, IsTheAnswerToGarbage) {
  const std::string garbage = service_->kernel(add_one("garbage"));
  const std::string inc = service_->kernel(add_one_of("inc", 1));
  expect_status(service_->run(garbage, {1}), grpc::StatusCode::UNAVAILABLE, "WORKER_RESTARTED",
                "the worker of cpu:0 ended while it ran garbage; it is started again");
  EXPECT_TRUE(eventually([&] { return service_->run(inc, {1}).ok(); }));
}

TEST_F(WorkerDeath, IsTheEndOfAWorkerThatStopsToBeat) {
  EngineOptions options = usual_options();
  options.times.hang = milliseconds(1500);
  restart(options);
  const std::string stops = service_->kernel(add_one("stops"));
  const std::string inc = service_->kernel(add_one_of("inc", 1));
  const grpc::Status status = service_->run(stops, {1});
  EXPECT_EQ(detail_of(status).reason(), "WORKER_RESTARTED");
  EXPECT_TRUE(eventually([&] { return service_->run(inc, {1}).ok(); }));
}

TEST_F(WorkerDeath, OfAnIdleWorkerIsRepairedByItself) {
  const int before = service_->engine().cpu_pid();
  ::kill(before, SIGKILL);
  EXPECT_TRUE(eventually([&] {
    return service_->counter("worker_restarts") == 1 && service_->engine().why_not_ready().empty();
  }));
  EXPECT_NE(service_->engine().cpu_pid(), before);
  EXPECT_TRUE(service_->run(service_->kernel(add_one("inc")), {1}).ok());
}

TEST_F(WorkerDeath, IsRepairedThoughTheNextWorkerFindsNoDevice) {
  const std::string inc = service_->kernel(add_one("inc"));
  for (const std::string fault : {"no_memory", "no_device"}) {
    set_fault(fault);
    const int before = service_->engine().cpu_pid();
    ::kill(before, SIGKILL);
    // Several times, each after a longer while.
    std::this_thread::sleep_for(milliseconds(500));
    EXPECT_EQ(service_->engine().describe().devices(0).state(), "starting");
    clear_fault(fault);
    const grpc::Status status = service_->run(inc, {1});
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

TEST_F(WorkerDeath, IsTheEndOfAWorkerThatBeatsButNeverGreets) {
  EngineOptions options = usual_options();
  options.times.start = milliseconds(2000);
  options.times.restart_grace = milliseconds(1000);
  restart(options);
  const std::string inc = service_->kernel(add_one("inc"));
  set_fault("mute");
  ::kill(service_->engine().cpu_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !service_->engine().why_not_ready().empty(); }));
  expect_status(service_->run(inc, {1}), grpc::StatusCode::UNAVAILABLE, "WORKER_RESTARTED",
                "the worker of cpu:0 is being started again; try again soon");
  clear_fault("mute");
  EXPECT_TRUE(eventually([&] { return service_->run(inc, {1}).ok(); }));
}

TEST_F(WorkerDeath, ThatNeverGreetedLeavesNoCallWaiting) {
  testing::TemporaryFolder folder;
  EngineOptions options = quick_options(folder.path().string());
  options.times.start = milliseconds(1000);
  set_fault("mute");
  Engine engine(options, std::make_unique<ProcessLauncher>(KILN_FAKE_LIBEXEC));
  EXPECT_FALSE(engine.wait_until_ready(milliseconds(500)));
  std::promise<Outcome<RunResult>> ending;
  const auto call = std::make_shared<Call>(Caller());
  // What a compiler says when it greets.
  ASSERT_TRUE(eventually([&] {
    const v1::DescribeResponse description = engine.describe();
    return std::ranges::any_of(description.components(),
                               [](const v1::Component& part) { return part.name() == "nvrtc"; });
  }));
  engine.compile(add_one("inc"), call, [&](Outcome<CompileResult> outcome) {
    v1::RunRequest run;
    run.set_kernel_id(std::get<CompileResult>(outcome).kernel->id);
    *run.add_arguments() = inline_argument({1});
    *run.add_arguments() = output_argument();
    engine.run(run, call, [&](Outcome<RunResult> result) { ending.set_value(std::move(result)); });
  });
  auto ended = ending.get_future();
  ASSERT_EQ(ended.wait_for(kLong), std::future_status::ready);
  const Outcome<RunResult> outcome = ended.get();
  const Error* const error = std::get_if<Error>(&outcome);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->message(), "cpu:0 has not started yet; try again soon");
  clear_fault("mute");
}

TEST_F(WorkerDeath, OfAnIdleCompilerIsRepairedByItself) {
  ::kill(service_->engine().compiler_pids().front(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return service_->counter("compiler_restarts") == 1; }));
  EXPECT_TRUE(service_->run(service_->kernel(add_one("inc")), {1}).ok());
}

}  // namespace
}  // namespace kiln::server
