// Daemons that are killed amid many jobs, and the next ones that end them.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <signal.h>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using testing::Daemon;

class DurableJobs : public ::testing::Test {
 protected:
  void start() {
    Daemon::Options options;
    options.program = KILN_FAKE_KILND;
    options.listen = "unix:" + (folder_.path() / "s").string();
    options.cache_dir = folder_.path() / "cache";
    options.environment = {"KILN_FAKE_FOLDER=" + folder_.path().string()};
    daemon_.reset();
    daemon_ = std::make_unique<Daemon>(options);
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    jobs_ = v1::JobService::NewStub(
        grpc::CreateCustomChannel(daemon_->address(), grpc::InsecureChannelCredentials(), own));
  }
  void kill() {
    daemon_->signal(SIGKILL);
    ASSERT_EQ(daemon_->wait(kLong), 128 + SIGKILL);
  }

  static v1::SubmitRequest request_of(int number) {
    v1::SubmitRequest request;
    // Several kernels, one of which fails.
    *request.mutable_kernel() =
        number % 50 == 7 ? add_one("fails") : add_one_of("inc", 1 + number % 4);
    *request.mutable_run()->add_arguments() = inline_argument(
        std::vector<float>(number % 50 == 7 ? 1 : 1 + number % 4, static_cast<float>(number)));
    *request.mutable_run()->add_arguments() = output_argument();
    request.set_request_id("request-" + std::to_string(number));
    return request;
  }
  std::string submit(int number) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    v1::SubmitResponse response;
    const grpc::Status status = jobs_->Submit(&context, request_of(number), &response);
    return status.ok() ? response.job() : "";
  }
  void expect_right_end(int number, const std::string& job) {
    grpc::ClientContext context;
    v1::ResultRequest request;
    request.set_job(job);
    v1::RunResponse response;
    const grpc::Status status = jobs_->Result(&context, request, &response);
    if (number % 50 == 7) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
      return;
    }
    ASSERT_TRUE(status.ok()) << number << " " << job << ": " << status.error_message();
    EXPECT_EQ(floats_of(response.results(0).data())[0], static_cast<float>(number + 1));
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
};

TEST_F(DurableJobs, EndOnceThoughTheDaemonIsKilledAgainAndAgain) {
  constexpr int kJobs = 1000;
  constexpr int kKills = 4;
  std::map<int, std::string> accepted;
  int next = 0;
  for (int life = 0; life <= kKills; ++life) {
    start();
    // What was not answered may have been accepted: it is asked for again under its own id.
    const int until = life == kKills ? kJobs : (life + 1) * kJobs / (kKills + 1);
    std::atomic<bool> alive{true};
    std::thread killer;
    if (life < kKills) {
      killer = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300 + 150 * life));
        kill();
        alive = false;
      });
    }
    for (; next < until || (life < kKills && alive); ++next) {
      if (next >= kJobs) break;
      const std::string job = submit(next);
      if (job.empty()) break;
      accepted[next] = job;
    }
    if (killer.joinable()) killer.join();
  }
  ASSERT_EQ(accepted.size(), static_cast<size_t>(kJobs));
  for (const auto& [number, job] : accepted)
    expect_right_end(number, job);

  grpc::ClientContext context;
  v1::ListResponse list;
  ASSERT_TRUE(jobs_->List(&context, v1::ListRequest(), &list).ok());
  std::set<std::string> ids;
  for (const v1::JobState& state : list.jobs()) {
    EXPECT_EQ(state.phase() == v1::JOB_PHASE_DONE, state.kernel() == "inc") << state.message();
    EXPECT_GE(state.attempts(), 1U);
    ids.insert(state.job());
  }
  EXPECT_EQ(ids.size(), static_cast<size_t>(kJobs));
  EXPECT_EQ(list.jobs_size(), kJobs);
}

TEST_F(DurableJobs, ThatEndTheDaemonEachTimeFailAfterAFewAttempts) {
  start();
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("hangs");
  *request.mutable_run()->add_arguments() = inline_argument({1});
  *request.mutable_run()->add_arguments() = output_argument();
  grpc::ClientContext context;
  v1::SubmitResponse response;
  ASSERT_TRUE(jobs_->Submit(&context, request, &response).ok());
  const auto state = [&] {
    grpc::ClientContext context;
    v1::ListResponse list;
    EXPECT_TRUE(jobs_->List(&context, v1::ListRequest(), &list).ok());
    return list.jobs(0);
  };
  for (uint32_t attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_TRUE(eventually([&] { return state().phase() == v1::JOB_PHASE_RUNNING; }));
    EXPECT_EQ(state().attempts(), attempt);
    kill();
    start();
  }
  EXPECT_TRUE(eventually([&] { return state().phase() == v1::JOB_PHASE_FAILED; }));
  EXPECT_EQ(state().message(),
            "the job was begun 3 times, and the daemon or its worker ended each time");
}

}  // namespace
}  // namespace kiln::server
