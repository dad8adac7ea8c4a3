#pragma once

#include <memory>
#include <string>

#include "server/clock.h"
#include "server/engine/engine.h"
#include "server/rpc/token_file.h"

namespace kiln::server {

struct GrpcOptions {
  std::string listen;                 // unix:PATH or HOST:PORT
  std::shared_ptr<TokenFile> tokens;  // null: none is asked for
  std::string certificate;            // PEM; empty: no TLS
  std::string private_key;
  std::string client_authorities;  // PEM; empty: clients need no certificate
};

/// The wire of the service: kiln.v1 and grpc.health.v1 on one address.
class GrpcServer {
 public:
  /// Listens. Throws Unavailable LISTEN.
  GrpcServer(Engine& engine, const GrpcOptions& options);
  ~GrpcServer();

  /// What it listens on, with the port that was chosen for port 0.
  const std::string& address() const;
  /// What health checks are told: SERVING when `problem` is empty.
  void set_serving(const std::string& problem);
  /// What was set last.
  std::string why_not_serving() const;
  /// Calls in progress, sessions not counted.
  int64_t active() const;
  /// From now on new calls are refused with DRAINING, and sessions end.
  void refuse_calls();
  /// Ends what is left, at the latest after `limit`.
  void shut_down(Clock::duration limit);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::server
