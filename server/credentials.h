#pragma once

#include <string>

#include "server/config.h"

namespace kiln::server {

/// The name that the certificates made here are for, beside the host's: clients that pinned one by
/// `kiln login` ask for it, under whatever address they reach the service.
inline constexpr const char* kServiceName = "kiln";

/// Makes token, cert.pem and key.pem in the folder of --credentials where they are missing, and
/// enters them as --token-file, --tls-cert and --tls-key. Without that setting it does nothing.
/// Whether the token was made now.
bool use_credentials(Config& config);

/// Writes the line that clients run once to the file `login` in the folder of --credentials:
/// `kiln login HOST:PORT --token ... --fingerprint ...`. The log has it at the first start alone,
/// then it says where it is: what is logged is kept and sent about, and the line has a secret in
/// it. `address` is what the daemon listens on; --advertise, or else this host's name, stands for
/// all addresses.
void say_login(const Config& config, const std::string& address, bool is_first);

/// SHA-256 of a PEM certificate, in hexadecimal. Throws InvalidArgument CONFIG.
std::string fingerprint_of(const std::string& pem);

}  // namespace kiln::server
