// Settings from flags, then from a TOML file below them, and what may not be served: a daemon that
// other machines reach has a token, or says --insecure.
//
//   listen = "0.0.0.0:7000" without token-file  ->  INSECURE, with the ways out
#include "server/config.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <thread>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <toml++/toml.h>
#include <unistd.h>

#include "command_line/usage_text.h"
#include "compiler/language/suggest.h"
#include "compiler/language/wire/canonical.h"
#include "server/address.h"
#include "server/version.h"

namespace kiln::server {

namespace fs = std::filesystem;

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string default_cache_dir() {
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/kiln";
  if (const std::string home = environment("HOME"); !home.empty()) return home + "/.cache/kiln";
  return (fs::temp_directory_path() / fmt::format("kiln-{}", ::geteuid()) / "cache").string();
}

[[noreturn]] void wrong_value(const std::string& key, std::string_view expected) {
  fail(ErrorKind::InvalidArgument, "CONFIG", "{} in the configuration must be {}", key, expected);
}

template <typename T>
T value_of(const std::string& key, const toml::node& node, std::string_view expected) {
  const auto value = node.value_exact<T>();
  if (!value) wrong_value(key, expected);
  return *value;
}

double seconds_of(const std::string& key, const toml::node& node) {
  const auto seconds = node.value<double>();
  if (!seconds || *seconds < 0) wrong_value(key, "a number of seconds");
  return *seconds;
}

/// A number of things or bytes; limits of 0 mean what their fields say.
int64_t count_of(const std::string& key, const toml::node& node) {
  const auto count = value_of<int64_t>(key, node, "a whole number");
  if (count < 0) wrong_value(key, "0 or more");
  return count;
}

Clock::duration duration_of(const std::string& key, const toml::node& node) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds_of(key, node)));
}

using Setter = std::function<void(const std::string& key, const toml::node& node)>;

Setter text_setter(std::string& target) {
  return [&](const auto& key, const auto& node) {
    target = value_of<std::string>(key, node, "a string");
  };
}
Setter number_setter(double& target) {
  return [&](const auto& key, const auto& node) { target = seconds_of(key, node); };
}
Setter flag(bool& target) {
  return [&](const auto& key, const auto& node) {
    target = value_of<bool>(key, node, "true or false");
  };
}
/// Numbers that the target cannot hold mean the most that it can.
template <typename Integer>
Setter count_setter(Integer& target, int64_t least = 0,
                    int64_t most = std::numeric_limits<std::make_signed_t<Integer>>::max()) {
  return [&target, least, most](const auto& key, const auto& node) {
    target = static_cast<Integer>(std::clamp(count_of(key, node), least, most));
  };
}
Setter time(Clock::duration& target) {
  return [&](const auto& key, const auto& node) { target = duration_of(key, node); };
}

/// The keys of a tenant's quota, behind `prefix`.
std::map<std::string, Setter> quota_setters(const std::string& prefix, Quota& quota) {
  return {
      {prefix + "tensor-bytes", count_setter(quota.tensor_bytes)},
      {prefix + "kernels", count_setter(quota.kernels)},
      {prefix + "jobs", count_setter(quota.jobs)},
      {prefix + "queue", count_setter(quota.queue)},
      {prefix + "device-seconds", number_setter(quota.device_seconds)},
  };
}

/// Every key of kilnd.toml but the tables of tenants, the same words as the flags where there is a
/// flag.
std::map<std::string, Setter> setters(Config& config) {
  EngineOptions& engine = config.engine;
  std::map<std::string, Setter> all = {
      {"listen", text_setter(config.listen)},
      {"metrics-listen", text_setter(config.metrics_listen)},
      {"cache-dir", text_setter(config.cache_dir)},
      {"warm-up", text_setter(config.warm_up)},
      {"shared-cache", text_setter(config.engine.shared_cache)},
      {"token-file", text_setter(config.token_file)},
      {"tls-cert", text_setter(config.tls_cert)},
      {"tls-key", text_setter(config.tls_key)},
      {"tls-client-ca", text_setter(config.tls_client_ca)},
      {"credentials", text_setter(config.credentials)},
      {"advertise", text_setter(config.advertise)},
      {"isolation", text_setter(config.isolation)},
      {"log-format", text_setter(config.log_format)},
      {"log-level", text_setter(config.log_level)},
      {"idle-exit", number_setter(config.idle_exit)},
      {"grace", number_setter(config.grace)},
      {"insecure", flag(config.insecure)},
      {"threads", count_setter(config.threads)},
      {"limits.compilers", count_setter(engine.compilers)},
      {"limits.cpu-workers", count_setter(engine.cpu_workers, 1)},
      {"limits.queue", count_setter(engine.queue)},
      {"limits.kernels", count_setter(engine.kernels)},
      {"limits.tensor-bytes", count_setter(engine.tensor_bytes)},
      {"limits.memory-cache-bytes", count_setter(engine.memory_cache_bytes)},
      {"limits.disk-cache-bytes", count_setter(engine.disk_cache_bytes)},
      {"limits.run-seconds", time(engine.times.run_limit)},
      {"limits.compile-seconds", time(engine.times.compile_limit)},
      {"limits.specialised-kernels", count_setter(engine.specialisation.kernels)},
      {"limits.specialise-after-calls", count_setter(engine.specialisation.calls, 1)},
      {"limits.tune-seconds", time(engine.tuning.time)},
      {"limits.tune-trials", count_setter(engine.tuning.trials, 0, 1 << 20)},
      {"limits.compile-memory-bytes", count_setter(engine.compile_memory_bytes)},
      {"limits.jobs", count_setter(engine.jobs.unfinished)},
      {"limits.jobs-at-a-time", count_setter(engine.jobs.at_a_time, 1)},
      {"limits.job-input-bytes", count_setter(engine.jobs.input_bytes)},
      {"limits.job-result-bytes", count_setter(engine.jobs.result_bytes)},
      {"limits.job-kept-seconds", time(engine.jobs.kept)},
  };
  all.merge(quota_setters("limits.tenant-", engine.quotas.usual));
  return all;
}

