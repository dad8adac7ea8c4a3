#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <grpcpp/support/status.h>
#include <kiln/error.h>

namespace kiln {
inline namespace client {
namespace detail {

/// What a failed call says: the service's own error when it sent one, else what gRPC found.
struct FailedCall {
  ErrorFields error;
  bool from_service = false;                             // the service itself answered
  std::optional<std::chrono::milliseconds> retry_after;  // it asks for another try
};

/// `address` is what the message calls the service.
FailedCall failed_call(const grpc::Status& status, const std::string& address);

}  // namespace detail
}  // namespace client
}  // namespace kiln
