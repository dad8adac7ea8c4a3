// One channel to one service: every call is tried again where that may help and does no harm, with
// pauses that double and vary (exponential back-off with jitter), within the caller's deadline.
//
//   UNAVAILABLE from the transport  ->  again after 25 to 50 ms, then 50 to 100, ...
//   QUEUE_FULL, retry in 100 ms     ->  again after 25 to 100 ms, for up to 10 s
//
// The private daemon, which ends when it is idle, is started again between two tries.
#include "client/cpp/link.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "client/cpp/call_stream.h"
#include "client/cpp/compatible.h"
#include "client/cpp/fail.h"
#include "client/cpp/private_daemon.h"
#include "client/cpp/session_stream.h"
#include "client/cpp/status_border.h"
#include "runtime/core/large_blocks.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

// With the pauses below about 1.5 s: a daemon that is replaced is back by then.
constexpr int kTries = 6;
constexpr milliseconds kPatience{10'000};  // in which others may leave room for a call
// Refusals because others have the room, which they may leave at any time.
constexpr std::array<std::string_view, 5> kCrowded = {"QUEUE_FULL", "TENSOR_MEMORY", "JOB_COUNT",
                                                      "JOB_BYTES", "DEVICE_SECONDS"};
// Other refusals of calls that have not begun: repeating them does no harm, whatever they write.
constexpr std::array<std::string_view, 2> kStarting = {"COMPILER_STARTING", "DEVICE_STARTING"};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kConnectTime{10'000};  // to a daemon that listens

std::string read_pem(const std::string& path, const char* what) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::NotFound, "CA_FILE", "the file of {} {} cannot be read", what, path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::shared_ptr<grpc::ChannelCredentials> credentials_of(const ConnectOptions& options) {
  if (options.cert.empty() != options.key.empty()) {
    fail(ErrorKind::InvalidArgument, "CERTIFICATE",
         "a client's certificate and its key are given together or not at all");
  }
  if (options.ca.empty()) {
    if (options.cert.empty()) return grpc::InsecureChannelCredentials();
    fail(ErrorKind::InvalidArgument, "CERTIFICATE",
         "a client's certificate needs TLS: give the authorities of the service, too (ca)");
  }
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = read_pem(options.ca, "authorities");
  if (!options.cert.empty()) {
    ssl.pem_cert_chain = read_pem(options.cert, "the client's certificate");
    ssl.pem_private_key = read_pem(options.key, "the client's key");
  }
  return grpc::SslCredentials(ssl);
}

/// Once in a process: malloc keeps memory for chunks, and gRPC stays when the last channel goes,
/// since it ends its threads with that, and one of them may be at a poll of 10 seconds, as after
/// uploads that had to wait.
void prepare_library() {
  static const bool is_prepared = [] {
    keep_freed_blocks();
    grpc_init();
    return true;
  }();
  static_cast<void>(is_prepared);
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const ConnectOptions& options) {
  prepare_library();
  grpc::ChannelArguments arguments;
  // A dead peer is noticed within 30 s, and a service that comes back is found at once.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A compiled kernel may be larger than gRPC's 4 MiB.
  arguments.SetMaxReceiveMessageSize(-1);
  // Each connection has its own: one that breaks or backs off says nothing about another.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
  return grpc::CreateCustomChannel(address, credentials_of(options), arguments);
}

/// The token, and the trace that this process is part of, as OpenTelemetry hands it to processes.
Metadata metadata_of(const ConnectOptions& options) {
  Metadata metadata;
  if (!options.token.empty()) metadata.emplace_back("authorization", "Bearer " + options.token);
  const char* const trace = std::getenv("TRACEPARENT");
  if (trace != nullptr && *trace != 0) metadata.emplace_back("traceparent", trace);
  const char* const named = std::getenv("KILN_AFFINITY");
  std::string affinity;  // as hexadecimal, so that any name fits a header
  for (const unsigned char byte : std::string(named != nullptr ? named : ""))
    affinity += fmt::format("{:02x}", byte);
  if (!affinity.empty()) metadata.emplace_back("kiln-affinity", affinity);
  return metadata;
}

/// HOST:PORT or unix:PATH, as --listen has it.
void check_address(const std::string& address) {
  if (address.starts_with("unix:")) return;
  const std::size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool digits =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (colon == 0 || !digits || std::stoi(port) > 65535) {
    fail(ErrorKind::InvalidArgument, "ADDRESS",
         "the address {} is not of the form HOST:PORT or unix:PATH", address);
  }
}

/// Whether the call that failed like this is worth another try.
bool is_transient(const FailedCall& failed, grpc::StatusCode code) {
  if (failed.retry_after) return true;
  if (failed.from_service) return false;
  // A draining service ends calls as cancelled; a call that the user cancelled is not asked about.
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::CANCELLED;
}

bool is_crowded(const FailedCall& failed) {
  return std::ranges::find(kCrowded, failed.error.reason) != kCrowded.end();
}

bool has_not_begun(const FailedCall& failed) {
  return is_crowded(failed) || std::ranges::find(kStarting, failed.error.reason) != kStarting.end();
}

/// From a part of `most` to all of it.
milliseconds varied(milliseconds most, double least) {
  thread_local std::minstd_rand random(std::random_device{}());
  const auto count = static_cast<double>(most.count());
  return milliseconds(std::lround(std::uniform_real_distribution(least * count, count)(random)));
}

milliseconds pause_before(int attempt, const FailedCall& failed) {
  if (!failed.retry_after) return varied(kFirstPause * (1 << attempt), 0.5);
  // The service's own time wins: it knows when a worker is back. Those who were refused together
  // would come together again.
  return is_crowded(failed) ? varied(*failed.retry_after, 0.25) : *failed.retry_after;
}

}  // namespace

void CancelState::cancel() {
  const std::lock_guard lock(mutex);
  cancelled = true;
  if (end) end();
  changed.notify_all();
}

Cancellable::Cancellable(const CallControl& control, std::function<void()> end)
    : state_(control.cancel) {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->cancelled) end();
  before_ = std::exchange(state_->end, std::move(end));
}

