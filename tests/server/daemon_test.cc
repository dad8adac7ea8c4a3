#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/server/service_test.h"

namespace kiln::server {
namespace {

using std::chrono::milliseconds;
using testing::Daemon;
using testing::Ended;
using testing::run_to_end;

Daemon::Options fake_daemon(std::vector<std::string> flags = {}) {
  Daemon::Options options;
  options.program = KILN_FAKE_KILND;
  options.flags = std::move(flags);
  return options;
}

Ended refused(const std::vector<std::string>& flags) { return run_to_end(KILN_FAKE_KILND, flags); }

/// A client of a daemon in another process.
struct Client {
  explicit Client(const Daemon& daemon) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel = grpc::CreateCustomChannel(daemon.address(), grpc::InsecureChannelCredentials(), own);
    kernels = v1::KernelService::NewStub(channel);
    daemon_service = v1::DaemonService::NewStub(channel);
  }
  std::string kernel(const v1::CompileRequest& request) const {
    grpc::ClientContext context;
    v1::CompileResponse response;
    EXPECT_TRUE(kernels->Compile(&context, request, &response).ok());
    return response.kernel_id();
  }
  grpc::Status run(const std::string& kernel) const {
    grpc::ClientContext context;
    v1::RunRequest run;
    run.set_kernel_id(kernel);
    *run.add_arguments() = inline_argument({1});
    *run.add_arguments() = output_argument();
    v1::RunResponse response;
    return kernels->Run(&context, run, &response);
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::KernelService::Stub> kernels;
  std::unique_ptr<v1::DaemonService::Stub> daemon_service;
};

TEST(Kilnd, TakesAFreePortAndSaysWhich) {
  Daemon::Options options = fake_daemon();
  options.listen = "127.0.0.1:0";
  Daemon daemon(options);
  EXPECT_EQ(daemon.address().rfind("127.0.0.1:", 0), 0U);
  EXPECT_NE(daemon.address(), "127.0.0.1:0");
  const Client client(daemon);
  EXPECT_TRUE(client.run(client.kernel(add_one("inc"))).ok());
  EXPECT_EQ(daemon.stop(), 0);
}

TEST(Kilnd, FinishesWhatRunsBeforeItEnds) {
  Daemon daemon(fake_daemon());
  const Client client(daemon);
  const std::string slow = client.kernel(add_one("slow"));
  std::atomic<int> done{0};
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) {
      const grpc::Status status = client.run(slow);
      if (status.ok()) {
        ++done;
      } else {
        // A call that arrives while gRPC closes is CANCELLED before it is taken; clients retry
        // both.
        EXPECT_TRUE(status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                    status.error_code() == grpc::StatusCode::CANCELLED)
            << status.error_code() << ": " << status.error_message();
        stop = true;
      }
    }
  });
  EXPECT_TRUE(eventually([&] { return done > 0; }));
  EXPECT_EQ(daemon.stop(), 0);
  caller.join();
  EXPECT_GT(done.load(), 1);
}

/// grpc.health.v1.Health/Check without its generated code: 1 is SERVING, 2 NOT_SERVING, -1 no
/// answer.
int health_of(const Client& client, const std::string& service) {
  const std::string bytes = "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  std::promise<grpc::Status> status;
  grpc::GenericStub stub(client.channel);
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status ended) { status.set_value(std::move(ended)); });
  if (!status.get_future().get().ok()) return -1;
  std::vector<grpc::Slice> slices;
  response.Dump(&slices);
  std::string answer;
  for (const grpc::Slice& part : slices)
    answer.append(part.begin(), part.end());
  return answer.size() == 2 && answer[0] == 8 ? answer[1] : -1;
}

