#include <atomic>
#include <fstream>
#include <thread>

#include "server/rpc/token_file.h"
#include "tests/server/service_test.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

/// A service with two tenants, and calls of each.
class TwoTenants : public ServiceTest {
 protected:
  TwoTenants() {
    write_tokens("alice alices-token\nbob bobs-token\n");
    start(usual_options());
  }
  void start(const EngineOptions& options) {
    GrpcOptions grpc;
    grpc.tokens = std::make_shared<TokenFile>(token_file());
    service_.reset();
    service_ = std::make_unique<Service>(options, grpc);
  }

  std::string token_file() const { return (folder_.path() / "tokens").string(); }
  void write_tokens(const std::string& text) const {
    const std::string fresh = token_file() + ".new";
    std::ofstream(fresh) << text;
    std::filesystem::rename(fresh, token_file());
  }

  static void show(grpc::ClientContext& context, const std::string& tenant) {
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    context.AddMetadata("authorization", "Bearer " + tenant + "s-token");
  }

  template <typename Stub, typename Request, typename Response>
  static grpc::Status call(const std::string& tenant, Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Response*),
                           const Request& request, Response& response) {
    grpc::ClientContext context;
    show(context, tenant);
    return (stub.*method)(&context, request, &response);
  }

  std::string put(const std::string& tenant, const std::vector<float>& values) {
    v1::PutRequest request;
    *request.mutable_header() = header_of(static_cast<int64_t>(values.size()));
    request.set_data(bytes_of(values));
    v1::UploadResponse response;
    const grpc::Status status =
        call(tenant, *service_->tensors, &v1::TensorService::Stub::Put, request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.tensor();
  }
  grpc::Status download(const std::string& tenant, const std::string& tensor,
                        std::vector<float>* values = nullptr) {
    grpc::ClientContext context;
    show(context, tenant);
    v1::DownloadRequest request;
    request.set_tensor(tensor);
    const auto stream = service_->tensors->Download(&context, request);
    std::string bytes;
    v1::DownloadResponse part;
    while (stream->Read(&part))
      bytes += part.chunk();
    if (values != nullptr) *values = floats_of(bytes);
    return stream->Finish();
  }
  std::string compile(const std::string& tenant, const std::string& kernel) {
    v1::CompileResponse response;
    EXPECT_TRUE(call(tenant, *service_->kernels, &v1::KernelService::Stub::Compile, add_one(kernel),
                     response)
                    .ok());
    return response.kernel_id();
  }
  grpc::Status run(const std::string& tenant, const v1::RunRequest& request) {
    v1::RunResponse response;
    return call(tenant, *service_->kernels, &v1::KernelService::Stub::Run, request, response);
  }
  std::string submit(const std::string& tenant, const std::string& kernel) {
    v1::SubmitRequest request;
    *request.mutable_kernel() = add_one(kernel);
    *request.mutable_run()->add_arguments() = inline_argument({1});
    *request.mutable_run()->add_arguments() = output_argument();
    v1::SubmitResponse response;
    const grpc::Status status =
        call(tenant, *service_->jobs, &v1::JobService::Stub::Submit, request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job();
  }
  grpc::Status cancel(const std::string& tenant, const std::string& job) {
    v1::CancelRequest request;
    request.set_job(job);
    v1::CancelResponse response;
    return call(tenant, *service_->jobs, &v1::JobService::Stub::Cancel, request, response);
  }
  grpc::Status result(const std::string& tenant, const std::string& job) {
    v1::ResultRequest request;
    request.set_job(job);
    v1::RunResponse response;
    return call(tenant, *service_->jobs, &v1::JobService::Stub::Result, request, response);
  }
  grpc::Status watch(const std::string& tenant, const std::string& job) {
    grpc::ClientContext context;
    show(context, tenant);
    v1::WatchRequest request;
    request.set_job(job);
    const auto stream = service_->jobs->Watch(&context, request);
    v1::JobState state;
    EXPECT_FALSE(stream->Read(&state)) << "the job of another is shown";
    return stream->Finish();
  }
  std::vector<std::string> list(const std::string& tenant) {
    v1::ListResponse response;
    EXPECT_TRUE(
        call(tenant, *service_->jobs, &v1::JobService::Stub::List, v1::ListRequest(), response)
            .ok());
    std::vector<std::string> jobs;
    for (const v1::JobState& state : response.jobs())
      jobs.push_back(state.job());
    return jobs;
  }
  /// Exactly what is said of a tensor that never was.
  static void expect_unknown(const grpc::Status& status, const std::string& tensor) {
    expect_status(status, grpc::StatusCode::NOT_FOUND, "TENSOR",
                  "there is no tensor " + tensor + "; it was freed, or its session has ended");
  }
};

TEST_F(TwoTenants, DoNotReachTheTensorsOfEachOther) {
  const std::string tensor = put("alice", {1, 2});
  expect_unknown(download("bob", tensor), tensor);

  v1::PutRequest overwrite;
  *overwrite.mutable_header() = header_of(2);
  overwrite.mutable_header()->set_into(tensor);
  overwrite.set_data(bytes_of({7, 7}));
  v1::UploadResponse put_response;
  expect_unknown(
      call("bob", *service_->tensors, &v1::TensorService::Stub::Put, overwrite, put_response),
      tensor);

  v1::RunRequest request;
  request.set_kernel_id(compile("bob", "inc"));
  *request.add_arguments() = tensor_argument(tensor);
  *request.add_arguments() = output_argument();
  expect_unknown(run("bob", request), tensor);

  v1::ListTensorsResponse list;
  EXPECT_TRUE(call("bob", *service_->tensors, &v1::TensorService::Stub::ListTensors,
                   v1::ListTensorsRequest(), list)
                  .ok());
  EXPECT_EQ(list.tensors_size(), 0);
  EXPECT_EQ(list.bytes(), 0);

  v1::FreeRequest free;
  free.add_tensors(tensor);
  v1::FreeResponse freed;
  EXPECT_TRUE(call("bob", *service_->tensors, &v1::TensorService::Stub::Free, free, freed).ok());
  EXPECT_EQ(freed.freed(), 0U);

  std::vector<float> values;
  EXPECT_TRUE(download("alice", tensor, &values).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 2}));
  EXPECT_TRUE(call("alice", *service_->tensors, &v1::TensorService::Stub::Free, free, freed).ok());
  EXPECT_EQ(freed.freed(), 1U);
}