Config default_config() {
  Config config;
  config.engine.compilers = 0;  // as many as there are cores
  return config;
}

void set(const std::string& path, const std::map<std::string, Setter>& known,
         const std::string& key, const toml::node& node) {
  const auto at = known.find(key);
  if (at == known.end()) {
    std::vector<std::string_view> keys;
    keys.reserve(known.size());
    for (const auto& [name, setter] : known)
      keys.push_back(name);
    fail(ErrorKind::InvalidArgument, "CONFIG", "{}: there is no setting {}{}", path, key,
         language::suggestion(key, keys));
  }
  at->second(path + ": " + key, node);
}

/// [tenants.NAME], one table for each tenant with a quota of its own.
void read_quotas(const std::string& path, const toml::node& node, Config& config) {
  const toml::table* const tenants = node.as_table();
  if (tenants == nullptr) wrong_value(path + ": tenants", "tables, [tenants.NAME]");
  for (const auto& [name, quota] : *tenants) {
    const std::string key = fmt::format("tenants.{}", std::string_view(name));
    const std::string prefix = key + ".";
    const toml::table* const fields = quota.as_table();
    if (fields == nullptr) wrong_value(path + ": " + key, "a table of settings");
    Quota& own = config.engine.quotas.named[std::string(name)];
    own = config.engine.quotas.usual;
    const std::map<std::string, Setter> known = quota_setters(prefix, own);
    for (const auto& [field, value] : *fields)
      set(path, known, prefix + std::string(std::string_view(field)), value);
  }
}

void read_toml(const std::string& path, Config& config) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::InvalidArgument, "CONFIG", "{}: line {}: {}", path, error.source().begin.line,
         error.description());
  }
  const std::map<std::string, Setter> known = setters(config);
  for (const auto& [key, node] : table) {
    if (std::string_view(key) == "tenants") continue;
    if (const toml::table* inner = node.as_table()) {
      for (const auto& [name, value] : *inner) {
        set(path, known, fmt::format("{}.{}", std::string_view(key), std::string_view(name)),
            value);
      }
    } else {
      set(path, known, std::string(key), node);
    }
  }
  // After the limits of all tenants, which hold where nothing else is said of one.
  if (const toml::node* tenants = table.get("tenants")) read_quotas(path, *tenants, config);
}

/// The settings that have flags: those an operator changes by hand. The others are in the file
/// alone.
void add_flags(CLI::App& app, Config& config, std::string& config_file) {
  app.add_option("--listen", config.listen, "unix:PATH or HOST:PORT; port 0 takes a free one");
  app.add_option("--metrics-listen", config.metrics_listen,
                 "HOST:PORT of the status page, metrics and probes; without it there is none");
  app.add_option("--cache-dir", config.cache_dir, "where compiled kernels are kept");
  app.add_option("--shared-cache", config.engine.shared_cache,
                 "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE] that several daemons share");
  app.add_option("--warm-up", config.warm_up,
                 "a file that names kernel files and saved modules, one a line, which are compiled "
                 "before it is ready");
  app.add_option("--config", config_file, "a TOML file with the same settings")
      ->check(CLI::ExistingFile);
  app.add_option("--threads", config.threads,
                 "threads a kernel runs on; 0: one on each core that the process may use")
      ->check(CLI::Range(0, 4096));
  app.add_option("--token-file", config.token_file,
                 "a file with the token every call must carry, or lines of TENANT TOKEN");
  app.add_option("--tls-cert", config.tls_cert, "certificate chain, PEM");
  app.add_option("--tls-key", config.tls_key, "private key, PEM");
  app.add_option("--tls-client-ca", config.tls_client_ca,
                 "authorities, PEM: clients show a certificate of theirs, whose common name is the "
                 "tenant");
  app.add_option("--credentials", config.credentials,
                 "a folder in which token and certificate are made at the first start");
  app.add_option("--advertise", config.advertise,
                 "HOST:PORT by which others reach it, for the kiln login line of the log");
  app.add_flag("--insecure", config.insecure, "serve other machines without a token or TLS");
  app.add_option("--isolation", config.isolation,
                 "process: workers of their own; none: one process")
      ->check(CLI::IsMember({"process", "none"}));
  app.add_option("--idle-exit", config.idle_exit,
                 "end this many seconds after the last client left")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--grace", config.grace, "seconds that running calls get when the daemon ends")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--log-format", config.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--log-level", config.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  app.set_version_flag("--version", std::string("kilnd ") + kVersion);
}