TEST(Kilnd, TellsHealthChecksThatItEnds) {
  const testing::TemporaryFolder folder;
  Daemon::Options options = fake_daemon();
  options.environment = {"KILN_FAKE_FOLDER=" + folder.path().string()};
  Daemon daemon(options);
  const Client client(daemon);
  const std::string waits = client.kernel(add_one("waits"));
  std::thread caller([&] { EXPECT_TRUE(client.run(waits).ok()); });
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(folder.path() / "waits.begun"); }));
  for (const char* service : {"", "kiln.v1.KernelService", "kiln.v1.TensorService"}) {
    EXPECT_TRUE(eventually([&] { return health_of(client, service) == 1; })) << service;
  }
  daemon.signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return health_of(client, "kiln.v1.KernelService") == 2; }));
  std::ofstream(folder.path() / "go") << "go";
  caller.join();
  EXPECT_EQ(daemon.wait(kLong), 0);
}

TEST(Kilnd, DoesNotWaitForEverForAKernel) {
  Daemon daemon(fake_daemon({"--grace", "0.5"}));
  const Client client(daemon);
  const std::string hangs = client.kernel(add_one("hangs"));
  std::thread caller([&] { EXPECT_FALSE(client.run(hangs).ok()); });
  std::this_thread::sleep_for(milliseconds(300));
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(daemon.stop(), 4);  // not all ended
  EXPECT_LT(seconds_between(begin, Clock::now()), 4.0);
  caller.join();
}

/// The next datagram that a service manager gets.
std::string told(const Fd& socket) {
  char text[64];
  const ssize_t length = ::recv(socket.get(), text, sizeof text, 0);
  return {text, length < 0 ? 0 : static_cast<size_t>(length)};
}

TEST(Kilnd, TellsTheServiceManagerWhenItIsReadyAndWhenItEnds) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "notify").string();
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  Daemon::Options options = fake_daemon();
  options.environment = {"NOTIFY_SOCKET=" + path};
  Daemon daemon(options);
  EXPECT_EQ(told(socket), "READY=1");
  EXPECT_EQ(daemon.stop(), 0);
  EXPECT_EQ(told(socket), "STOPPING=1");
}

TEST(Kilnd, IsNotReadyWhileItComputesNonsense) {
  const testing::TemporaryFolder folder;
  Daemon::Options options = fake_daemon();
  options.environment = {"KILN_FAKE_FOLDER=" + folder.path().string()};
  std::ofstream(folder.path() / "wrong_canary") << "wrong";
  Daemon daemon(options);
  const Client client(daemon);
  EXPECT_TRUE(eventually(
      [&] { return daemon.log().find("the canary kernel got 3 for 1 + 1") != std::string::npos; }));
  EXPECT_TRUE(eventually([&] { return health_of(client, "") == 2; }));
  EXPECT_TRUE(client.run(client.kernel(add_one("inc"))).ok());  // who calls it is answered
}

TEST(Kilnd, EndsWhenNobodyIsThere) {
  Daemon daemon(fake_daemon({"--idle-exit", "3"}));
  {
    const Client client(daemon);
    grpc::ClientContext context;
    const auto session = client.daemon_service->Session(&context, v1::SessionRequest());
    v1::SessionEvent event;
    ASSERT_TRUE(session->Read(&event));
    EXPECT_EQ(daemon.wait(milliseconds(4000)), -1);
    context.TryCancel();
  }
  EXPECT_EQ(daemon.wait(kLong), 0);
}

TEST(Kilnd, EndsItsWorkersWhenItIsKilled) {
  Daemon daemon(fake_daemon());
  const std::vector<pid_t> workers = daemon.children("kiln-worker");
  ASSERT_GE(workers.size(), 1U);
  daemon.signal(SIGKILL);
  EXPECT_EQ(daemon.wait(kLong), 128 + SIGKILL);
  for (const pid_t worker : workers) {
    EXPECT_TRUE(eventually([&] { return ::kill(worker, 0) != 0; }));
  }
}

TEST(Kilnd, DoesNotTakeTheSocketOfAnother) {
  Daemon daemon(fake_daemon());
  const Ended second = refused({"--listen", daemon.address()});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.output, "kilnd: another daemon listens on " + daemon.address() + " already\n");
}