TEST_F(TwoTenants, DoNotReachTheSessionsOfEachOther) {
  grpc::ClientContext context;
  show(context, "alice");
  const auto stream = service_->daemon->Session(&context, v1::SessionRequest());
  v1::SessionEvent event;
  ASSERT_TRUE(stream->Read(&event));
  v1::PutRequest request;
  *request.mutable_header() = header_of(1, event.session());
  request.set_data(bytes_of({1}));
  v1::UploadResponse response;
  expect_status(call("bob", *service_->tensors, &v1::TensorService::Stub::Put, request, response),
                grpc::StatusCode::NOT_FOUND, "SESSION",
                "session " + event.session() + " has ended; open another");
  EXPECT_TRUE(
      call("alice", *service_->tensors, &v1::TensorService::Stub::Put, request, response).ok());
  context.TryCancel();
}

TEST_F(TwoTenants, HaveNoMoreTensorsThanEachMay) {
  EngineOptions options = usual_options();
  options.quotas.usual.tensor_bytes = 16;
  start(options);
  put("alice", {1, 2, 3});
  v1::PutRequest request;
  *request.mutable_header() = header_of(2);
  request.set_data(bytes_of({1, 2}));
  v1::UploadResponse response;
  const grpc::Status status =
      call("alice", *service_->tensors, &v1::TensorService::Stub::Put, request, response);
  const std::string refusal =
      "the tensors of this tenant have 12 bytes of the 16 that it may have, and 8 more are needed; "
      "free some";
  expect_status(status, grpc::StatusCode::RESOURCE_EXHAUSTED, "TENSOR_MEMORY", refusal);
  EXPECT_GT(retry_seconds_of(status), 0);
  // What a call leaves there counts, too; what it returns does not.
  v1::RunRequest run_request;
  run_request.set_kernel_id(compile("alice", "inc"));
  *run_request.add_arguments() = inline_argument({1, 2});
  *run_request.add_arguments() = output_argument(true);
  expect_status(run("alice", run_request), grpc::StatusCode::RESOURCE_EXHAUSTED, "TENSOR_MEMORY",
                refusal);
  *run_request.mutable_arguments(1) = output_argument();
  EXPECT_TRUE(run("alice", run_request).ok());
  put("bob", {1, 2, 3});
}

