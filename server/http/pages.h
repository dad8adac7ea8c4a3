#pragma once

#include "server/engine/engine.h"
#include "server/http/http_server.h"
#include "server/rpc/grpc_server.h"

namespace kiln::server {

/// What operators and their tools ask: / (a page for people), /metrics (Prometheus), /livez and
/// /readyz (probes: end the daemon, or send it no calls). Both must outlive the pages.
HttpServer::Pages operator_pages(const Engine& engine, const GrpcServer& server);

}  // namespace kiln::server
