#include <thread>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

class Jobs : public ServiceTest {
 protected:
  std::string submit(const v1::CompileRequest& kernel) {
    v1::SubmitRequest request;
    *request.mutable_kernel() = kernel;
    *request.mutable_run()->add_arguments() = inline_argument({1, 2});
    *request.mutable_run()->add_arguments() = output_argument();
    return submit(request);
  }
  std::string submit(const v1::SubmitRequest& request) {
    grpc::ClientContext context;
    v1::SubmitResponse response;
    const grpc::Status status = service_->jobs->Submit(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job();
  }
  std::vector<v1::JobState> watch(const std::string& job, const std::function<void()>& first = {}) {
    grpc::ClientContext context;
    v1::WatchRequest request;
    request.set_job(job);
    const auto stream = service_->jobs->Watch(&context, request);
    std::vector<v1::JobState> states;
    v1::JobState state;
    while (stream->Read(&state)) {
      states.push_back(state);
      if (first && states.size() == 1) first();
    }
    EXPECT_TRUE(stream->Finish().ok());
    return states;
  }
  grpc::Status result(const std::string& job, v1::RunResponse& response) {
    grpc::ClientContext context;
    v1::ResultRequest request;
    request.set_job(job);
    return service_->jobs->Result(&context, request, &response);
  }
  grpc::Status cancel(const std::string& job) {
    grpc::ClientContext context;
    v1::CancelRequest request;
    request.set_job(job);
    v1::CancelResponse response;
    return service_->jobs->Cancel(&context, request, &response);
  }
};

TEST_F(Jobs, CompileAndRun) {
  const std::string job = submit(add_one("inc"));
  v1::RunResponse response;
  ASSERT_TRUE(result(job, response).ok());
  EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2, 3}));
  EXPECT_EQ(response.results(0).name(), "Y");
  const std::vector<v1::JobState> states = watch(job);
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].phase(), v1::JOB_PHASE_DONE);
  EXPECT_EQ(states[0].kernel(), "inc");
}

TEST_F(Jobs, RunAKernelThatIsCompiled) {
  v1::SubmitRequest request;
  request.mutable_run()->set_kernel_id(service_->kernel(add_one("inc")));
  *request.mutable_run()->add_arguments() = inline_argument({5});
  *request.mutable_run()->add_arguments() = output_argument();
  v1::RunResponse response;
  ASSERT_TRUE(result(submit(request), response).ok());
  EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{6}));
}

TEST_F(Jobs, AreWatchedUntilTheyEnd) {
  const std::vector<v1::JobState> states =
      watch(submit(add_one("compile_waits")), [&] { let_go(); });
  ASSERT_GE(states.size(), 2U);
  for (size_t i = 1; i < states.size(); ++i)
    EXPECT_GT(states[i].phase(), states[i - 1].phase());
  EXPECT_LE(states.front().phase(), v1::JOB_PHASE_COMPILING);  // or still queued
  EXPECT_EQ(states.back().phase(), v1::JOB_PHASE_DONE);
}

TEST_F(Jobs, FailWithTheErrorOfTheKernel) {
  const std::string job = submit(add_one("fails"));
  v1::RunResponse response;
  expect_status(result(job, response), grpc::StatusCode::INVALID_ARGUMENT, "INDEX_OUT_OF_RANGE",
                "index 9 is out of range in Y");
  const v1::JobState state = watch(job).back();
  EXPECT_EQ(state.phase(), v1::JOB_PHASE_FAILED);
  EXPECT_EQ(state.message(), "index 9 is out of range in Y");
}

