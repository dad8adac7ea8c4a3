// gRPC statuses as errors: Kiln's own details where a status has them, else what its code says,
// since a proxy or gRPC itself may have answered.
#include "client/cpp/status_border.h"

#include <fmt/format.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include "kiln/v1/error.pb.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

ErrorFields from_detail(const v1::ErrorDetail& detail) {
  const bool known =
      detail.kind() >= v1::ERROR_KIND_INVALID_ARGUMENT && detail.kind() <= v1::ERROR_KIND_INTERNAL;
  return {.kind = known ? static_cast<ErrorKind>(detail.kind()) : ErrorKind::Internal,
          .reason = detail.reason(),
          .message = detail.message(),
          .notes = {detail.notes().begin(), detail.notes().end()},
          .file = detail.file(),
          .line = static_cast<int>(detail.line())};
}

/// Of gRPC's report on all its attempts: what the system said of the last one.
std::string last_attempt(const std::string& text) {
  const std::size_t at = text.rfind(": ");
  const bool is_report = text.find("last error: ") != std::string::npos;
  return is_report && at != std::string::npos ? text.substr(at + 2) : text;
}

/// For an answer that carries no details of Kiln: a proxy's, or gRPC's own.
ErrorFields from_code(const grpc::Status& status, const std::string& address) {
  const std::string& text = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return {.kind = ErrorKind::Unavailable,
              .reason = "UNREACHABLE",
              .message =
                  fmt::format("the service at {} did not answer: {}", address, last_attempt(text))};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {.kind = ErrorKind::DeadlineExceeded,
              .reason = "DEADLINE",
              .message = "the call did not end before its deadline"};
    case grpc::StatusCode::CANCELLED:
      return {
          .kind = ErrorKind::Cancelled, .reason = "CANCELLED", .message = "the call was cancelled"};
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return {.kind = ErrorKind::Unauthenticated,
              .reason = "TOKEN",
              .message = fmt::format("{} refuses the token: {}", address, text)};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {.kind = ErrorKind::ResourceExhausted, .reason = "MESSAGE_SIZE", .message = text};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {
          .kind = ErrorKind::Unsupported,
          .reason = "UNKNOWN_CALL",
          .message = fmt::format(
              "the service at {} does not know this call; it may be of another version", address)};
    default:
      return {.kind = ErrorKind::Internal,
              .reason = "RPC",
              .message = fmt::format("the call of {} failed with gRPC code {}: {}", address,
                                     static_cast<int>(status.error_code()), text)};
  }
}

}  // namespace

FailedCall failed_call(const grpc::Status& status, const std::string& address) {
  FailedCall failed{.error = from_code(status, address)};
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return failed;
  for (const google::protobuf::Any& any : details.details()) {
    v1::ErrorDetail detail;
    google::rpc::RetryInfo retry;
    if (any.UnpackTo(&detail)) {
      failed.error = from_detail(detail);
      failed.from_service = true;
    } else if (any.UnpackTo(&retry)) {
      failed.retry_after = std::chrono::milliseconds(retry.retry_delay().seconds() * 1000 +
                                                     retry.retry_delay().nanos() / 1'000'000);
    }
  }
  return failed;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
