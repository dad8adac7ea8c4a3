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
  EXPECT_EQ(states.front().phase(), v1::JOB_PHASE_COMPILING);
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

TEST(JobTable, KeepsTheLatestResultsUpToTheirBytes) {
  JobTable jobs({.kept = std::chrono::hours(1), .result_bytes = 2500});
  const auto call = std::make_shared<Call>(Caller());
  auto reply = std::make_shared<v1::RunResponse>();
  reply->add_results()->set_data(std::string(1000, 'x'));
  const std::shared_ptr<const v1::RunResponse> result = reply;
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i)
    ids.push_back(jobs.add("f", call));
  jobs.finish(ids[0], Error(ErrorKind::Internal, "X", "it failed"));
  for (const int i : {2, 1, 4, 3})
    jobs.finish(ids[i], result);
  std::vector<std::string> left;
  for (const v1::JobState& state : jobs.list(""))
    left.push_back(state.job());
  // The order of the ends counts; 5 has none yet.
  EXPECT_EQ(left, (std::vector<std::string>{ids[3], ids[4], ids[5]}));
  jobs.expire(Clock::now() + std::chrono::hours(2));
  EXPECT_EQ(jobs.list("").size(), 1U);
  jobs.finish(ids[5], result);
  EXPECT_EQ(jobs.list("").size(), 1U);
  EXPECT_EQ(jobs.unfinished(), 0U);
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

}  // namespace
}  // namespace kiln::server
