#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <kiln/connection.h>

namespace kiln {
inline namespace client {
namespace detail {

/// What `kiln login` keeps of a service: a file for each name, which its owner alone reads, and the
/// certificate beside it. The Python client reads and writes the same files.
struct Profile {
  std::string name;
  std::string address;
  std::string token;
  std::string ca;           // a file, empty without TLS
  std::string server_name;  // empty: that of the address
};

/// $KILN_PROFILE, or "default"; empty where that variable is empty: no profile is read then.
std::string profile_name();
/// $XDG_CONFIG_HOME/kiln, or ~/.config/kiln.
std::filesystem::path profile_folder();
/// Nothing where there is none of this name. Throws InvalidArgument PROFILE for a damaged one.
std::optional<Profile> load_profile(const std::string& name);
/// Writes it, and the certificate (PEM) where it has one: `ca` of the result is its file. Throws
/// InvalidArgument PROFILE.
Profile store_profile(Profile profile, const std::string& certificate);
/// Whether there was one.
bool remove_profile(const std::string& name);

/// Which service a connection is to, and how.
struct Endpoint {
  std::string address;  // empty: the private daemon
  ConnectOptions options;
  std::string source;  // "--address", "KILN_ADDRESS", "profile NAME" or nothing
};
/// What was given, then $KILN_ADDRESS, $KILN_TOKEN and $KILN_CA, then the profile; token and
/// certificate of the profile are used for its own address alone.
Endpoint endpoint_of(const std::string& address, const ConnectOptions& options);

}  // namespace detail
}  // namespace client
}  // namespace kiln