TEST_F(Jobs, EndWhenTheyAreCancelled) {
  const std::string job = submit(add_one("polls"));
  ASSERT_TRUE(has_begun("polls"));
  EXPECT_TRUE(cancel(job).ok());
  v1::RunResponse response;
  expect_status(result(job, response), grpc::StatusCode::CANCELLED, "CANCELLED",
                "polls was cancelled");
  EXPECT_EQ(watch(job).back().phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_TRUE(cancel(job).ok());
}

TEST_F(Jobs, AreListed) {
  const std::string job = submit(add_one("inc"));
  v1::RunResponse response;
  ASSERT_TRUE(result(job, response).ok());
  grpc::ClientContext context;
  v1::ListResponse list;
  ASSERT_TRUE(service_->jobs->List(&context, v1::ListRequest(), &list).ok());
  ASSERT_EQ(list.jobs_size(), 1);
  EXPECT_EQ(list.jobs(0).job(), job);
}

TEST(JobTable, KeepsTheLatestResultsOfEachTenantUpToTheirBytes) {
  JobTable jobs({.result_bytes = 2500, .kept = std::chrono::hours(1)});
  const auto ended = [&](const std::string& tenant, int64_t bytes) {
    const std::string id = jobs.reserve({.tenant = tenant, .kernel = "f"});
    jobs.accept(id);
    jobs.finish(*jobs.ending(id, v1::JOB_PHASE_DONE, "", bytes));
    return id;
  };
  const std::string others = ended("bob", 1000);
  const std::string first = ended("alice", 1000);
  const std::string second = ended("alice", 1000);
  EXPECT_EQ(jobs.expire(Clock::now()), std::vector<std::string>());
  const std::string third = ended("alice", 1000);
  EXPECT_EQ(jobs.expire(Clock::now()), std::vector<std::string>{first});
  // One that is too large by itself stays: its caller is still on the way.
  ended("alice", 5000);
  EXPECT_EQ(jobs.expire(Clock::now()), (std::vector<std::string>{second, third}));
  EXPECT_EQ(jobs.list("bob").size(), 1U);
  EXPECT_EQ(jobs.expire(Clock::now() + std::chrono::hours(2)).size(), 2U);
  EXPECT_EQ(jobs.list("alice").size(), 0U);
}

TEST(JobTable, BeginsTheOldestOfTheTenantWithTheFewestUnderWay) {
  JobTable jobs({.at_a_time = 3});
  const auto queued = [&](const std::string& tenant, Priority priority) {
    const std::string id = jobs.reserve({.tenant = tenant, .priority = priority});
    jobs.accept(id);
    return id;
  };
  const std::string first = queued("alice", Priority::Normal);
  const std::string second = queued("alice", Priority::Normal);
  const std::string urgent = queued("alice", Priority::High);
  const std::string other = queued("bob", Priority::Low);
  std::vector<std::string> begun;
  while (const auto next = jobs.begin(Clock::now()))
    begun.push_back(next->job);
  EXPECT_EQ(begun, (std::vector<std::string>{urgent, other, first}));
  jobs.put_back(urgent, true);
  EXPECT_EQ(jobs.begin(Clock::now())->job, second);
  jobs.put_back(first, false);
  const auto again = jobs.begin(Clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(again->job, urgent);
  EXPECT_EQ(again->attempts, 2U);
}

TEST_F(Jobs, AreForgottenAfterAWhile) {
  EngineOptions options = usual_options();
  options.jobs.kept = std::chrono::milliseconds(200);
  restart(options);
  const std::string job = submit(add_one("inc"));
  v1::RunResponse response;
  ASSERT_TRUE(result(job, response).ok());
  EXPECT_TRUE(eventually(
      [&] { return result(job, response).error_code() == grpc::StatusCode::NOT_FOUND; }));
  expect_status(cancel(job), grpc::StatusCode::NOT_FOUND, "JOB",
                "there is no job " + job + "; results are kept for 0 minutes");
}

TEST_F(Jobs, KeepTheirInputsAsTheyWere) {
  const std::string tensor = service_->upload({1, 2});
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("waits");
  *request.mutable_run()->add_arguments() = tensor_argument(tensor);
  *request.mutable_run()->add_arguments() = output_argument();
  const std::string job = submit(request);
  ASSERT_TRUE(has_begun("waits"));
  grpc::ClientContext context;
  v1::FreeRequest free;
  free.add_tensors(tensor);
  v1::FreeResponse freed;
  EXPECT_TRUE(service_->tensors->Free(&context, free, &freed).ok());
  let_go();
  v1::RunResponse response;
  ASSERT_TRUE(result(job, response).ok());
  EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2, 3}));
  EXPECT_EQ(service_->counter("tensors"), 0);
}

