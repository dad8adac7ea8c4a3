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

class Certificates : public Security {
 protected:
  /// One of the authority's, for localhost, in NAME.pem and NAME.key.
  void make(const std::string& name, const std::string& subject) const {
    run("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj " + subject +
        " -keyout " + name + ".key -out " + name + ".csr");
    run("x509 -req -in " + name +
        ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "
        "names -out " +
        name + ".pem");
  }
  void run(const std::string& arguments) const {
    const std::string command = "cd " + folder_.path().string() + " && openssl " + arguments;
    ASSERT_EQ(std::system((command + " 2>/dev/null").c_str()), 0) << command;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_.path() / name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  /// A client that shows the certificate of this name; none: none.
  grpc::Status describe_as(const std::string& name) const {
    grpc::SslCredentialsOptions trust;
    trust.pem_root_certs = read("ca.pem");
    if (!name.empty()) trust.pem_cert_chain = read(name + ".pem");
    if (!name.empty()) trust.pem_private_key = read(name + ".key");
    return describe(*v1::DaemonService::NewStub(service_->channel(grpc::SslCredentials(trust))),
                    "");
  }

  Certificates() {
    std::ofstream(folder_.path() / "names") << "subjectAltName=DNS:localhost";
    run("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=authority -keyout ca.key -out ca.pem");
    make("kilnd", "/CN=localhost");
    GrpcOptions options;
    options.listen = "localhost:0";
    options.certificate = read("kilnd.pem");
    options.private_key = read("kilnd.key");
    options.client_authorities = read("ca.pem");
    start(options);
  }
};

TEST_F(Certificates, LetInWhoIsNamedByOne) {
  make("alice", "/CN=alice");
  make("nameless", "/O=alice");
  const grpc::Status status = describe_as("alice");
  EXPECT_TRUE(status.ok()) << status.error_message();
  expect_status(describe_as("nameless"), grpc::StatusCode::UNAUTHENTICATED, "CERTIFICATE",
                "the client's certificate has no common name, by which this daemon knows tenants");
  EXPECT_EQ(describe_as("").error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Certificates, OfOthersAreWorthNothing) {
  make("alice", "/CN=alice");
  run("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=alice "
      "-keyout alice.key -out alice.pem");
  EXPECT_EQ(describe_as("alice").error_code(), grpc::StatusCode::UNAVAILABLE);
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
