// The services on one address, with keepalive on both sides and health checks. Files of sockets are
// for this user alone from their first moment.
#include "server/rpc/grpc_server.h"

#include <mutex>

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include "server/local/local_server.h"
#include "server/rpc/artifact_rpc.h"
#include "server/rpc/call_watch.h"
#include "server/rpc/calls_rpc.h"
#include "server/rpc/daemon_rpc.h"
#include "server/rpc/job_rpc.h"
#include "server/rpc/kernel_rpc.h"
#include "server/rpc/prediction_rpc.h"
#include "server/rpc/program_rpc.h"
#include "server/rpc/tensor_rpc.h"
#include "server/rpc/trace_rpc.h"
#include "server/rpc/upload_rpc.h"

namespace kiln::server {

namespace {

constexpr const char* kServices[] = {"kiln.v1.KernelService",     "kiln.v1.TensorService",
                                     "kiln.v1.JobService",        "kiln.v1.DaemonService",
                                     "kiln.v1.ProgramService",    "kiln.v1.CallService",
                                     "kiln.v1.TraceService",      "kiln.v1.UploadService",
                                     "kiln.v1.PredictionService", "kiln.v1.ArtifactService"};

std::shared_ptr<grpc::ServerCredentials> credentials_of(const GrpcOptions& options) {
  if (options.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc_ssl_client_certificate_request_type asks = GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  // Who has a token needs none where there are tokens, too.
  if (!options.client_authorities.empty()) {
    asks = options.tokens ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  grpc::SslServerCredentialsOptions tls(asks);
  tls.pem_root_certs = options.client_authorities;
  tls.pem_key_cert_pairs.push_back({options.private_key, options.certificate});
  return grpc::SslServerCredentials(tls);
}

void set_arguments(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two daemons must not share a port
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  // A client that vanished without a word is noticed, and clients may look for us as often.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
}

/// gRPC ends its threads with the last server, and one of them may be at a poll of 10 seconds, as
/// after uploads whose senders had to wait. What the process needs no more goes with it.
void keep_library() {
  static const bool is_kept = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(is_kept);
}

/// Files made while it lives are for this user alone.
class PrivateFiles {
 public:
  PrivateFiles() : before_(::umask(0177)) {}
  ~PrivateFiles() { ::umask(before_); }

 private:
  const mode_t before_;
};

bool is_unix(const std::string& listen) { return listen.rfind("unix:", 0) == 0; }

/// Beside a socket in the file system; clients of a port may be anywhere.
std::unique_ptr<LocalServer> local_server(Engine& engine, Gate& gate, const std::string& listen) {
  if (!is_unix(listen)) return nullptr;
  try {
    return std::make_unique<LocalServer>(engine, gate, listen.substr(5) + ".local");
  } catch (const Error& error) {
    spdlog::warn("local clients get no shorter way: {}", error.message());
    return nullptr;
  }
}

}  // namespace

struct GrpcServer::Parts {
  Parts(Engine& engine, const GrpcOptions& options)
      : gate({.tokens = options.tokens, .by_certificate = !options.client_authorities.empty()},
             engine.sessions()),
        local(local_server(engine, gate, options.listen)),
        artifacts(engine, gate),
        kernels(engine, gate),
        tensors(engine, gate),
        jobs(engine, gate),
        calls(engine, gate),
        daemon(engine, gate, local.get()),
        predictions(engine, gate),
        programs(engine, gate),
        traces(engine, gate),
        uploads(engine, gate) {}

  Gate gate;
  std::unique_ptr<LocalServer> local;
  ArtifactRpc artifacts;
  KernelRpc kernels;
  TensorRpc tensors;
  JobRpc jobs;
  CallsRpc calls;
  DaemonRpc daemon;
  PredictionRpc predictions;
  ProgramRpc programs;
  TraceRpc traces;
  UploadRpc uploads;
  std::string address;
  std::mutex mutex;
  std::string problem;  // under the lock
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(Engine& engine, const GrpcOptions& options)
    : parts_(std::make_unique<Parts>(engine, options)) {
  keep_library();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  set_arguments(builder);
  int port = 0;
  builder.AddListeningPort(options.listen, credentials_of(options), &port);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> watches;
  watches.push_back(std::make_unique<CallWatch>(engine.counters().metrics, engine.errors()));
  builder.experimental().SetInterceptorCreators(std::move(watches));
  builder.RegisterService(&parts_->artifacts);
  builder.RegisterService(&parts_->kernels);
  builder.RegisterService(&parts_->tensors);
  builder.RegisterService(&parts_->jobs);
  builder.RegisterService(&parts_->calls);
  builder.RegisterService(&parts_->daemon);
  builder.RegisterService(&parts_->predictions);
  builder.RegisterService(&parts_->programs);
  builder.RegisterService(&parts_->traces);
  builder.RegisterService(&parts_->uploads);
  {
    const PrivateFiles guard;
    parts_->server = builder.BuildAndStart();
  }
  if (!parts_->server || (port <= 0 && !is_unix(options.listen))) {
    fail(ErrorKind::Unavailable, "LISTEN",
         "cannot listen on {}; the address is in use, not of this host, or the certificate and key "
         "do not fit",
         options.listen);
  }
  parts_->address = options.listen;
  if (!is_unix(options.listen)) {
    parts_->address =
        options.listen.substr(0, options.listen.rfind(':') + 1) + std::to_string(port);
  }
  set_serving("the daemon is starting");
}

GrpcServer::~GrpcServer() { shut_down(std::chrono::seconds(0)); }

const std::string& GrpcServer::address() const { return parts_->address; }

void GrpcServer::set_serving(const std::string& problem) {
  {
    const std::lock_guard lock(parts_->mutex);
    parts_->problem = problem;
  }
  grpc::HealthCheckServiceInterface* const health = parts_->server->GetHealthCheckService();
  health->SetServingStatus(problem.empty());
  for (const char* service : kServices)
    health->SetServingStatus(service, problem.empty());
}

std::string GrpcServer::why_not_serving() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->problem;
}

int64_t GrpcServer::active() const { return parts_->gate.active(); }

void GrpcServer::refuse_calls() { parts_->gate.close(); }

void GrpcServer::shut_down(Clock::duration limit) {
  if (!parts_->server) return;
  refuse_calls();
  parts_->server->Shutdown(std::chrono::system_clock::now() + limit);
  parts_->server->Wait();
  parts_->server.reset();
  parts_->local.reset();
}

}  // namespace kiln::server
