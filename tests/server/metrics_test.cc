#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/address.h"
#include "server/http/http_server.h"
#include "server/http/pages.h"
#include "tests/server/service_test.h"
#include "tests/support/expect_error.h"

namespace kiln::server {
namespace {

/// Sends `request` to HOST:PORT and reads until the other side closes.
std::string ask(const std::string& address, const std::string& request) {
  const HostPort place = parse_host_port(address);
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(place.port));
  ::inet_pton(AF_INET, place.host.c_str(), &to.sin_addr);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::write(socket.get(), request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char part[4096];
  ssize_t count = 0;
  while ((count = ::read(socket.get(), part, sizeof part)) > 0)
    answer.append(part, static_cast<size_t>(count));
  return answer;
}

std::string get(const std::string& address, const std::string& path) {
  return ask(address, "GET " + path + " HTTP/1.0\r\n\r\n");
}

/// The value of a line `name value` of the metrics; -1 when there is none.
double value_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.rfind(name + " ", 0) == 0) return std::stod(line.substr(name.size() + 1));
  }
  return -1;
}

class MetricsTest : public ServiceTest {
 protected:
  HttpReply page(const std::string& path) const {
    return operator_pages(service_->engine(), service_->server()).at(path)();
  }
  /// A line of the metrics; calls are counted when they end, which their caller may know before.
  bool becomes(const std::string& name, double value) const {
    return eventually([&] { return value_of(page("/metrics").body, name) == value; });
  }
};

TEST_F(MetricsTest, CountCallsByMethodAndStatus) {
  const std::string inc = service_->kernel(add_one("inc"));
  EXPECT_TRUE(service_->run(inc, {1, 2}).ok());
  EXPECT_TRUE(service_->run(inc, {1, 2}).ok());
  EXPECT_FALSE(service_->run("kernel-none", {1, 2}).ok());
  const std::string run = R"(kiln_calls_total{method="kiln.v1.KernelService/Run",status=)";
  EXPECT_TRUE(becomes(run + "\"OK\"}", 2));
  EXPECT_TRUE(becomes(run + "\"NOT_FOUND\"}", 1));
  EXPECT_TRUE(becomes(R"(kiln_errors_total{reason="KERNEL"})", 1));
  EXPECT_TRUE(becomes(R"(kiln_runs_total{outcome="done"})", 2));
}

TEST_F(MetricsTest, TakeNoCallerWhoLeavesForAnError) {
  {
    grpc::ClientContext context;
    const auto session = service_->daemon->Session(&context, v1::SessionRequest());
    v1::SessionEvent event;
    ASSERT_TRUE(session->Read(&event));
    context.TryCancel();
    session->Finish();
  }
  EXPECT_TRUE(
      becomes(R"(kiln_calls_total{method="kiln.v1.DaemonService/Session",status="CANCELLED"})", 1));
  EXPECT_NE(page("/").body.find("No call has failed."), std::string::npos);
}

TEST_F(MetricsTest, MeasureInBaseUnits) {
  const std::string inc = service_->kernel(add_one("inc"));
  EXPECT_TRUE(service_->run(inc, {1, 2}).ok());
  const std::string text = page("/metrics").body;
  for (const char* count :
       {R"(kiln_compile_seconds_count)", R"(kiln_queue_seconds_count{queue="cpu:0"})",
        R"(kiln_queue_seconds_count{queue="compiler"})",
        R"(kiln_kernel_seconds_count{device="cpu:0"})"}) {
    EXPECT_EQ(value_of(text, count), 1) << count;
  }
  EXPECT_LT(value_of(text, R"(kiln_kernel_seconds_sum{device="cpu:0"})"), 60);
}

TEST_F(MetricsTest, CountCacheHitsByLevel) {
  service_->kernel(add_one("inc"));
  service_->kernel(add_one("inc"));
  EXPECT_EQ(value_of(page("/metrics").body, R"(kiln_cache_hits_total{level="memory"})"), 1);
  EXPECT_EQ(value_of(page("/metrics").body, "kiln_cache_misses_total"), 1);
  restart();
  service_->kernel(add_one("inc"));
  EXPECT_EQ(value_of(page("/metrics").body, R"(kiln_cache_hits_total{level="disk"})"), 1);
}

TEST_F(MetricsTest, CountBytesOfTensors) {
  const std::string tensor = service_->upload({1, 2, 3});
  std::string bytes;
  EXPECT_TRUE(service_->download(tensor, bytes).ok());
  const std::string text = page("/metrics").body;
  EXPECT_EQ(value_of(text, "kiln_uploaded_bytes_total"), 12);
  EXPECT_EQ(value_of(text, "kiln_downloaded_bytes_total"), 12);
  EXPECT_EQ(value_of(text, "kiln_tensors"), 1);
}

TEST_F(MetricsTest, ShowEveryPhaseOfJobs) {
  v1::SubmitRequest request;
  *request.mutable_kernel() = add_one("inc");
  *request.mutable_run()->add_arguments() = inline_argument({1});
  *request.mutable_run()->add_arguments() = output_argument();
  v1::SubmitResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(service_->jobs->Submit(&context, request, &response).ok());
  EXPECT_TRUE(becomes(R"(kiln_jobs{phase="done"})", 1));
  EXPECT_EQ(value_of(page("/metrics").body, R"(kiln_jobs{phase="failed"})"), 0);
}

