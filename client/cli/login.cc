// `kiln login`: tries a service and keeps how it is reached and trusted, for every client of this
// user; `kiln logout` forgets it. A certificate is taken by its fingerprint, from the line that the
// daemon logs, and pinned: the service is trusted under whatever address it is reached.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/cli/program.h"
#include "client/cpp/diagnose.h"
#include "client/cpp/fail.h"
#include "client/cpp/profile.h"
#include "client/cpp/text_file.h"

namespace kiln::cli {
namespace {

namespace detail = client::detail;

struct Login {
  std::string address;
  std::string token;
  std::string fingerprint;
  std::string ca;
  std::string profile = "default";
};

/// As the daemon writes it, whether or not it was given in capitals and with colons.
std::string plain(std::string fingerprint) {
  std::erase(fingerprint, ':');
  for (char& c : fingerprint)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fingerprint;
}

/// The certificate to trust, PEM; empty without TLS.
std::string certificate_of(const Login& login) {
  if (!login.ca.empty()) return detail::read_text(login.ca);
  if (login.fingerprint.empty()) return "";
  const detail::ShownCertificate shown = detail::shown_certificate(login.address);
  if (shown.fingerprint != plain(login.fingerprint)) {
    detail::fail(ErrorKind::Unauthenticated, "CERTIFICATE",
                 "the certificate of {} has the fingerprint {}, not {}: copy the login line from "
                 "the service's log; if it is the same, another machine answers in its place",
                 login.address, shown.fingerprint, login.fingerprint);
  }
  return shown.pem;
}

int log_in(const Login& login, bool json) {
  const std::string certificate = certificate_of(login);
  const std::string trial = login.profile + ".new";
  // A pinned certificate is for the name that every daemon gives itself.
  const bool pinned = !login.fingerprint.empty();
  detail::Profile profile{.name = trial,
                          .address = login.address,
                          .token = login.token,
                          .ca = "",
                          .server_name = pinned ? "kiln" : ""};
  profile = detail::store_profile(profile, certificate);
  Description description;
  try {
    description = client::connect(
                      login.address,
                      {.token = login.token, .ca = profile.ca, .server_name = profile.server_name})
                      .describe();
  } catch (const Error&) {
    detail::remove_profile(trial);
    throw;
  }
  detail::remove_profile(trial);
  profile.name = login.profile;
  profile.ca.clear();
  profile = detail::store_profile(profile, certificate);
  std::vector<std::string> devices;
  for (const Device& device : description.devices)
    devices.push_back(device.name);
  const std::string file = detail::profile_folder() / (profile.name + ".json");
  if (json) {
    std::cout << nlohmann::ordered_json{{"address", login.address}, {"profile", file}}.dump(2)
              << "\n";
    return 0;
  }
  std::cout << fmt::format(
      "logged in to {}, version {}, with {}\nclients of this user reach it without an address "
      "({}); kiln logout forgets it\n",
      login.address, description.version, fmt::join(devices, ", "), file);
  return 0;
}

int log_out(const std::string& profile) {
  if (!detail::remove_profile(profile)) {
    detail::fail(ErrorKind::NotFound, "PROFILE",
                 "there is no profile {}: nobody logged in under it", profile);
  }
  std::cout << fmt::format("logged out: the profile {} is forgotten\n", profile);
  return 0;
}

}  // namespace

void add_login(CLI::App& app, Program& program) {
  const auto login = std::make_shared<Login>();
  CLI::App* in = app.add_subcommand("login", "keep how a service is reached and trusted");
  in->add_option("address", login->address, "HOST:PORT")->required();
  in->add_option("--token", login->token, "a bearer token")->envname("KILN_TOKEN");
  in->add_option("--fingerprint", login->fingerprint,
                 "SHA-256 of the certificate to trust, as the service logs it");
  in->add_option("--ca", login->ca, "a PEM file with the authorities to trust instead");
  in->add_option("--profile", login->profile, "a name, for $KILN_PROFILE to choose by");
  in->add_flag("--json", program.common.json, "print JSON");
  in->callback([login, &program] {
    program.run = [login, &program] { return log_in(*login, program.common.json); };
  });
  const auto name = std::make_shared<std::string>("default");
  CLI::App* out = app.add_subcommand("logout", "forget what login kept");
  out->add_option("--profile", *name, "the name it was kept under");
  out->callback([name, &program] { program.run = [name] { return log_out(*name); }; });
}

}  // namespace kiln::cli