/// Jobs belong to an address: who asks there again finds them, whichever daemon answers.
std::string job_folder(const Config& config) {
  std::string name = config.listen;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '_';
  }
  // A long name is told apart by its end, and by its hash.
  constexpr size_t kLongest = 80;
  if (name.size() > kLongest) {
    name = language::id_of(config.listen).substr(0, 16) + name.substr(name.size() - kLongest);
  }
  return config.cache_dir + "/jobs/" + name;
}

}  // namespace

std::string default_listen() {
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  const fs::path folder = runtime.empty()
                              ? fs::temp_directory_path() / fmt::format("kiln-{}", ::geteuid())
                              : fs::path(runtime) / "kiln";
  return fmt::format("unix:{}/{}.sock", folder.string(), kVersion);
}

std::optional<Config> read_config(int argc, const char* const* argv, int& exit_code) {
  Config config = default_config();
  std::string config_file;
  CLI::App app("The Kiln daemon: compiles and runs tensor kernels for its clients.", "kilnd");
  add_flags(app, config, config_file);
  try {
    app.parse(argc, argv);
    if (const std::string mistake = command_line::missing_value(app); !mistake.empty())
      fail(ErrorKind::InvalidArgument, "FLAGS", "{}", mistake);
    if (!config_file.empty()) {
      // The file first, then the flags once more over it.
      config = default_config();
      read_toml(config_file, config);
      app.clear();
      app.parse(argc, argv);
    }
    if (config.listen.empty()) config.listen = default_listen();
    if (config.cache_dir.empty()) config.cache_dir = default_cache_dir();
    config.engine.cache_folder = config.cache_dir;
    if (config.engine.compilers == 0) {
      config.engine.compilers = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
    }
    config.engine.job_folder = job_folder(config);
    config.engine.threads = config.threads;
    return config;
  } catch (const CLI::Success& help) {
    exit_code = app.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    const std::string mistake = command_line::first_mistake(app, arguments, error);
    std::fprintf(stderr, "kilnd: %s\n", mistake.c_str());
    exit_code = 2;
  } catch (const Error& error) {
    std::fprintf(stderr, "kilnd: %s\n", error.what());
    exit_code = 2;
  }
  return std::nullopt;
}

void check_config(const Config& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    fail(ErrorKind::InvalidArgument, "TLS",
         "--tls-cert and --tls-key are given together or not at all");
  }
  if (!config.tls_client_ca.empty() && config.tls_cert.empty()) {
    fail(ErrorKind::InvalidArgument, "TLS",
         "--tls-client-ca needs --tls-cert and --tls-key: certificates are shown over TLS alone");
  }
  if (config.isolation != "process" && config.isolation != "none") {
    fail(ErrorKind::InvalidArgument, "ISOLATION",
         "the isolation is {}, but must be process or none", config.isolation);
  }
  if (!config.engine.shared_cache.empty()) parse_redis_url(config.engine.shared_cache);
  if (!config.metrics_listen.empty()) parse_host_port(config.metrics_listen, "not HOST:PORT");
  if (config.listen.rfind("unix:", 0) == 0) {
    // sockaddr_un has 108 bytes, the last one 0.
    constexpr size_t kLongestPath = 107;
    if (config.listen.size() - 5 > kLongestPath) {
      fail(ErrorKind::InvalidArgument, "LISTEN",
           "the path {} is too long for a unix socket; it may have {} bytes",
           config.listen.substr(5), kLongestPath);
    }
    return;
  }
  const HostPort place = parse_host_port(config.listen);
  const bool asks = !config.token_file.empty() || !config.tls_client_ca.empty();
  if (!asks && !config.insecure && !is_loopback(place.host)) {
    fail(ErrorKind::InvalidArgument, "INSECURE",
         "{} can be reached from other machines; give --credentials, a folder in which it "
         "makes a token and a certificate, or --token-file (and --tls-cert and --tls-key), or "
         "--insecure to serve everybody",
         config.listen);
  }
}

bool sends_token_in_the_clear(const Config& config) {
  return !config.token_file.empty() && config.tls_cert.empty() &&
         config.listen.rfind("unix:", 0) != 0 && !is_loopback(parse_host_port(config.listen).host);
}

}  // namespace kiln::server
