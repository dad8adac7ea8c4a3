#pragma once

#include <optional>
#include <string>

#include "server/engine/engine.h"

namespace kiln::server {

/// Everything an operator can say: flags win over the file of --config.
struct Config {
  std::string listen;          // unix:PATH or HOST:PORT
  std::string metrics_listen;  // HOST:PORT; empty: nowhere
  std::string cache_dir;
  std::string warm_up;  // a file that lists what is compiled before it is ready; empty: nothing
  int threads = 0;      // of the cpu worker; 0: one on each core
  std::string token_file;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;  // authorities of clients' certificates; empty: none are asked for
  std::string credentials;    // a folder: token, certificate and key are made in it
  std::string advertise;      // HOST:PORT in the line for clients
  bool insecure = false;
  std::string isolation = "process";  // or "none"
  double idle_exit = 0;               // seconds; 0: never
  double grace = 30;                  // seconds for running calls after SIGTERM
  std::string log_format = "text";    // or "json"
  std::string log_level = "info";
  EngineOptions engine;
};

/// Reads the command line and the file it names. Prints help, version or what is wrong; then there
/// is nothing, and `exit_code` is for the caller to end with.
std::optional<Config> read_config(int argc, const char* const* argv, int& exit_code);

/// Refuses settings that would serve strangers unasked. Throws InvalidArgument INSECURE or LISTEN.
void check_config(const Config& config);

/// Clients will show their token to whoever listens on the network.
bool sends_token_in_the_clear(const Config& config);

/// "unix:..." in the user's runtime folder, where clients look.
std::string default_listen();

}  // namespace kiln::server