TEST_F(TwoTenants, DoNotTakeEachOthersPlacesInAQueue) {
  EngineOptions options = usual_options();
  options.queue = 1;
  options.cpu_workers = 1;
  start(options);
  v1::RunRequest waits;
  waits.set_kernel_id(compile("alice", "waits"));
  *waits.add_arguments() = inline_argument({1});
  *waits.add_arguments() = output_argument();
  std::atomic<int> refused{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      const grpc::Status status = run("alice", waits);
      if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) ++refused;
    });
  }
  // One runs, one waits.
  EXPECT_TRUE(eventually([&] { return refused == 2; }));
  v1::RunRequest inc = waits;
  inc.set_kernel_id(compile("bob", "inc"));
  callers.emplace_back([&] { EXPECT_TRUE(run("bob", inc).ok()); });
  EXPECT_TRUE(eventually([&] { return service_->counter("queued_runs") == 3; }));
  let_go();
  for (std::thread& caller : callers)
    caller.join();
}

TEST_F(TwoTenants, HaveDevicesForNoLongerThanEachMay) {
  EngineOptions options = usual_options();
  options.quotas.named["alice"].device_seconds = 1e-9;
  start(options);
  v1::RunRequest request;
  request.set_kernel_id(compile("alice", "inc"));
  *request.add_arguments() = inline_argument({1});
  *request.add_arguments() = output_argument();
  EXPECT_TRUE(run("alice", request).ok());
  const grpc::Status status = run("alice", request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail_of(status).reason(), "DEVICE_SECONDS");
  EXPECT_GT(retry_seconds_of(status), 0);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(run("bob", request).ok());
}

TEST_F(TwoTenants, HaveAsManyJobsAsEachMay) {
  EngineOptions options = usual_options();
  options.quotas.named["alice"].jobs = 1;
  start(options);
  const std::string job = submit("alice", "waits");
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("inc");
  *request.mutable_run()->add_arguments() = inline_argument({1});
  *request.mutable_run()->add_arguments() = output_argument();
  v1::SubmitResponse response;
  const grpc::Status status =
      call("alice", *service_->jobs, &v1::JobService::Stub::Submit, request, response);
  expect_status(status, grpc::StatusCode::RESOURCE_EXHAUSTED, "JOB_COUNT",
                "1 jobs of this tenant are unfinished, as many as it may have; wait until one has "
                "ended, or cancel one");
  EXPECT_GT(retry_seconds_of(status), 0);
  let_go();
  EXPECT_TRUE(result("alice", job).ok());
}

TEST_F(TwoTenants, DoNotReachTheJobsOfEachOther) {
  const std::string job = submit("alice", "waits");
  ASSERT_TRUE(has_begun("waits"));
  const std::string unknown = "there is no job " + job + "; results are kept for 24 hours";
  for (const grpc::Status& status : {cancel("bob", job), result("bob", job), watch("bob", job)}) {
    expect_status(status, grpc::StatusCode::NOT_FOUND, "JOB", unknown);
  }
  EXPECT_EQ(list("bob"), std::vector<std::string>());
  EXPECT_EQ(list("alice"), std::vector<std::string>{job});
  let_go();
  EXPECT_TRUE(result("alice", job).ok());
}

