#include <cstdlib>
#include <fstream>

#include <sys/stat.h>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

constexpr const char* kRefusal =
    "this daemon asks for a token, and the one given is missing or wrong";

class Security : public ::testing::Test {
 protected:
  void start(const GrpcOptions& options) {
    service_ = std::make_unique<Service>(quick_options(folder_.path().string()), options);
  }
  std::shared_ptr<TokenFile> token_file() const {
    const std::string path = (folder_.path() / "token").string();
    std::ofstream(path) << "secret\n";
    return std::make_shared<TokenFile>(path);
  }
  static grpc::Status describe(v1::DaemonService::Stub& stub, const std::string& header) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    if (!header.empty()) context.AddMetadata("authorization", header);
    v1::DescribeResponse response;
    return stub.Describe(&context, v1::DescribeRequest(), &response);
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Service> service_;
};

TEST_F(Security, LetsInWhoHasTheToken) {
  GrpcOptions options;
  options.tokens = token_file();
  start(options);
  EXPECT_TRUE(describe(*service_->daemon, "Bearer secret").ok());
  for (const char* header : {"", "Bearer secre", "Bearer secrex", "Bearer secret2", "secret"}) {
    expect_status(describe(*service_->daemon, header), grpc::StatusCode::UNAUTHENTICATED, "TOKEN",
                  kRefusal);
  }
}

TEST_F(Security, AsksForTheTokenOnStreamsToo) {
  GrpcOptions options;
  options.tokens = token_file();
  start(options);
  std::string bytes;
  expect_status(service_->download("x", bytes), grpc::StatusCode::UNAUTHENTICATED, "TOKEN",
                kRefusal);
  expect_status(service_->upload(header_of(1), {}, bytes), grpc::StatusCode::UNAUTHENTICATED,
                "TOKEN", kRefusal);
  grpc::ClientContext session;
  EXPECT_EQ(service_->daemon->Session(&session, v1::SessionRequest())->Finish().error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext watch;
  EXPECT_EQ(service_->jobs->Watch(&watch, v1::WatchRequest())->Finish().error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(Security, ServesTls) {
  const std::string folder = folder_.path().string();
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
      "/CN=localhost -addext subjectAltName=DNS:localhost -keyout " +
      folder + "/key.pem -out " + folder + "/cert.pem 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto read = [&](const char* name) {
    std::ifstream file(folder_.path() / name);
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  };
  GrpcOptions options;
  options.listen = "localhost:0";
  options.certificate = read("cert.pem");
  options.private_key = read("key.pem");
  start(options);
  EXPECT_NE(service_->server().address(), "localhost:0");
  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = options.certificate;
  const auto safe = v1::DaemonService::NewStub(service_->channel(grpc::SslCredentials(trust)));
  const grpc::Status status = describe(*safe, "");
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(describe(*service_->daemon, "").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Security, KeepsItsSocketToItsUser) {
  GrpcOptions options;
  options.listen = "unix:" + (folder_.path() / "private.sock").string();
  start(options);
  struct stat status {};
  ASSERT_EQ(::stat((folder_.path() / "private.sock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace kiln::server
