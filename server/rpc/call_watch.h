#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <grpcpp/support/server_interceptor.h>
#include <grpcpp/support/status.h>

#include "runtime/core/error.h"
#include "server/metrics/metrics.h"
#include "server/metrics/recent_errors.h"

namespace kiln::server {

/// Counts a call that ended.
void count_call(Metrics& metrics, std::string_view method, const grpc::Status& status);

/// Counts a call that failed by its reason, and notes it in the log and among the recent errors. A
/// caller who went away is no failure. `trace` is the trace that the call is part of, `request` the
/// call's id; empty: it gets one.
void note_failure(Metrics& metrics, RecentErrors& errors, std::string_view method,
                  const grpc::Status& status, std::string_view trace, std::string request = "");

/// Both, of a call whose reply holds the error; returns that, a google.rpc.Status with its message.
std::string failed_call(Metrics& metrics, RecentErrors& errors, std::string_view method,
                        const Error& error, std::string_view trace);

/// Sees every call of the server come and end, whichever service has it: counts it, and notes how
/// it failed.
class CallWatch : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  CallWatch(Metrics& metrics, RecentErrors& errors) : metrics_(metrics), errors_(errors) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  Metrics& metrics_;
  RecentErrors& errors_;
};

}  // namespace kiln::server
