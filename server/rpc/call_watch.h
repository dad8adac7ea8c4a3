#pragma once

#include <memory>

#include <grpcpp/support/server_interceptor.h>

#include "server/metrics/metrics.h"
#include "server/metrics/recent_errors.h"

namespace kiln::server {

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
