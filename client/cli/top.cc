// `kiln top`: what a service is doing, again and again, as differences of its counters over the
// interval. On a terminal each picture takes the place of the one before; elsewhere they follow.
#include <chrono>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "client/cli/outputs.h"
#include "client/cli/program.h"
#include "client/cli/report.h"

namespace kiln::cli {
namespace {

struct TopOptions {
  double interval = 1;
  int count = 0;  // 0: for ever
};

using Seconds = std::chrono::duration<double>;

/// A moment of a service.
struct Look {
  Description described;
  std::chrono::steady_clock::time_point when = std::chrono::steady_clock::now();

  std::int64_t count(const std::string& name) const {
    const auto at = described.counters.find(name);
    return at == described.counters.end() ? 0 : at->second;  // of an older service
  }
};

/// What grew between two looks. A service that was started again begins anew.
struct Growth {
  const Look& before;
  const Look& now;

  double rate(const std::string& name) const {
    const bool same = before.described.boot_id == now.described.boot_id;
    const auto grown = now.count(name) - (same ? before.count(name) : 0);
    const double seconds = Seconds(now.when - before.when).count();
    return seconds > 0 ? static_cast<double>(grown) / seconds : 0;
  }
};

std::string picture(const Growth& growth, const std::string& address) {
  const Look& now = growth.now;
  std::string text = fmt::format("kilnd {} at {}, process {}\n\n", now.described.version, address,
                                 now.described.pid);
  std::vector<std::vector<std::string>> devices{{"DEVICE", "STATE", "ARCH", "DESCRIPTION"}};
  for (const Device& device : now.described.devices)
    devices.push_back({device.name, device.state, device.arch, device.description});
  text += table(devices) + "\n";
  const auto row = [&](const char* name, const char* counter) {
    return std::vector<std::string>{name, fmt::format("{:.1f}", growth.rate(counter)),
                                    std::to_string(now.count(counter))};
  };
  text += table({{"", "PER SECOND", "IN ALL"},
                 row("calls of kernels", "runs"),
                 row("  failed", "failed_runs"),
                 row("  repeated", "retried_runs"),
                 row("  refused", "rejected"),
                 row("compiled", "compiles"),
                 row("  found in memory", "memory_hits"),
                 row("  on disk", "disk_hits"),
                 row("  in the shared cache", "shared_hits"),
                 row("workers restarted", "worker_restarts"),
                 row("compilers restarted", "compiler_restarts")});
  text += fmt::format(
      "\nup {}/s  down {}/s  waiting or running {}  clients {}  tensors {} ({})  jobs {}\n",
      bytes_text(growth.rate("uploaded_bytes")), bytes_text(growth.rate("downloaded_bytes")),
      now.count("queued_runs"), now.count("sessions"), now.count("tensors"),
      bytes_text(static_cast<double>(now.count("tensor_bytes"))), now.count("unfinished_jobs"));
  return text;
}

std::string json_line(const Growth& growth) {
  nlohmann::ordered_json rates = nlohmann::ordered_json::object();
  for (const auto& [name, value] : growth.now.described.counters)
    rates[name] = growth.rate(name);
  return nlohmann::ordered_json{{"seconds", Seconds(growth.now.when - growth.before.when).count()},
                                {"counters", growth.now.described.counters},
                                {"per_second", rates}}
      .dump();
}

int watch_service(const Common& common, const TopOptions& options) {
  const Connection connection = common.connect();
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  Look before{connection.describe()};
  for (int i = 0; options.count == 0 || i < options.count; ++i) {
    std::this_thread::sleep_for(Seconds(options.interval));
    Look now{connection.describe()};
    const Growth growth{before, now};
    if (common.json) {
      std::cout << json_line(growth) << std::endl;
    } else {
      std::cout << (is_terminal ? "\x1b[H\x1b[2J"
                    : i == 0    ? ""
                                : "\n")
                << picture(growth, connection.address()) << std::flush;
    }
    before = std::move(now);
  }
  return kDone;
}

}  // namespace

void add_top(CLI::App& app, Program& program) {
  CLI::App& command =
      add_command(app, program, "top", "show what the service is doing, until Ctrl-C");
  const auto options = std::make_shared<TopOptions>();
  command.add_option("--interval", options->interval, "seconds between two looks")
      ->check(CLI::Range(0.05, 3600.0));
  command.add_option("--count", options->count, "end after so many; otherwise Ctrl-C ends it")
      ->check(CLI::PositiveNumber);
  command.callback([&program, options] {
    program.run = [&program, options] { return watch_service(program.common, *options); };
  });
}

}  // namespace kiln::cli