Cancellable::~Cancellable() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->end = std::move(before_);
}

CallControl CallControl::with_deadline(milliseconds time) {
  CallControl control;
  if (time.count() > 0) control.deadline = system_clock::now() + time;
  return control;
}

Link::Link(std::string address, const ConnectOptions& options)
    : private_(address.empty()),
      metadata_(metadata_of(options)),
      trust_{.ca = options.ca, .server_name = options.server_name},
      address_(private_ ? ensure_private_daemon() : std::move(address)) {
  check_address(address_);
  channel_ = make_channel(address_, options);
  kernels_ = v1::KernelService::NewStub(channel_);
  tensors_ = v1::TensorService::NewStub(channel_);
  jobs_ = v1::JobService::NewStub(channel_);
  programs_ = v1::ProgramService::NewStub(channel_);
  daemon_ = v1::DaemonService::NewStub(channel_);
}

Link::~Link() { close(); }

void Link::prepare(grpc::ClientContext& context, const CallControl& control) const {
  for (const auto& [key, value] : metadata_)
    context.AddMetadata(key, value);
  if (control.deadline) context.set_deadline(*control.deadline);
}

grpc::Status Link::run_once(const CallControl& control,
                            const std::function<grpc::Status(grpc::ClientContext&)>& attempt) {
  grpc::ClientContext context;
  prepare(context, control);
  const Cancellable cancellable(control, [&context] { context.TryCancel(); });
  return attempt(context);
}

grpc::Status Link::run_once(const std::shared_ptr<LocalSocket>& local, v1::RunRequest& request,
                            RunReply& reply, const CallControl& control) {
  v1::LocalRequest asked;
  asked.mutable_run()->Swap(&request);
  LocalAnswer answer;
  const grpc::Status status = local->ask(asked, answer, control);
  asked.mutable_run()->Swap(&request);
  reply.response.Swap(answer.reply.mutable_run());
  reply.memory = std::move(answer.memory);
  return status;
}

void Link::run(v1::RunRequest& request, RunReply& reply, const CallControl& control) {
  retry_each(control, [&] {
    // A context of gRPC costs more than the rest of a call by the shorter way.
    if (const std::shared_ptr<LocalSocket> shorter = local())
      return run_once(shorter, request, reply, control);
    return run_once(control, [&](grpc::ClientContext& context) {
      return kernels_->Run(&context, request, &reply.response);
    });
  });
}

bool Link::pause(const CallControl& control, milliseconds time) const {
  if (control.deadline && system_clock::now() + time >= *control.deadline) return false;
  if (control.cancel == nullptr) {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, time, [] { return false; });
    return true;
  }
  std::unique_lock lock(control.cancel->mutex);
  return !control.cancel->changed.wait_for(lock, time, [&] { return control.cancel->cancelled; });
}

void Link::retry(const CallControl& control,
                 const std::function<grpc::Status(grpc::ClientContext&)>& attempt) {
  retry_each(control, [&] { return run_once(control, attempt); });
}

