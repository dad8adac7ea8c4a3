// Where a service is and how it is trusted, kept from `kiln login` for every client of the user:
//
//   ~/.config/kiln/default.json   {"address": "gpu7:7411", "token": "...", "ca": "...", ...}
//   ~/.config/kiln/default.pem    the certificate that was pinned
#include "client/cpp/profile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cpp/fail.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const std::string& name, const char* extension) {
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
    fail(ErrorKind::InvalidArgument, "PROFILE",
         "{} is no name of a profile: use letters and digits",
         name.empty() ? "an empty word" : name);
  }
  return profile_folder() / (name + extension);
}

/// Writes a file that its owner alone reads, whole or not at all.
void write_private(const fs::path& path, const std::string& text) {
  const fs::path part = path.string() + ".part";
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int why = errno;
  if (file >= 0) ::close(file);
  if (!written || ::rename(part.c_str(), path.c_str()) != 0) {
    fail(ErrorKind::InvalidArgument, "PROFILE", "the profile {} cannot be written: {}",
         path.string(), std::strerror(written ? errno : why));
  }
}

}  // namespace

std::string profile_name() {
  const char* named = std::getenv("KILN_PROFILE");
  return named == nullptr ? "default" : named;
}

fs::path profile_folder() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config != '\0') return fs::path(config) / "kiln";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "/") / ".config" / "kiln";
}

std::optional<Profile> load_profile(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const fs::path path = file_of(name, ".json");
  std::ifstream file(path);
  if (!file) return std::nullopt;
  const auto fields = nlohmann::json::parse(file, nullptr, false);
  if (!fields.is_object() || !fields.contains("address")) {
    fail(ErrorKind::InvalidArgument, "PROFILE",
         "the profile {} is damaged: run the kiln login line of the service again, or delete the "
         "file",
         path.string());
  }
  const auto text = [&](const char* key) {
    const auto found = fields.find(key);
    return found != fields.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return Profile{.name = name,
                 .address = text("address"),
                 .token = text("token"),
                 .ca = text("ca"),
                 .server_name = text("server_name")};
}

Profile store_profile(Profile profile, const std::string& certificate) {
  const fs::path path = file_of(profile.name, ".json");
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  ::chmod(path.parent_path().c_str(), 0700);
  if (!certificate.empty()) {
    profile.ca = file_of(profile.name, ".pem");
    write_private(profile.ca, certificate);
  }
  const nlohmann::ordered_json fields{{"address", profile.address},
                                      {"token", profile.token},
                                      {"ca", profile.ca},
                                      {"server_name", profile.server_name}};
  write_private(path, fields.dump(2) + "\n");
  return profile;
}

bool remove_profile(const std::string& name) {
  std::error_code ignored;
  fs::remove(file_of(name, ".pem"), ignored);
  return fs::remove(file_of(name, ".json"), ignored);
}

namespace {

/// The variable's value where nothing was given.
void fill_unset(std::string& given, const char* variable) {
  const char* value = std::getenv(variable);
  if (given.empty() && value != nullptr) given = value;
}

/// Of a service that was named; the private daemon has neither token nor certificate.
void fill_from_environment(Endpoint& endpoint) {
  if (endpoint.address.empty()) return;
  fill_unset(endpoint.options.token, "KILN_TOKEN");
  fill_unset(endpoint.options.ca, "KILN_CA");
  fill_unset(endpoint.options.cert, "KILN_CERT");
  fill_unset(endpoint.options.key, "KILN_KEY");
}

}  // namespace

Endpoint endpoint_of(const std::string& address, const ConnectOptions& options) {
  Endpoint endpoint{.address = address, .options = options, .source = "--address"};
  const char* named = std::getenv("KILN_ADDRESS");
  if (endpoint.address.empty() && named != nullptr) {
    endpoint.address = named;
    endpoint.source = "KILN_ADDRESS";
  }
  if (endpoint.address.empty()) endpoint.source.clear();
  const std::optional<Profile> profile = load_profile(profile_name());
  const bool is_of_profile =
      profile && (endpoint.address.empty() || endpoint.address == profile->address);
  if (is_of_profile) {
    if (endpoint.address.empty()) endpoint.source = "profile " + profile->name;
    endpoint.address = profile->address;
  }
  fill_from_environment(endpoint);
  if (!is_of_profile) return endpoint;
  if (endpoint.options.token.empty()) endpoint.options.token = profile->token;
  if (endpoint.options.ca.empty()) {
    endpoint.options.ca = profile->ca;
    endpoint.options.server_name = profile->server_name;
  }
  return endpoint;
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