TEST(Kilnd, ReadsItsSettingsFromAFileAndFlagsWin) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "kilnd.toml")
      << "cache-dir = \"/nowhere\"\ngrace = 1.5\n[limits]\nqueue = 7\n";
  Daemon daemon(fake_daemon({"--config", (folder.path() / "kilnd.toml").string()}));
  EXPECT_TRUE(std::filesystem::exists(daemon.folder() / "cache" / "artifacts"));
}

TEST(Kilnd, LogsJsonWhenAskedTo) {
  Daemon daemon(fake_daemon({"--log-format", "json"}));
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(kLong), 0);
  const std::string log = daemon.log();
  EXPECT_NE(log.find("\"level\":\"info\",\"message\":\"asked to end\"}\n"), std::string::npos)
      << log;
}

TEST(Kilnd, RefusesSettingsItDoesNotKnow) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "kilnd.toml").string();
  std::ofstream(path) << "cachedir = \"x\"\n";
  const Ended unknown = refused({"--config", path});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.output,
            "kilnd: " + path + ": there is no setting cachedir; did you mean cache-dir\n");
  std::ofstream(path) << "threads = \"many\"\n";
  const Ended wrong = refused({"--config", path});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.output,
            "kilnd: " + path + ": threads in the configuration must be a whole number\n");
}

TEST(Kilnd, DoesNotServeStrangersUnasked) {
  const Ended open = refused({"--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_EQ(
      open.output,
      "kilnd: 0.0.0.0:0 can be reached from other machines; give --credentials, a folder in which "
      "it makes a token and a certificate, or --token-file (and --tls-cert and --tls-key), or "
      "--insecure to serve everybody\n");
  const testing::TemporaryFolder folder;
  const std::string token = (folder.path() / "token").string();
  std::ofstream(token) << "secret\n";
  const std::vector<std::string> permissions[] = {{"--insecure"}, {"--token-file", token}};
  for (const std::vector<std::string>& flags : permissions) {
    Daemon::Options options = fake_daemon(flags);
    options.listen = "0.0.0.0:0";
    const Daemon daemon(options);
    const bool warned =
        daemon.log().find("the token can be read on the network") != std::string::npos;
    EXPECT_EQ(warned, flags[0] == "--token-file") << daemon.log();
  }
}

TEST(Kilnd, LogsNoToken) {
  const testing::TemporaryFolder folder;
  const std::string tokens = (folder.path() / "tokens").string();
  std::ofstream(tokens) << "alice hush-hush\n";
  Daemon daemon(fake_daemon({"--token-file", tokens, "--log-level", "debug"}));
  const Client client(daemon);
  const auto lets_in = [&](const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::DescribeResponse response;
    return client.daemon_service->Describe(&context, v1::DescribeRequest(), &response).ok();
  };
  EXPECT_TRUE(lets_in("hush-hush"));
  std::ofstream(tokens) << "alice hush-hush bob\n";
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(lets_in("hush-wrong"));
    return daemon.log().find("is neither TOKEN nor TENANT TOKEN") != std::string::npos;
  }));
  EXPECT_EQ(daemon.stop(), 0);
  EXPECT_EQ(daemon.log().find("hush"), std::string::npos) << daemon.log();
}

TEST(Kilnd, RefusesAddressesThatAreNone) {
  EXPECT_EQ(refused({"--listen", "here"}).output,
            "kilnd: the address here is neither unix:PATH nor HOST:PORT\n");
  for (const char* port : {"80000", "65536", "123456"}) {
    EXPECT_EQ(refused({"--listen", std::string("127.0.0.1:") + port}).output,
              fmt::format("kilnd: the port of 127.0.0.1:{} is {}, but must be at most 65535\n",
                          port, port));
  }
  EXPECT_EQ(refused({"--nonsense"}).exit_code, 2);
}

}  // namespace
}  // namespace kiln::server
