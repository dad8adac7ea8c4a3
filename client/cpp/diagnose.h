#pragma once

#include <string>

namespace kiln {
inline namespace client {
namespace detail {

/// Why nothing came of a connection.
struct Fault {
  std::string reason;   // UNREACHABLE, TLS or CERTIFICATE
  std::string message;  // with the way out
};

/// For a service that gave no answer: does again what a connection does, step by step, and says
/// which step fails; `otherwise` where all of them work. `ca` is a file, or empty without TLS.
/// Takes a few seconds at most.
Fault why_unreachable(const std::string& address, const std::string& ca, std::string otherwise);

}  // namespace detail
}  // namespace client
}  // namespace kiln