void Link::retry_each(const CallControl& control, const std::function<grpc::Status()>& attempt) {
  require_open();
  const auto begin = std::chrono::steady_clock::now();
  for (int tried = 0;; ++tried) {
    const grpc::Status status = attempt();
    if (status.ok()) return check_version(control);
    FailedCall failed = failed_call(status, address_);
    bool asked_for = false;
    if (control.cancel) {
      const std::lock_guard lock(control.cancel->mutex);
      asked_for = control.cancel->cancelled;
    }
    const bool is_last = is_crowded(failed) ? std::chrono::steady_clock::now() - begin > kPatience
                                            : tried + 1 >= kTries;
    const bool harmless = control.idempotent || has_not_begun(failed);
    const bool again =
        harmless && !asked_for && !is_last && is_transient(failed, status.error_code());
    if (!again || !pause(control, pause_before(tried, failed))) {
      const bool silent = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                          !failed.from_service && !private_ && !reached_;
      if (silent) {
        Fault fault = why_unreachable(address_, trust_, std::move(failed.error.message));
        failed.error.reason = std::move(fault.reason);
        failed.error.message = std::move(fault.message);
      }
      throw_error(std::move(failed.error));
    }
    if (private_ && !failed.from_service) reach_private_daemon(control);
  }
}

void Link::check_version(const CallControl& control) {
  // The private daemon is found by its version.
  if (private_ || reached_) return;
  v1::DescribeResponse response;
  const grpc::Status status = run_once(control, [&](grpc::ClientContext& context) {
    return daemon_->Describe(&context, v1::DescribeRequest(), &response);
  });
  if (!status.ok()) return;  // The next call asks again.
  require_compatible(version(), response.version(), address_);
  reached_ = true;
}

void Link::reach_private_daemon(const CallControl& control) const {
  ensure_private_daemon();
  // It may have taken a while to start, and gRPC waits ever longer before it tries again.
  grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
  const system_clock::time_point limit = system_clock::now() + kConnectTime;
  channel_->WaitForConnected(control.deadline ? std::min(*control.deadline, limit) : limit);
}

void Link::require_open() const {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    fail(ErrorKind::InvalidArgument, "CLOSED", "the connection to {} is closed", address_);
  }
}

std::shared_ptr<SessionStream> Link::session_stream() {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr || session_->ended()) {
    session_ = std::make_shared<SessionStream>(*daemon_, metadata_);
  }
  return session_;
}

void Link::start_session() { session_stream(); }

std::string Link::session() {
  std::string id;
  // The stream has its own context, so the one that retry() makes is not used.
  retry({}, [&](grpc::ClientContext&) { return session_stream()->wait_for_id(id); });
  return id;
}

std::string Link::session_if_open() const {
  const std::lock_guard lock(mutex_);
  return session_ == nullptr ? "" : session_->id_if_open();
}

std::shared_ptr<LocalSocket> Link::local() const {
  const std::lock_guard lock(mutex_);
  return session_ == nullptr ? nullptr : session_->local_if_open();
}

void Link::free_now(const std::vector<std::string>& tensors) {
  // A short deadline, since close() waits for it; a tensor that is not freed goes with the session.
  const CallControl control = CallControl::with_deadline(std::chrono::seconds(2));
  v1::FreeRequest request;
  request.mutable_tensors()->Add(tensors.begin(), tensors.end());
  if (const std::shared_ptr<LocalSocket> shorter = local()) {
    v1::LocalRequest asked;
    asked.mutable_free()->Swap(&request);
    LocalAnswer answer;
    shorter->ask(asked, answer, {});
    return;
  }
  grpc::ClientContext context;
  prepare(context, control);
  v1::FreeResponse response;
  tensors_->Free(&context, request, &response);
}

std::shared_ptr<CallStream> Link::call_stream() {
  std::shared_ptr<CallStream> broken;  // ends without the lock, which what it still tells may take
  const std::lock_guard lock(mutex_);
  if (closed_ || (calls_ && !calls_->is_known())) return nullptr;
  if (calls_ && calls_->is_open()) return calls_;
  broken = std::move(calls_);
  return calls_ = std::make_shared<CallStream>(channel_, metadata_);
}

void Link::close() {
  std::shared_ptr<SessionStream> session;
  std::shared_ptr<CallStream> calls;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    session = std::move(session_);
    calls = std::move(calls_);
  }
  if (calls) calls->close();  // those that wait for a call of it hold it, too
  freed_.stop();
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
