// Names of the kinds of errors, and what a failed KILN_CHECK becomes: an Internal error that names
// the file, but no folder of the machine that built it.
#include "runtime/core/error.h"

#include <cstring>

namespace kiln {

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

void check_failed(const char* condition, const char* file, int line) {
  const char* slash = std::strrchr(file, '/');
  throw Error(ErrorKind::Internal, "CHECK_FAILED",
              fmt::format("internal error: {} does not hold ({}:{})", condition,
                          slash != nullptr ? slash + 1 : file, line));
}

}  // namespace kiln
