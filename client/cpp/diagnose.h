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

/// What a connection trusts.
struct Trust {
  std::string ca;           // a file, empty without TLS
  std::string server_name;  // empty: that of the address
};

/// For a service that gave no answer: does again what a connection does, step by step, and says
/// which step fails; `otherwise` where all of them work. Takes a few seconds at most.
Fault why_unreachable(const std::string& address, const Trust& trust, std::string otherwise);

/// The certificate that a service shows, whoever signed it.
struct ShownCertificate {
  std::string pem;
  std::string fingerprint;  // SHA-256, in hexadecimal
};
/// Throws Unavailable with the reason of a fault.
ShownCertificate shown_certificate(const std::string& address);

}  // namespace detail
}  // namespace client
}  // namespace kiln
