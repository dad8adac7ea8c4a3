#pragma once

#include <string>

#include "server/engine/engine.h"
#include "server/rpc/grpc_server.h"

namespace kiln::server {

/// A page of HTML for people: devices, queues, caches, jobs, recent errors. Complete in itself, and
/// without a script.
std::string status_page(const Engine& engine, const GrpcServer& server);

}  // namespace kiln::server
