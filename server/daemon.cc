// The life of the daemon: check, listen, serve until a signal or until it is idle, drain. Draining
// goes in steps: health checks first, then no new calls, then what runs until the grace is over,
// and at last the end of the process, whatever hangs.
#include "server/daemon.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <signal.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/core/large_blocks.h"
#include "server/credentials.h"
#include "server/http/pages.h"
#include "server/own_programs.h"
#include "server/rpc/grpc_server.h"
#include "server/service_notice.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;

constexpr auto kStartLimit = std::chrono::seconds(30);  // for the workers to say what they are
constexpr auto kReplacedLimit = milliseconds(500);  // without clients, once another build is there
constexpr auto kLinger = milliseconds(500);         // for health checks to see that we are ending
constexpr auto kPassing = milliseconds(1000);       // in which a worker that ended is there again
constexpr int kGaveUp = 4;  // exit code: the grace was over before all calls were

sigset_t ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  return signals;
}

/// The message as a JSON string: it may hold names that users chose.
class JsonMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const std::string text(message.payload.data(), message.payload.size());
    const std::string quoted =
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    line.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

void set_up_log(const Config& config) {
  auto logger = spdlog::stderr_logger_mt("kilnd");
  if (config.log_format == "json") {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<JsonMessage>('J');
    formatter->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%J})");
    logger->set_formatter(std::move(formatter));
  } else {
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  }
  logger->set_level(spdlog::level::from_str(config.log_level));
  spdlog::set_default_logger(std::move(logger));
}

std::string read_all(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || contents.empty()) {
    fail(ErrorKind::InvalidArgument, "CONFIG", "cannot read the {} in {}", what, path);
  }
  return contents;
}

GrpcOptions grpc_options(const Config& config) {
  GrpcOptions options;
  options.listen = config.listen;
  if (!config.token_file.empty()) {
    options.tokens = std::make_shared<TokenFile>(config.token_file);
  }
  if (!config.tls_cert.empty()) {
    options.certificate = read_all(config.tls_cert, "certificate");
    options.private_key = read_all(config.tls_key, "private key");
  }
  if (!config.tls_client_ca.empty()) {
    options.client_authorities = read_all(config.tls_client_ca, "authorities of clients");
  }
  return options;
}

/// Makes the folder of the socket, and refuses to take the socket of a daemon that lives.
void prepare_socket(const std::string& listen) {
  if (listen.rfind("unix:", 0) != 0) return;
  const std::string path = listen.substr(5);
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && fs::create_directories(folder, ignored)) ::chmod(folder.c_str(), 0700);

  // A socket that nobody listens on is a leftover, which gRPC removes; one that answers is a
  // daemon's.
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    fail(ErrorKind::Unavailable, "LISTEN", "another daemon listens on {} already", listen);
  }
}

/// Ends the process when draining takes longer than it may, whatever hangs.
class LastResort {
 public:
  explicit LastResort(Clock::duration limit)
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (!done_.wait_for(lock, limit, [&] { return over_; })) {
            spdlog::warn("the grace is over; what still runs is given up");
            ::_exit(kGaveUp);
          }
        }) {}
  ~LastResort() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      done_.notify_one();
    }
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;
};

/// How long nobody need be there for the daemon to end. One that is shared and was built anew ends
/// soon, so that the next client finds the new build.
std::chrono::duration<double> idle_limit(const Config& config, const OwnPrograms& programs) {
  const std::chrono::duration<double> limit(config.idle_exit);
  return programs.replaced() ? std::min<std::chrono::duration<double>>(limit, kReplacedLimit)
                             : limit;
}

/// Until a signal, or until nobody was there for long enough.
void serve(const Config& config, Engine& engine, GrpcServer& server) {
  const sigset_t signals = ending_signals();
  const OwnPrograms programs;
  // How late a signal or a change of health may be seen.
  constexpr timespec kPeriod{.tv_sec = 0, .tv_nsec = 200'000'000};
  Clock::time_point well{};
  while (true) {
    const std::string problem = engine.why_not_ready();
    if (problem.empty()) well = Clock::now();
    // Clients that watch it would leave for a kernel that crashed somebody else's worker.
    server.set_serving(Clock::now() - well < kPassing ? "" : problem);
    if (::sigtimedwait(&signals, nullptr, &kPeriod) > 0) {
      spdlog::info("asked to end");
      return;
    }
    const bool idle = config.idle_exit > 0 && server.active() == 0 &&
                      engine.jobs().unfinished() == 0 &&
                      engine.sessions().idle_for(Clock::now()) >= idle_limit(config, programs);
    if (idle) {
      spdlog::info("nobody was here for {} s", idle_limit(config, programs).count());
      return;
    }
  }
}

/// Whether all that was begun also ended.
bool drain(const Config& config, Engine& engine, GrpcServer& server) {
  const auto grace =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(config.grace));
  const LastResort last_resort(kLinger + grace + std::chrono::seconds(1));
  server.set_serving("the daemon is ending");
  engine.tunes().drain();  // may take minutes, and goes on from its records
  std::this_thread::sleep_for(kLinger);
  server.refuse_calls();
  engine.jobs().drain();  // what has not begun is begun by the next daemon
  const Clock::time_point until = Clock::now() + grace;
  while (Clock::now() < until && (server.active() > 0 || engine.jobs().under_way() > 0)) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  // Only answers that are under way on the wire are waited for then.
  const bool answered = server.active() == 0;
  const bool finished = answered && engine.jobs().under_way() == 0;
  server.shut_down(answered ? milliseconds(200) : milliseconds(0));
  engine.stop();
  return finished;
}

}  // namespace

void block_signals() {
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int run_daemon(const Config& given, std::unique_ptr<Launcher> launcher) {
  try {
    keep_freed_blocks();
    Config config = given;
    const bool is_first_start = use_credentials(config);
    check_config(config);
    block_signals();
    set_up_log(config);
    if (sends_token_in_the_clear(config)) {
      spdlog::warn("without --tls-cert and --tls-key the token can be read on the network");
    }
    const GrpcOptions options = grpc_options(config);
    prepare_socket(config.listen);
    std::vector<v1::CompileRequest> warm_up;
    if (!config.warm_up.empty()) warm_up = read_warm_up_list(config.warm_up);
    Engine engine(config.engine, std::move(launcher));
    if (!engine.wait_until_ready(kStartLimit)) {
      fail(ErrorKind::Unavailable, "WORKER_START",
           "the cpu worker did not start; the log above says why");
    }
    engine.warm_up(std::move(warm_up));
    // Only now: a client that finds the address finds a service that knows its devices.
    GrpcServer server(engine, options);
    server.set_serving(engine.why_not_ready());
    std::unique_ptr<HttpServer> pages;
    if (!config.metrics_listen.empty()) {
      pages = std::make_unique<HttpServer>(config.metrics_listen, operator_pages(engine, server));
    }
    std::printf("listening on %s\n", server.address().c_str());
    if (pages) std::printf("metrics on http://%s/\n", pages->address().c_str());
    std::fflush(stdout);
    say_login(config, server.address(), is_first_start);
    notify_service_manager("READY=1");
    serve(config, engine, server);
    notify_service_manager("STOPPING=1");
    const bool finished = drain(config, engine, server);
    spdlog::info(finished ? "ended" : "ended; what still ran was given up");
    return finished ? 0 : kGaveUp;
  } catch (const Error& error) {
    std::fprintf(stderr, "kilnd: %s\n", error.what());
    return error.kind() == ErrorKind::InvalidArgument ? 2 : 1;
  }
}

}  // namespace kiln::server
