#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <kiln/client.h>

#include "tests/client/cpp/expect_client_error.h"
#include "tests/client/cpp/fake_service.h"

namespace kiln::test {
namespace {

using grpc::StatusCode;

/// A connection to a fake service, and a kernel B = A + 1 on it.
class Call : public ::testing::Test {
 protected:
  Definition increment() {
    const Expr n = var("n");
    const Tensor A = placeholder({n}, float32, "A");
    return {A, compute(
                   {n}, [&](Expr i) { return A(i) + 1; }, "B")};
  }

  bool eventually(const std::function<bool()>& condition) {
    for (int tries = 0; tries < 2000; ++tries) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  FakeService service_;
  Connection connection_ = connect(service_.address());
};

TEST_F(Call, WritesIntoTheOutputItIsGiven) {
  const Kernel f = connection_.build(increment());
  const Array a(std::vector<float>{1, 2, 3}, {3});
  const Array b({3});
  f(a, b);
  EXPECT_EQ(to_string(b), "[2. 3. 4.]");
  // The service is told the shape of the output, and is not sent its contents.
  const v1::Inline sent = service_.last_run().arguments(1).inline_();
  EXPECT_EQ(sent.shape(0), 3);
  EXPECT_TRUE(sent.data().empty());
}

TEST_F(Call, ReturnsNewOutputsForTheInputsAlone) {
  const Kernel f = connection_.build(increment());
  const Array b = f(Array(std::vector<float>{1, 2}, {2}));
  EXPECT_EQ(to_string(b), "[2. 3.]");
  EXPECT_TRUE(service_.last_run().arguments(1).has_output());
}

TEST_F(Call, TakesEmptyArrays) {
  EXPECT_EQ(to_string(connection_.build(increment())(Array({0}))), "[]");
}

TEST_F(Call, ReportsWhereTheTimeWent) {
  const Kernel f = connection_.build(increment());
  EXPECT_EQ(f.build_timings().compile, 0.25);
  EXPECT_EQ(f.build_timings().cache, "compiled");
  f(Array({1}));
  EXPECT_EQ(f.timings().kernel, 0.5);
  EXPECT_EQ(f.timings().cache, "memory");
}

TEST_F(Call, MeasuresRepeatedRuns) {
  const std::vector<double> seconds = connection_.build(increment()).measure({Array({1})}, 10, 2);
  EXPECT_EQ(seconds, (std::vector<double>{0.001, 0.002}));
  EXPECT_EQ(service_.last_run().repeat(), 10U);
}

TEST_F(Call, SendsSizesByName) {
  connection_.build(increment()).call({Array({1})}, {.sizes = {{"m", 10}}});
  EXPECT_EQ(service_.last_run().sizes().at("m"), 10);
}

TEST_F(Call, SendsTheBuildOptions) {
  connection_.compile(increment(), {.name = "inc",
                                    .target = "cuda",
                                    .arch = "sm_90",
                                    .automatic = false,
                                    .strict = true,
                                    .reproducible = false});
  const v1::CompileRequest request = service_.last_compile();
  EXPECT_EQ(request.source_map().kernel(), "inc");
  EXPECT_EQ(request.target().name(), "cuda");
  EXPECT_EQ(request.target().arch(), "sm_90");
  EXPECT_EQ(request.options().auto_(), v1::AUTO_MODE_NEVER);
  EXPECT_TRUE(request.options().strict());
  EXPECT_FALSE(request.options().fast());
  EXPECT_TRUE(request.options().not_reproducible());
}

TEST_F(Call, BuildTakesNoArchitecture) {
  expect_client_error([&] { connection_.build(increment(), {.arch = "sm_90"}); },
                      ErrorKind::InvalidArgument, "ARCH",
                      "build takes the architecture from the device: use compile for sm_90");
}

TEST_F(Call, ShowsLoopsSourceAndReport) {
  const Kernel f = connection_.build(increment());
  EXPECT_EQ(connection_.lower(increment(), {.after = "simplify", .automatic = true}),
            "fn main after simplify auto");
  EXPECT_EQ(f.source("asm"), "source asm");
  EXPECT_EQ(f.report(), "{\"guards\": 0}");
}

TEST_F(Call, ChecksTheNumberOfArguments) {
  const Kernel f = connection_.build(increment());
  const Array a({1});
  expect_client_error([&] { f(a, a, a); }, ErrorKind::InvalidArgument, "ARGUMENT_COUNT",
                      "the kernel takes 2 arguments (A, B), but got 3");
  EXPECT_EQ(service_.calls("Run"), 0);
}

TEST_F(Call, ChecksTheTypeOfArguments) {
  const Kernel f = connection_.build(increment());
  expect_client_error([&] { f(Array({1}, float64)); }, ErrorKind::InvalidArgument, "ARGUMENT_TYPE",
                      "argument A of the kernel is float64, but must be float32");
}

TEST_F(Call, ChecksTheRankOfArguments) {
  const Kernel f = connection_.build(increment());
  expect_client_error(
      [&] {
        f(Array({1, 1}));
      },
      ErrorKind::InvalidArgument, "ARGUMENT_RANK",
      "argument A of the kernel has 2 dimensions, but must have 1");
}

TEST_F(Call, StreamsLargeArraysInChunksOfOneMebibyte) {
  const Kernel f = connection_.build(increment());
  const std::int64_t n = (5 << 18) + 3;  // 5 MiB and 12 bytes
  const Array a({n});
  a.values<float>()[static_cast<std::size_t>(n - 1)] = 41;
  const Array b = f(a);
  EXPECT_EQ(b.values<float>()[static_cast<std::size_t>(n - 1)], 42);
  EXPECT_EQ(service_.last_chunks(),
            (std::vector<std::size_t>{1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 12}));
  EXPECT_EQ(service_.calls("Download"), 1);
  // Neither the streamed input nor the streamed output stays on the service.
  EXPECT_TRUE(eventually([&] { return service_.tensors().empty(); }));
}

TEST_F(Call, PutsThereWhatIsTooMuchForOneMessageTogether) {
  const Tensor A = placeholder({var("n")}, float32, "A");
  std::vector<Tensor> arguments;
  for (int i = 0; i < 6; ++i)
    arguments.push_back(placeholder(A.shape(), float32, "A"));
  arguments.push_back(compute(
      A.shape(), [&](Expr i) { return arguments[0](i) + 1; }, "B"));
  const Kernel f = connection_.build(Definition(arguments));
  f.call(std::vector<Argument>(6, Array({180'000})));  // 6 of 0.7 MB
  EXPECT_EQ(service_.calls("Put"), 2);
}

TEST_F(Call, KeepsArraysOnTheService) {
  const Kernel f = connection_.build(increment());
  const RemoteArray a = connection_.upload(Array(std::vector<float>{1, 2}, {2}));
  const std::vector<RemoteArray> kept = f.call_remote({a});
  EXPECT_EQ(service_.last_run().session(), "session-1");
  EXPECT_EQ(to_string(f(kept[0])), "[3. 4.]");
  EXPECT_EQ(to_string(kept[0].download()), "[2. 3.]");
  EXPECT_EQ(to_string(Array({1})), "[0.]");
}

TEST_F(Call, FreesRemoteArraysWithTheirLastHandle) {
  {
    const RemoteArray a = connection_.upload(Array({4}));
    EXPECT_EQ(service_.tensors().size(), 1U);
  }
  EXPECT_TRUE(eventually([&] { return service_.tensors().empty(); }));
}

TEST_F(Call, HoldsASessionUntilItIsClosed) {
  connection_.build(increment());
  EXPECT_TRUE(eventually([&] { return service_.sessions_open() == 1; }));
  connection_.close();
  EXPECT_TRUE(eventually([&] { return service_.sessions_open() == 0; }));
  expect_client_error([&] { connection_.describe(); }, ErrorKind::InvalidArgument, "CLOSED",
                      "the connection to " + service_.address() + " is closed");
}

TEST_F(Call, SendsTheToken) {
  connect(service_.address(), {.token = "secret"}).describe();
  EXPECT_EQ(service_.last_token(), "Bearer secret");
}

TEST_F(Call, CompilesAForgottenKernelAgain) {
  const Kernel f = connection_.build(increment());
  service_.forget_kernels();
  EXPECT_EQ(to_string(f(Array({1}))), "[1.]");
  EXPECT_EQ(service_.calls("Compile"), 2);
}

TEST_F(Call, DoesNotCompileAgainForALostTensor) {
  const Kernel f = connection_.build(increment());
  service_.fail_next("Run", {service_error(StatusCode::NOT_FOUND, v1::ERROR_KIND_NOT_FOUND,
                                           "TENSOR", "there is no tensor t-1")});
  expect_client_error([&] { f(Array({1})); }, ErrorKind::NotFound, "TENSOR",
                      "there is no tensor t-1");
  EXPECT_EQ(service_.calls("Compile"), 1);
}

TEST_F(Call, TriesAgainWhenTheServiceAsksForIt) {
  const Kernel f = connection_.build(increment());
  const grpc::Status busy =
      service_error(StatusCode::RESOURCE_EXHAUSTED, v1::ERROR_KIND_RESOURCE_EXHAUSTED, "QUEUE_FULL",
                    "the queue is full", 5);
  service_.fail_next("Run", {busy, busy});
  EXPECT_EQ(to_string(f(Array({1}))), "[1.]");
  EXPECT_EQ(service_.calls("Run"), 3);
}

TEST_F(Call, HasPatienceWhereOthersHaveTheRoom) {
  const Kernel f = connection_.build(increment());
  const grpc::Status busy =
      service_error(StatusCode::RESOURCE_EXHAUSTED, v1::ERROR_KIND_RESOURCE_EXHAUSTED, "QUEUE_FULL",
                    "the queue is full", 40);
  service_.fail_next("Run", std::vector<grpc::Status>(10, busy));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(to_string(f(Array({1}))), "[1.]");
  EXPECT_EQ(service_.calls("Run"), 11);
  // A quarter of the time that the service says at least, all of it at most.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(100));
}

TEST_F(Call, RepeatsWhatHasNotBegunThoughItWritesOverItsInput) {
  const Kernel f = connection_.build(increment());
  const RemoteArray a = connection_.upload(Array(std::vector<float>{1}, {1}));
  const auto refused = [](const std::string& reason) {
    return service_error(StatusCode::UNAVAILABLE, v1::ERROR_KIND_UNAVAILABLE, reason, "not now", 1);
  };
  service_.fail_next("Run", {refused("DEVICE_STARTING"), refused("QUEUE_FULL")});
  f(a, a);
  EXPECT_EQ(service_.calls("Run"), 3);
  service_.fail_next("Run", {refused("WORKER_RESTARTED")});
  expect_client_error([&] { f(a, a); }, ErrorKind::Unavailable, "WORKER_RESTARTED", "not now");
  EXPECT_EQ(service_.calls("Run"), 4);
}

TEST_F(Call, TriesAgainAfterACancellationItDidNotAskFor) {
  const Kernel f = connection_.build(increment());
  service_.fail_next("Run", {grpc::Status(StatusCode::CANCELLED, ""),
                             grpc::Status(StatusCode::UNAVAILABLE, "draining")});
  EXPECT_EQ(to_string(f(Array({1}))), "[1.]");
  EXPECT_EQ(service_.calls("Run"), 3);
}

TEST_F(Call, GivesUpAfterSixTries) {
  const Kernel f = connection_.build(increment());
  service_.fail_next("Run",
                     std::vector<grpc::Status>(
                         9, service_error(StatusCode::UNAVAILABLE, v1::ERROR_KIND_UNAVAILABLE,
                                          "WORKER_RESTARTED", "the worker died", 1)));
  expect_client_error([&] { f(Array({1})); }, ErrorKind::Unavailable, "WORKER_RESTARTED",
                      "the worker died");
  EXPECT_EQ(service_.calls("Run"), 6);
}

TEST_F(Call, DoesNotTryAgainForAnAbsentDevice) {
  service_.fail_next("Compile", {service_error(StatusCode::UNAVAILABLE, v1::ERROR_KIND_UNAVAILABLE,
                                               "NO_DEVICE", "there is no device cuda:0 here")});
  expect_client_error([&] { connection_.build(increment(), {.target = "cuda"}); },
                      ErrorKind::Unavailable, "NO_DEVICE", "there is no device cuda:0 here");
  EXPECT_EQ(service_.calls("Compile"), 1);
}

TEST_F(Call, DoesNotRepeatAKernelThatWritesOverItsInput) {
  const Kernel f = connection_.build(increment());
  const RemoteArray a = connection_.upload(Array(std::vector<float>{1}, {1}));
  service_.fail_next("Run", {grpc::Status(StatusCode::UNAVAILABLE, "gone")});
  expect_client_error([&] { f(a, a); }, ErrorKind::Unavailable, "UNREACHABLE",
                      "the service at " + service_.address() + " did not answer: gone");
  EXPECT_EQ(service_.calls("Run"), 1);
}

TEST_F(Call, CarriesTheErrorOfTheService) {
  service_.fail_next("Compile",
                     {service_error(StatusCode::INVALID_ARGUMENT, v1::ERROR_KIND_INVALID_ARGUMENT,
                                    "SCAN_TIME", "reads the future", -1, {"in stage B"})});
  try {
    connection_.build(increment());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.reason(), "SCAN_TIME");
    EXPECT_STREQ(error.what(), "reads the future\nin stage B\n  at program.cc:7");
    EXPECT_EQ(error.notes(), std::vector<std::string>{"in stage B"});
    EXPECT_EQ(error.file(), "program.cc");
    EXPECT_EQ(error.line(), 7);
  }
}

TEST_F(Call, ThrowsTheClassOfEachKind) {
  const auto fails_with = [&](StatusCode code, v1::ErrorKind kind) {
    service_.fail_next("Describe", {service_error(code, kind, "X", "x")});
    connection_.describe();
  };
  EXPECT_THROW(fails_with(StatusCode::FAILED_PRECONDITION, v1::ERROR_KIND_UNSUPPORTED),
               Unsupported);
  EXPECT_THROW(fails_with(StatusCode::DATA_LOSS, v1::ERROR_KIND_HANDLE_LOST), HandleLost);
  EXPECT_THROW(fails_with(StatusCode::RESOURCE_EXHAUSTED, v1::ERROR_KIND_RESOURCE_EXHAUSTED),
               ResourceExhausted);
  EXPECT_THROW(fails_with(StatusCode::UNAUTHENTICATED, v1::ERROR_KIND_UNAUTHENTICATED),
               Unauthenticated);
  EXPECT_THROW(fails_with(StatusCode::INTERNAL, v1::ERROR_KIND_INTERNAL), Internal);
}

TEST_F(Call, EndsAtItsDeadline) {
  const Kernel f = connection_.build(increment());
  service_.run_ms = 5'000;
  expect_client_error([&] { f.call({Array({1})}, {.deadline = std::chrono::milliseconds(50)}); },
                      ErrorKind::DeadlineExceeded, "DEADLINE",
                      "the call did not end before its deadline");
}

TEST_F(Call, SubmitsWithoutWaiting) {
  const Kernel f = connection_.build(increment());
  service_.run_ms = 60'000;
  Future one = f.submit(Array(std::vector<float>{1}, {1}));
  Future two = f.submit(Array(std::vector<float>{2}, {1}));
  EXPECT_EQ(one.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  service_.run_ms = 0;
  EXPECT_EQ(to_string(one.get()), "[2.]");
  EXPECT_EQ(to_string(two.get()), "[3.]");
}

TEST_F(Call, CancelsOnTheService) {
  const Kernel f = connection_.build(increment());
  service_.run_ms = 10'000;
  Future future = f.submit(Array({1}));
  EXPECT_TRUE(eventually([&] { return service_.calls("Run") == 1; }));
  future.cancel();
  expect_client_error([&] { future.get(); }, ErrorKind::Cancelled, "CANCELLED",
                      "the call was cancelled");
  EXPECT_TRUE(eventually([&] { return service_.run_was_cancelled.load(); }));
  EXPECT_EQ(service_.calls("Run"), 1);  // and is not tried again
}

TEST_F(Call, DescribesTheService) {
  const Description description = connection_.describe();
  EXPECT_EQ(description.version, "0.1.0");
  EXPECT_EQ(description.devices.at(0).name, "cpu:0");
  EXPECT_EQ(description.counters.at("compiles"), 3);
  EXPECT_FALSE(description.components.at(1).ok);
}

TEST_F(Call, RunsJobs) {
  const Job job = connection_.submit(increment(), {Array(std::vector<float>{1}, {1})});
  std::vector<std::string_view> phases;
  const JobState last = connection_.job(job.id()).watch(
      [&](const JobState& state) { phases.push_back(name_of(state.phase)); });
  EXPECT_EQ(phases, (std::vector<std::string_view>{"compiling", "running", "done"}));
  EXPECT_EQ(last.seconds, 1.5);
  const JobResult result = job.result();
  EXPECT_EQ(result.outputs.at(0).name, "B");
  EXPECT_EQ(to_string(result.outputs.at(0).value), "[2.]");
  EXPECT_EQ(connection_.jobs().at(0).job, job.id());
  EXPECT_EQ(job.cancel().phase, JobPhase::Cancelled);
}

TEST_F(Call, LeavesTheInputsOfAJobOnTheService) {
  connection_.submit(increment(), {Array({1 << 20})});  // 4 MiB
  EXPECT_EQ(service_.tensors().size(), 1U);
  EXPECT_EQ(service_.calls("Session"), 0);  // it belongs to no session, which would end with us
  EXPECT_EQ(service_.calls("Free"), 0);
}

TEST_F(Call, NamesAnUnknownJob) {
  expect_client_error([&] { connection_.job("job-9").result(); }, ErrorKind::NotFound, "JOB",
                      "there is no job job-9");
}

TEST(Connect, RefusesAnAddressWithoutAPort) {
  expect_client_error([] { connect("localhost"); }, ErrorKind::InvalidArgument, "ADDRESS",
                      "the address localhost is not of the form HOST:PORT or unix:PATH");
}

TEST(Connect, RefusesAFileOfAuthoritiesThatIsNotThere) {
  expect_client_error([] { connect("localhost:1", {.ca = "/nowhere/ca.pem"}); },
                      ErrorKind::NotFound, "CA_FILE",
                      "the file of authorities /nowhere/ca.pem cannot be read");
}

TEST(Connect, RefusesHalfOfACertificate) {
  expect_client_error([] { connect("localhost:1", {.ca = "ca.pem", .cert = "cert.pem"}); },
                      ErrorKind::InvalidArgument, "CERTIFICATE",
                      "a client's certificate and its key are given together or not at all");
  expect_client_error(
      [] { connect("localhost:1", {.cert = "cert.pem", .key = "key.pem"}); },
      ErrorKind::InvalidArgument, "CERTIFICATE",
      "a client's certificate needs TLS: give the authorities of the service, too (ca)");
}

TEST(Connect, SaysThatNobodyAnswers) {
  const Connection connection = connect("unix:/nowhere/kiln.sock");
  expect_client_error([&] { connection.describe(); }, ErrorKind::Unavailable, "UNREACHABLE",
                      "nothing listens at unix:/nowhere/kiln.sock, there is no such socket: start "
                      "kilnd there, or correct the address");
}

}  // namespace
}  // namespace kiln::test