TEST_F(MetricsTest, SayThatAWorkerWasRestarted) {
  EXPECT_TRUE(becomes(R"(kiln_device_up{device="cpu:0"})", 1));
  EXPECT_EQ(page("/metrics").status, 200);
  ::kill(service_->engine().cpu_pid(), SIGKILL);
  EXPECT_TRUE(becomes(R"(kiln_worker_restarts_total{worker="device"})", 1));
  EXPECT_TRUE(becomes(R"(kiln_device_up{device="cpu:0"})", 1));
}

/// All that a reader of the table may rely on: the format, and no name without its help.
TEST_F(MetricsTest, HaveATypeAndHelpEach) {
  const std::string text = page("/metrics").body;
  std::istringstream lines(text);
  std::string line;
  std::string typed;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string mark, kind, name;
    words >> mark >> kind >> name;
    if (mark == "#" && kind == "TYPE") typed = name;
    if (mark == "#") continue;
    EXPECT_EQ(line.rfind(typed, 0), 0U) << line << " stands under " << typed;
    EXPECT_NE(text.find("# HELP " + typed + " "), std::string::npos) << typed;
  }
}

TEST_F(MetricsTest, TellProbesWhatIsWrong) {
  EXPECT_EQ(page("/livez").status, 200);
  service_->server().set_serving("");
  EXPECT_EQ(page("/readyz").status, 200);
  EXPECT_EQ(page("/readyz").body, "ok\n");
  service_->server().set_serving("the daemon is ending");
  EXPECT_EQ(page("/readyz").status, 503);
  EXPECT_EQ(page("/readyz").body, "the daemon is ending\n");
  EXPECT_EQ(page("/livez").status, 200);  // a daemon that ends need not be killed
  EXPECT_EQ(value_of(page("/metrics").body, "kiln_ready"), 0);
}

TEST_F(MetricsTest, StatusPageShowsWhatFailedAndEscapesIt) {
  EXPECT_NE(page("/").body.find("No call has failed."), std::string::npos);
  EXPECT_FALSE(service_->run("<script>alert(1)</script>", {1}).ok());
  EXPECT_TRUE(
      eventually([&] { return page("/").body.find("&lt;script&gt;") != std::string::npos; }));
  const std::string html = page("/").body;
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http://"), std::string::npos);  // nothing from elsewhere
  EXPECT_EQ(html.find("https://"), std::string::npos);
  EXPECT_NE(html.find("cpu:0"), std::string::npos);
  EXPECT_NE(html.find("kiln.v1.KernelService/Run"), std::string::npos);
}

TEST_F(MetricsTest, GiveBackTheRequestIdOfAnError) {
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "mine-7");
  v1::RunRequest request;
  request.set_kernel_id("kernel-none");
  v1::RunResponse response;
  EXPECT_FALSE(service_->kernels->Run(&context, request, &response).ok());
  EXPECT_TRUE(eventually([&] { return page("/").body.find("mine-7") != std::string::npos; }));
}

TEST(HttpServer, ServesItsPagesAndNothingElse) {
  const HttpServer server("127.0.0.1:0", {{"/", [] { return HttpReply{.body = "hello"}; }}});
  const std::string answer = get(server.address(), "/");
  EXPECT_EQ(answer.rfind("HTTP/1.0 200 OK\r\n", 0), 0U) << answer;
  EXPECT_NE(answer.find("\r\n\r\nhello"), std::string::npos);
  EXPECT_NE(answer.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  EXPECT_NE(get(server.address(), "/etc/passwd").find(" 404 "), std::string::npos);
  EXPECT_NE(ask(server.address(), "POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\nx").find(" 501 "),
            std::string::npos);
  const std::string long_line = "GET /" + std::string(100'000, 'x') + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(ask(server.address(), long_line).find(" 200 "), std::string::npos);
  EXPECT_EQ(ask(server.address(), "\x16\x03\x01\r\n\r\n").find(" 200 "), std::string::npos);
  EXPECT_NE(get(server.address(), "/").find("hello"), std::string::npos);  // it lives
}

TEST(HttpServer, SaysWhatIsWrongWithAnAddress) {
  testing::expect_error([] { HttpServer("here", {}); }, ErrorKind::InvalidArgument,
                        "the address here is not HOST:PORT");
  testing::expect_error([] { HttpServer("127.0.0.1:80000", {}); }, ErrorKind::InvalidArgument,
                        "the port of 127.0.0.1:80000 is 80000, but must be at most 65535");
  const HttpServer first("127.0.0.1:0", {});
  testing::expect_error([&] { HttpServer(first.address(), {}); }, ErrorKind::Unavailable,
                        "cannot listen on " + first.address() +
                            " for metrics; the address is in use, or not of this host");
}

}  // namespace
}  // namespace kiln::server
