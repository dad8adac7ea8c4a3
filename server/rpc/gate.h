#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/server_context.h>

#include "server/call.h"
#include "server/rpc/token_file.h"
#include "server/tensors/sessions.h"

namespace kiln::server {

/// A call that was let in.
struct Admission {
  std::shared_ptr<void> pass;  // counts it as active as long as it lives
  Caller caller;
};

/// Where every call comes in: who is it, and are we still taking calls.
class Gate {
 public:
  /// By what callers show who they are; by nothing: everybody is let in.
  struct Proofs {
    std::shared_ptr<TokenFile> tokens;  // null: there are none
    bool by_certificate = false;        // which TLS has verified
  };
  Gate(Proofs proofs, Sessions& sessions) : proofs_(std::move(proofs)), sessions_(sessions) {}

  /// Throws Unauthenticated TOKEN or CERTIFICATE, Unavailable DRAINING, InvalidArgument PRIORITY.
  Admission enter(const grpc::CallbackServerContext& context);
  /// The pass of a caller who is known. Throws Unavailable DRAINING.
  std::shared_ptr<void> enter();
  int64_t active() const { return active_.load(); }

  /// From now on no call gets in, and streams that stay open by design are told to end.
  void close();
  /// `listener` runs at close(), unless forget() comes first; at once when that was already.
  uint64_t on_close(std::function<void()> listener);
  void forget(uint64_t listener);

 private:
  /// Throws Unauthenticated TOKEN or CERTIFICATE.
  Principal identify(const grpc::CallbackServerContext& context);

  const Proofs proofs_;
  Sessions& sessions_;
  std::atomic<int64_t> active_{0};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::function<void()>> listeners_;
};

}  // namespace kiln::server
