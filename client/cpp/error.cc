// The typed exceptions of the client and their texts: the message, its notes, then the line where
// the user wrote what is wrong. One switch maps kinds to types, for errors of the library and of
// the service.
#include <utility>

#include <kiln/error.h>

#include "client/cpp/error_border.h"

namespace kiln {
inline namespace client {
namespace {

std::string text_of(const ErrorFields& fields) {
  std::string text = fields.message;
  for (const std::string& note : fields.notes)
    text += "\n" + note;
  if (fields.line > 0) text += "\n  at " + fields.file + ":" + std::to_string(fields.line);
  return text;
}

}  // namespace

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument: return "InvalidArgument";
    case ErrorKind::Unsupported: return "Unsupported";
    case ErrorKind::NotFound: return "NotFound";
    case ErrorKind::HandleLost: return "HandleLost";
    case ErrorKind::ResourceExhausted: return "ResourceExhausted";
    case ErrorKind::Unavailable: return "Unavailable";
    case ErrorKind::DeadlineExceeded: return "DeadlineExceeded";
    case ErrorKind::Cancelled: return "Cancelled";
    case ErrorKind::Unauthenticated: return "Unauthenticated";
    case ErrorKind::Internal: return "Internal";
  }
  return "Internal";
}

Error::Error(ErrorFields fields)
    : std::runtime_error(text_of(fields)), fields_(std::move(fields)) {}

void throw_error(ErrorFields fields) {
  switch (fields.kind) {
    case ErrorKind::InvalidArgument: throw InvalidArgument(std::move(fields));
    case ErrorKind::Unsupported: throw Unsupported(std::move(fields));
    case ErrorKind::NotFound: throw NotFound(std::move(fields));
    case ErrorKind::HandleLost: throw HandleLost(std::move(fields));
    case ErrorKind::ResourceExhausted: throw ResourceExhausted(std::move(fields));
    case ErrorKind::Unavailable: throw Unavailable(std::move(fields));
    case ErrorKind::DeadlineExceeded: throw DeadlineExceeded(std::move(fields));
    case ErrorKind::Cancelled: throw Cancelled(std::move(fields));
    case ErrorKind::Unauthenticated: throw Unauthenticated(std::move(fields));
    case ErrorKind::Internal: throw Internal(std::move(fields));
  }
  throw Internal(std::move(fields));
}

}  // namespace client

void border::throw_as_client_error(ErrorValues values) {
  throw_error({.kind = static_cast<ErrorKind>(values.kind),
               .reason = std::move(values.reason),
               .message = std::move(values.message),
               .notes = std::move(values.notes),
               .file = std::move(values.file),
               .line = values.line});
}

}  // namespace kiln
