// Errors to and from the wire, and the one place that catches everything: an unknown exception is
// logged whole and told in one sentence, since its text was written for nobody.
#include "server/errors.h"

#include <new>

#include <spdlog/spdlog.h>

namespace kiln::server {

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) spdlog::error("{}", error.message());
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorKind::ResourceExhausted, "HOST_MEMORY", "the host is out of memory");
  } catch (const std::exception& error) {
    spdlog::error("unexpected exception: {}", error.what());
    return Error(ErrorKind::Internal, "UNEXPECTED", "internal error; see the log of the daemon");
  }
}

v1::ErrorDetail to_wire(const Error& error) {
  v1::ErrorDetail detail;
  detail.set_kind(static_cast<v1::ErrorKind>(error.kind()));
  detail.set_reason(error.reason());
  detail.set_message(error.message());
  for (const std::string& note : error.notes())
    detail.add_notes(note);
  detail.set_file(error.location().file);
  detail.set_line(static_cast<uint32_t>(error.location().line));
  return detail;
}

Error from_wire(const v1::ErrorDetail& detail) {
  const bool known =
      detail.kind() >= v1::ERROR_KIND_INVALID_ARGUMENT && detail.kind() <= v1::ERROR_KIND_INTERNAL;
  Error error(known ? static_cast<ErrorKind>(detail.kind()) : ErrorKind::Internal, detail.reason(),
              detail.message());
  for (const std::string& note : detail.notes())
    error.add_note(note);
  if (detail.line() > 0) error.set_location({detail.file(), static_cast<int>(detail.line())});
  return error;
}

}  // namespace kiln::server