TEST_F(TwoTenants, DoNotJoinASearchOnTheDataOfAnother) {
  v1::TuneRequest request;
  *request.mutable_kernel() = add_one("inc");
  *request.add_arguments() = tensor_argument(put("alice", {1, 2}));
  *request.add_arguments() = output_argument();
  grpc::ClientContext context;
  show(context, "bob");
  const auto stream = service_->kernels->Tune(&context, request);
  v1::TuneEvent event;
  while (stream->Read(&event))
    EXPECT_FALSE(event.has_trial());
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(TwoTenants, AreKnownByTheTokensThatTheFileHasNow) {
  const std::string tensor = put("alice", {1});
  write_tokens("alice another\n");
  EXPECT_TRUE(eventually(
      [&] { return download("alice", tensor).error_code() == grpc::StatusCode::UNAUTHENTICATED; }));
  // What cannot be read changes nothing.
  write_tokens("alice alices-token\n");
  EXPECT_TRUE(eventually([&] { return download("alice", tensor).ok(); }));
  write_tokens("one two three\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_TRUE(download("alice", tensor).ok());
}

TEST_F(TwoTenants, SayHowUrgentACallIs) {
  for (const auto& [priority, is_known] :
       {std::pair{"low", true}, {"normal", true}, {"high", true}, {"urgent", false}}) {
    grpc::ClientContext context;
    show(context, "alice");
    context.AddMetadata("kiln-priority", priority);
    v1::DescribeResponse response;
    const grpc::Status status =
        service_->daemon->Describe(&context, v1::DescribeRequest(), &response);
    EXPECT_EQ(status.ok(), is_known) << priority;
    if (is_known) continue;
    expect_status(status, grpc::StatusCode::INVALID_ARGUMENT, "PRIORITY",
                  "the priority is urgent, but must be low, normal or high");
  }
}

class Tokens : public ::testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "tokens").string(); }
  TokenFile read(const std::string& text) const {
    std::ofstream(path(), std::ios::trunc) << text;
    return TokenFile(path());
  }
  void expect_refused(const std::string& text, const std::string& message) const {
    testing::expect_error([&] { read(text); }, ErrorKind::InvalidArgument, message);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Tokens, StandAloneOrBehindTheirTenant) {
  TokenFile one = read("secret\n");
  EXPECT_EQ(one.tenant_of("secret"), "");
  EXPECT_EQ(one.tenant_of("secre"), std::nullopt);
  EXPECT_EQ(one.tenant_of(""), std::nullopt);
  TokenFile several = read("# who may use it\n\nalice a1\nalice a2\r\n  bob   b1  \nrest\n");
  EXPECT_EQ(several.tenant_of("a1"), "alice");
  EXPECT_EQ(several.tenant_of("a2"), "alice");
  EXPECT_EQ(several.tenant_of("b1"), "bob");
  EXPECT_EQ(several.tenant_of("rest"), "");
  EXPECT_EQ(several.tenant_of("alice"), std::nullopt);
  EXPECT_EQ(several.tenant_of("#"), std::nullopt);
}

TEST_F(Tokens, AreNamedInNoError) {
  expect_refused("a b c\n", "line 1 of " + path() +
                                " is neither TOKEN nor TENANT TOKEN, with a name of letters, "
                                "digits, dots, - and _");
  expect_refused("x\nuid:0 hush\n", "line 2 of " + path() +
                                        " is neither TOKEN nor TENANT TOKEN, with a name of "
                                        "letters, digits, dots, - and _");
  expect_refused("alice hush\nbob hush\n", "line 2 of " + path() + " gives two tenants one token");
  expect_refused("# nothing\n", "the token in " + path() + " is empty");
  expect_refused("", "cannot read the token in " + path());
}

}  // namespace
}  // namespace kiln::server
