#include "server/engine/engine.h"

#include <cstring>
#include <future>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;

/// The engine without gRPC, so that the thread sanitizer sees every thread that takes part.
class EngineUnderLoad : public ::testing::Test {
 protected:
  EngineUnderLoad()
      : engine_(quick_options(folder_.path().string()),
                std::make_unique<ProcessLauncher>(KILN_FAKE_LIBEXEC)) {
    EXPECT_TRUE(engine_.wait_until_ready(kLong));
  }

  static std::shared_ptr<Call> call(milliseconds limit = kLong) {
    return std::make_shared<Call>(Caller{.deadline = Clock::now() + limit});
  }

  Outcome<CompileResult> compile(const v1::CompileRequest& request) {
    std::promise<Outcome<CompileResult>> promise;
    engine_.compile(request, call(),
                    [&](Outcome<CompileResult> outcome) { promise.set_value(std::move(outcome)); });
    return promise.get_future().get();
  }

  /// Runs the kernel; the error, if there was one.
  std::optional<Error> run(const std::string& kernel, const std::shared_ptr<Call>& how) {
    v1::RunRequest request;
    request.set_kernel_id(kernel);
    *request.add_arguments() = inline_argument({1, 2});
    *request.add_arguments() = output_argument();
    std::promise<Outcome<RunResult>> promise;
    try {
      engine_.run(request, how,
                  [&](Outcome<RunResult> outcome) { promise.set_value(std::move(outcome)); });
    } catch (const Error& error) {
      return error;
    }
    const Outcome<RunResult> outcome = promise.get_future().get();
    if (const Error* error = std::get_if<Error>(&outcome)) return *error;
    v1::RunResponse response;
    write_reply(std::get<RunResult>(outcome), response);
    EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2, 3}));
    return std::nullopt;
  }

  testing::TemporaryFolder folder_;
  Engine engine_;
};

TEST_F(EngineUnderLoad, ServesManyThreadsWhileItsWorkersDie) {
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const Outcome<CompileResult> compiled =
            compile(add_one((t + i) % 5 == 0 ? "compile_slow" : "inc"));
        // A compiler that is killed fails what it compiled.
        if (std::get_if<Error>(&compiled) != nullptr) continue;
        const auto& result = std::get<CompileResult>(compiled);
        const std::optional<Error> error = run(result.kernel->id, call());
        if (error) {
          EXPECT_EQ(error->reason(), "WORKER_RESTARTED") << error->message();
        } else {
          ++done;
        }
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(milliseconds(100));
      if (engine_.cpu_pid() > 0) ::kill(engine_.cpu_pid(), SIGKILL);
      if (engine_.compiler_pids()[0] > 0) ::kill(engine_.compiler_pids()[0], SIGKILL);
      engine_.describe();
    }
  });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_GT(done.load(), 50);
}

TEST_F(EngineUnderLoad, CancelsWhatOthersStart) {
  const Outcome<CompileResult> compiled = compile(add_one("polls"));
  const std::string kernel = std::get<CompileResult>(compiled).kernel->id;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const auto how = call();
        std::thread canceller([&] {
          std::this_thread::sleep_for(milliseconds(3));
          how->cancel();
        });
        const std::optional<Error> error = run(kernel, how);
        canceller.join();
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(error->kind(), ErrorKind::Cancelled) << error->message();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(EngineUnderLoad, KeepsTensorsSessionsAndJobsApart) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 30; ++i) {
        const std::string session = engine_.sessions().open("");
        Tensor tensor = engine_.prepare_tensor(header_of(100, session), Caller());
        std::memset(tensor.slice->data(), 1, 400);
        const std::string id = engine_.tensors().add(std::move(tensor))->id;
        v1::SubmitRequest request;
        *request.mutable_kernel() = add_one("inc");
        request.mutable_run()->set_session(session);
        *request.mutable_run()->add_arguments() = tensor_argument(id);
        *request.mutable_run()->add_arguments() = output_argument(true);
        std::promise<std::string> job;
        engine_.submit(request, Caller(), [&](const Outcome<std::string>& outcome) {
          job.set_value(std::get<std::string>(outcome));
        });
        v1::ResultRequest wanted;
        wanted.set_job(job.get_future().get());
        wanted.set_session(session);
        std::promise<bool> ended;
        engine_.jobs().result("", wanted, [&](const auto& outcome) {
          ended.set_value(std::get_if<Error>(&outcome) == nullptr);
        });
        EXPECT_TRUE(ended.get_future().get());
        engine_.sessions().end(session);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_TRUE(eventually([&] { return engine_.tensors().count() == 0; }));
}

TEST_F(EngineUnderLoad, EndsEveryCallWhenItStops) {
  const Outcome<CompileResult> compiled = compile(add_one("hangs"));
  const std::string kernel = std::get<CompileResult>(compiled).kernel->id;
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const std::optional<Error> error = run(kernel, call());
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->kind(), ErrorKind::Unavailable) << error->message();
      ++ended;
    });
  }
  EXPECT_TRUE(eventually([&] { return engine_.describe().counters().at("queued_runs") == 4; }));
  engine_.stop();
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(ended.load(), 4);
}

}  // namespace
}  // namespace kiln::server
