// One interceptor a call. A call has a request id: the one its client sent as x-request-id, else
// one made here; it stands in the log and goes back with the answer, so that a user's report and
// the log can be brought together.
//
// A W3C traceparent of the client's makes the line part of its trace.
//
//   Run that fails  ->  kiln_calls_total{method="kiln.v1.KernelService/Run",status="NOT_FOUND"} 1,
//                       kiln_errors_total{reason="KERNEL"} 1, and a line in the log
#include "server/rpc/call_watch.h"

#include <array>
#include <atomic>

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <spdlog/spdlog.h>

#include "server/clock.h"
#include "server/rpc/status.h"
#include "server/tensors/tensor_store.h"
#include "server/trace.h"

namespace kiln::server {

namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

constexpr const char* kRequestHeader = "x-request-id";
constexpr const char* kTraceHeader = "traceparent";
constexpr size_t kLongestId = 64;

/// As gRPC writes them; a number that it has not is UNKNOWN.
const char* code_name(grpc::StatusCode code) {
  constexpr std::array<const char*, 17> kNames = {"OK",
                                                  "CANCELLED",
                                                  "UNKNOWN",
                                                  "INVALID_ARGUMENT",
                                                  "DEADLINE_EXCEEDED",
                                                  "NOT_FOUND",
                                                  "ALREADY_EXISTS",
                                                  "PERMISSION_DENIED",
                                                  "RESOURCE_EXHAUSTED",
                                                  "FAILED_PRECONDITION",
                                                  "ABORTED",
                                                  "OUT_OF_RANGE",
                                                  "UNIMPLEMENTED",
                                                  "INTERNAL",
                                                  "UNAVAILABLE",
                                                  "DATA_LOSS",
                                                  "UNAUTHENTICATED"};
  const auto number = static_cast<size_t>(code);
  return number < kNames.size() ? kNames[number] : "UNKNOWN";
}

/// The stable reason of an error of ours, else the name of its code.
std::string reason_of(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& detail : details.details())
      if (detail.UnpackTo(&info)) return info.reason();
  }
  return code_name(status.error_code());
}

/// An id that others chose is taken if it can stand in a log as it is.
bool is_plain(std::string_view id) {
  return !id.empty() && id.size() <= kLongestId &&
         id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

std::string next_request_id() {
  static const std::string boot = random_hex(4);
  static std::atomic<uint64_t> next{1};
  return fmt::format("{}-{}", boot, next.fetch_add(1));
}

class Watched : public grpc::experimental::Interceptor {
 public:
  Watched(const char* method, Metrics& metrics, RecentErrors& errors)
      : method_(*method == '/' ? method + 1 : method), metrics_(metrics), errors_(errors) {}

  void Intercept(InterceptorBatchMethods* batch) override {
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      take_ids(*batch->GetRecvInitialMetadata());
    }
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      end(batch->GetSendStatus());
    }
    batch->Proceed();
  }

 private:
  void take_ids(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
    const auto find = [&](const char* header) -> std::string_view {
      const auto at = metadata.find(header);
      return at == metadata.end() ? "" : std::string_view(at->second.data(), at->second.size());
    };
    if (const std::string_view id = find(kRequestHeader); is_plain(id)) request_ = id;
    trace_ = trace_id_of(find(kTraceHeader));
  }

  void end(const grpc::Status& status) {
    count_call(metrics_, method_, status);
    metrics_.observe(Metric::CallSeconds, {method_}, seconds_between(came_, Clock::now()));
    note_failure(metrics_, errors_, method_, status, trace_, request_);
  }

  const std::string_view method_;  // gRPC's, as long as the server lives
  const Clock::time_point came_ = Clock::now();
  std::string request_;
  std::string trace_;
  Metrics& metrics_;
  RecentErrors& errors_;
};

}  // namespace

void count_call(Metrics& metrics, std::string_view method, const grpc::Status& status) {
  metrics.count(Metric::Calls, {method, code_name(status.error_code())});
}

void note_failure(Metrics& metrics, RecentErrors& errors, std::string_view method,
                  const grpc::Status& status, std::string_view trace, std::string request) {
  if (status.ok() || status.error_code() == grpc::StatusCode::CANCELLED) return;
  if (request.empty()) request = next_request_id();
  const std::string reason = reason_of(status);
  metrics.count(Metric::Errors, {reason});
  spdlog::info("{} failed: {}: {} (request {}{}{})", method, reason, status.error_message(),
               request, trace.empty() ? "" : ", trace ", trace);
  errors.add({.when = std::chrono::system_clock::now(),
              .method = std::string(method),
              .reason = reason,
              .message = status.error_message(),
              .request = std::move(request),
              .trace = std::string(trace)});
}

std::string failed_call(Metrics& metrics, RecentErrors& errors, std::string_view method,
                        const Error& error, std::string_view trace) {
  const grpc::Status status = status_of(error);
  count_call(metrics, method, status);
  note_failure(metrics, errors, method, status, trace);
  google::rpc::Status whole;
  KILN_CHECK(whole.ParseFromString(status.error_details()));
  whole.set_message(status.error_message());  // which gRPC sends itself
  return whole.SerializeAsString();
}

grpc::experimental::Interceptor* CallWatch::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  return new Watched(info->method(), metrics_, errors_);  // gRPC owns it
}

}  // namespace kiln::server