TEST_F(Jobs, HaveOutputsOfTheirOwn) {
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("inc");
  *request.mutable_run()->add_arguments() = inline_argument({1});
  *request.mutable_run()->add_arguments() = tensor_argument(service_->upload({5}));
  const std::string refusal =
      "argument Y of inc is a tensor to be overwritten, but a job has outputs of its own; ask for "
      "the output instead";
  grpc::ClientContext context;
  v1::SubmitResponse response;
  expect_status(service_->jobs->Submit(&context, request, &response),
                grpc::StatusCode::INVALID_ARGUMENT, "JOB_OUTPUT", refusal);
  request.clear_kernel();
  request.mutable_run()->set_kernel_id(service_->kernel(add_one("inc")));
  grpc::ClientContext again;
  expect_status(service_->jobs->Submit(&again, request, &response),
                grpc::StatusCode::INVALID_ARGUMENT, "JOB_OUTPUT", refusal);
}

TEST_F(Jobs, GiveLargeOutputsAsTensorsOfWhoTakesThem) {
  const std::vector<float> values(2 << 20, 3);
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("inc");
  *request.mutable_run()->add_arguments() = tensor_argument(service_->upload(values));
  *request.mutable_run()->add_arguments() = output_argument();
  const std::string job = submit(request);
  for (int taken = 0; taken < 2; ++taken) {
    v1::RunResponse response;
    ASSERT_TRUE(result(job, response).ok());
    std::string bytes;
    ASSERT_TRUE(service_->download(response.results(0).tensor(), bytes).ok());
    EXPECT_EQ(floats_of(bytes), std::vector<float>(2 << 20, 4));
  }
}

TEST_F(Jobs, AreTheSameUnderTheSameRequestId) {
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("inc");
  *request.mutable_run()->add_arguments() = inline_argument({1});
  *request.mutable_run()->add_arguments() = output_argument();
  request.set_request_id("once");
  const std::string job = submit(request);
  EXPECT_EQ(submit(request), job);
  request.set_request_id("twice");
  EXPECT_NE(submit(request), job);
}

TEST_F(Jobs, AreCancelledBeforeTheyBegin) {
  EngineOptions options = usual_options();
  options.jobs.at_a_time = 1;
  restart(options);
  const std::string running = submit(add_one("waits"));
  const std::string queued = submit(add_one("inc"));
  EXPECT_TRUE(cancel(queued).ok());
  EXPECT_EQ(watch(queued).back().phase(), v1::JOB_PHASE_CANCELLED);
  v1::RunResponse response;
  expect_status(result(queued, response), grpc::StatusCode::CANCELLED, "CANCELLED",
                "inc was cancelled");
  let_go();
  EXPECT_TRUE(result(running, response).ok());
}

TEST_F(Jobs, OutliveTheDaemonWithTheirResults) {
  const std::string done = submit(add_one("inc"));
  const std::string failed = submit(add_one("fails"));
  v1::RunResponse response;
  ASSERT_TRUE(result(done, response).ok());
  ASSERT_FALSE(result(failed, response).ok());
  service_.reset();
  restart();
  ASSERT_TRUE(result(done, response).ok());
  EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2, 3}));
  expect_status(result(failed, response), grpc::StatusCode::INVALID_ARGUMENT, "INDEX_OUT_OF_RANGE",
                "index 9 is out of range in Y");
  EXPECT_EQ(watch(failed).back().message(), "index 9 is out of range in Y");
  EXPECT_NE(submit(add_one("inc")), done);
}

TEST_F(Jobs, ThatWereUnderWayGoOnWithTheNextDaemon) {
  const std::string tensor = service_->upload({1, 2});
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("waits");
  *request.mutable_run()->add_arguments() = tensor_argument(tensor);
  *request.mutable_run()->add_arguments() = output_argument();
  const std::string job = submit(request);
  ASSERT_TRUE(has_begun("waits"));
  service_.reset();
  let_go();
  restart();
  v1::RunResponse response;
  ASSERT_TRUE(result(job, response).ok());
  EXPECT_EQ(floats_of(response.results(0).data()), (std::vector<float>{2, 3}));
  // The daemon ended in order, which is no attempt.
  EXPECT_EQ(watch(job).back().attempts(), 1U);
}

}  // namespace
}  // namespace kiln::server
