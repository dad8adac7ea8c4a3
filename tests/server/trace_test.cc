#include "server/trace.h"

#include <map>

#include <unistd.h>

#include "kiln/v1/trace.grpc.pb.h"
#include "runtime/core/host_clock.h"
#include "server/metrics/spans.h"
#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

constexpr const char* kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr const char* kTrace = "0af7651916cd43dd8448eb211c80319c";

TEST(TraceId, IsTakenFromAWellFormedParent) {
  EXPECT_EQ(trace_id_of(kParent), kTrace);
  EXPECT_EQ(trace_id_of(std::string("42") + (kParent + 2) + "-later"), kTrace);
}

TEST(TraceId, IsNoneWhereTheParentIsMalformed) {
  const std::string parent = kParent;
  EXPECT_EQ(trace_id_of(""), "");
  for (size_t i = 0; i < parent.size(); ++i) {
    std::string wrong = parent;
    wrong[i] = 'X';
    EXPECT_EQ(trace_id_of(wrong), "") << wrong;
    EXPECT_EQ(trace_id_of(parent.substr(0, i)), "");
  }
  EXPECT_EQ(trace_id_of(parent + "-more"), "");  // version 00 has no more
  EXPECT_EQ(trace_id_of("ff" + parent.substr(2)), "");
  EXPECT_EQ(trace_id_of("42" + parent.substr(2) + "more"), "");
  EXPECT_EQ(trace_id_of("00-" + std::string(32, '0') + parent.substr(35)), "");
  EXPECT_EQ(trace_id_of(parent.substr(0, 36) + std::string(16, '0') + "-01"), "");
}

class Traced : public ServiceTest {
 protected:
  grpc::Status run(const std::string& kernel, v1::RunResponse& response) {
    v1::RunRequest request;
    request.set_kernel_id(kernel);
    *request.add_arguments() = inline_argument({1});
    *request.add_arguments() = output_argument();
    grpc::ClientContext context;
    context.AddMetadata("traceparent", kParent);
    return service_->kernels->Run(&context, request, &response);
  }
};

TEST(Spans, AreOfOneTenantsTraceAndTheLatest) {
  Spans spans(3);
  spans.add("alice", "", {.name = "none"});
  for (const char* const name : {"a", "b", "c", "d"})
    spans.add("alice", "1", {.name = name});
  EXPECT_EQ(spans.of("alice", "1").size(), 3U);
  EXPECT_EQ(spans.of("alice", "1").front().name, "b");
  EXPECT_TRUE(spans.of("bob", "1").empty());
  EXPECT_TRUE(spans.of("alice", "2").empty());
}

TEST_F(Traced, SpansAreTold) {
  const int64_t before = nanoseconds(Clock::now());
  v1::RunResponse ran;
  ASSERT_TRUE(run(service_->kernel(add_one("inc")), ran).ok());
  const auto traces = v1::TraceService::NewStub(service_->channel());
  grpc::ClientContext context;
  v1::SpansRequest request;
  request.set_trace(kTrace);
  v1::SpansResponse response;
  ASSERT_TRUE(traces->Spans(&context, request, &response).ok());
  std::map<std::string, v1::Span> spans;
  for (const v1::Span& span : response.spans())
    spans[span.name()] = span;
  ASSERT_TRUE(spans.contains("run inc") && spans.contains("queue"));
  EXPECT_EQ(spans["run inc"].process(), "kilnd");
  EXPECT_EQ(spans["run inc"].pid(), static_cast<uint32_t>(::getpid()));
  EXPECT_LE(before, spans["run inc"].begin());
  EXPECT_LE(spans["run inc"].begin(), spans["queue"].begin());
  EXPECT_LE(spans["queue"].end(), spans["run inc"].end());
  EXPECT_LE(spans["run inc"].end(), response.now());
}

TEST_F(Traced, TimingsAndErrorsNameTheTrace) {
  v1::RunResponse response;
  ASSERT_TRUE(run(service_->kernel(add_one("inc")), response).ok());
  EXPECT_EQ(response.timings().trace(), kTrace);
  EXPECT_FALSE(run(service_->kernel(add_one("fails")), response).ok());
  ASSERT_FALSE(service_->engine().errors().list().empty());
  EXPECT_EQ(service_->engine().errors().list().front().trace, kTrace);
}

}  // namespace
}  // namespace kiln::server
