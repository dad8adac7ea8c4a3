#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {
// The library's own namespace, inline, so that its classes share no symbol with the compiler's.
inline namespace client {

/// Who must act. The numbers are those of the wire.
enum class ErrorKind : int {
  InvalidArgument = 1,
  Unsupported = 2,
  NotFound = 3,
  HandleLost = 4,
  ResourceExhausted = 5,
  Unavailable = 6,
  DeadlineExceeded = 7,
  Cancelled = 8,
  Unauthenticated = 9,
  Internal = 10,
};

/// "InvalidArgument", ...
std::string_view name_of(ErrorKind kind);

/// What an Error carries.
struct ErrorFields {
  ErrorKind kind = ErrorKind::Internal;
  std::string reason;
  std::string message;
  std::vector<std::string> notes;
  std::string file;
  int line = 0;
};

/// What any function of the client throws. `what()` is the message, then a line a note, then the
/// place where it is known.
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorFields fields);

  ErrorKind kind() const { return fields_.kind; }
  /// A stable upper-case word, to be tested by programs.
  const std::string& reason() const { return fields_.reason; }
  const std::string& message() const { return fields_.message; }
  const std::vector<std::string>& notes() const { return fields_.notes; }
  /// Where the user wrote what the error is about; empty when unknown.
  const std::string& file() const { return fields_.file; }
  int line() const { return fields_.line; }
  const ErrorFields& fields() const { return fields_; }

 private:
  ErrorFields fields_;
};

/// The request itself is wrong.
class InvalidArgument : public Error {
  using Error::Error;
};
/// The request is sound, but this version or this device cannot do it.
class Unsupported : public Error {
  using Error::Error;
};
/// A job, tensor or file that does not exist.
class NotFound : public Error {
  using Error::Error;
};
/// A tensor whose contents were lost with the process that held it: upload it again.
class HandleLost : public Error {
  using Error::Error;
};
/// A limit was passed, or the service has no room now.
class ResourceExhausted : public Error {
  using Error::Error;
};
/// The service, or the device, cannot be reached.
class Unavailable : public Error {
  using Error::Error;
};
class DeadlineExceeded : public Error {
  using Error::Error;
};
class Cancelled : public Error {
  using Error::Error;
};
class Unauthenticated : public Error {
  using Error::Error;
};
/// A mistake of Kiln itself.
class Internal : public Error {
  using Error::Error;
};

/// Throws the class of `fields.kind`.
[[noreturn]] void throw_error(ErrorFields fields);

}  // namespace client
}  // namespace kiln
