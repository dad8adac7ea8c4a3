// Errors as gRPC statuses, by Google's API design guide (AIP-193): a code for machines, a reason
// that is stable, when to retry, and the details for people.
//
//   QUEUE_FULL  ->  RESOURCE_EXHAUSTED, ErrorInfo "QUEUE_FULL", RetryInfo 100 ms, ErrorDetail
#include "server/rpc/status.h"

#include <optional>

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include "server/errors.h"

namespace kiln::server {

namespace {

// Clients take 8 KiB of metadata by default; details are sent in base64, beside the message itself.
constexpr size_t kMessageBytes = 1200;
constexpr size_t kNotesBytes = 1800;

grpc::StatusCode code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument: return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorKind::Unsupported: return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorKind::NotFound: return grpc::StatusCode::NOT_FOUND;
    case ErrorKind::HandleLost: return grpc::StatusCode::DATA_LOSS;
    case ErrorKind::ResourceExhausted: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorKind::Unavailable: return grpc::StatusCode::UNAVAILABLE;
    case ErrorKind::DeadlineExceeded: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorKind::Cancelled: return grpc::StatusCode::CANCELLED;
    case ErrorKind::Unauthenticated: return grpc::StatusCode::UNAUTHENTICATED;
    case ErrorKind::Internal: return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

/// Milliseconds after which the same request may well succeed.
std::optional<int> retry_after(const Error& error) {
  const std::string& reason = error.reason();
  // A place is free as soon as one call ends; workers take a few hundred milliseconds to start.
  if (reason == "QUEUE_FULL") return 100;
  if (reason == "TENSOR_MEMORY" || reason == "DRAINING") return 1000;
  if (reason == "JOB_COUNT" || reason == "JOB_BYTES" || reason == "DEVICE_SECONDS" ||
      reason == "UPLOADS") {
    return 1000;
  }
  if (reason == "WORKER_RESTARTED" || reason == "COMPILER_STARTING" ||
      reason == "COMPILER_STOPPED" || reason == "COMPILER_KILLED" || reason == "DEVICE_STARTING") {
    return 500;
  }
  if (reason == "COMPILER_STARVED") return 5000;
  return std::nullopt;
}

/// At most `limit` bytes, not ending within a character.
std::string cut(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + "...";
}

v1::ErrorDetail detail_of(const Error& error) {
  v1::ErrorDetail detail = to_wire(error);
  detail.set_message(cut(error.message(), kMessageBytes));
  detail.set_file(cut(error.location().file, 256));
  detail.clear_notes();
  size_t left = kNotesBytes;
  for (const std::string& note : error.notes()) {
    if (left < 8) break;
    detail.add_notes(cut(note, left));
    left -= std::min(left, note.size());
  }
  return detail;
}

}  // namespace

grpc::Status status_of(const Error& error) {
  const grpc::StatusCode code = code_of(error.kind());
  google::rpc::Status status;
  status.set_code(code);
  google::rpc::ErrorInfo info;
  info.set_reason(error.reason());
  info.set_domain("kiln");
  status.add_details()->PackFrom(info);
  if (const std::optional<int> milliseconds = retry_after(error)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(*milliseconds / 1000);
    retry.mutable_retry_delay()->set_nanos(*milliseconds % 1000 * 1'000'000);
    status.add_details()->PackFrom(retry);
  }
  status.add_details()->PackFrom(detail_of(error));
  return {code, cut(error.message(), kMessageBytes), status.SerializeAsString()};
}

}  // namespace kiln::server
