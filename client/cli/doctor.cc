// `kiln doctor`: client, address, daemon and what the service says of its parts, a line each. It is
// well when a CPU can be used: no GPU is no fault.
#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cpp/private_daemon.h"
#include "client/cpp/profile.h"

namespace kiln::cli {
namespace {

std::string address_named(const Common& common) {
  return client::detail::endpoint_of(common.address, {}).address;
}

Component check_address(const Common& common) {
  const client::detail::Endpoint endpoint = client::detail::endpoint_of(common.address, {});
  if (!endpoint.address.empty())
    return {"address", true, endpoint.address + ", from " + endpoint.source};
  return {
      "address", true,
      client::detail::private_address() + ", the private daemon (no --address, no KILN_ADDRESS)"};
}

Component check_daemon_program() {
  std::vector<std::string> looked_at;
  const std::string program = client::detail::find_daemon(looked_at);
  if (!program.empty()) return {"daemon", true, program};
  return {"daemon", false,
          fmt::format("no kilnd was found in {}: install Kiln, or name it in KILN_DAEMON",
                      fmt::join(looked_at, ", "))};
}

/// What the service says of itself, or one line that says why it says nothing.
std::vector<Component> check_service(const Common& common) {
  try {
    const Connection connection = common.connect();
    const Description description = connection.describe();
    std::vector<Component> found{{"service", true,
                                  fmt::format("version {} at {}, process {}", description.version,
                                              connection.address(), description.pid)}};
    if (description.version != client::version()) {
      found.push_back({"version", false,
                       fmt::format("this client is {} and the service is {}: install the same "
                                   "version of both",
                                   client::version(), description.version)});
    }
    found.insert(found.end(), description.components.begin(), description.components.end());
    return found;
  } catch (const Error& error) {
    return {{"service", false, error.message()}};
  }
}

void print_line(const Component& part, std::size_t width) {
  const bool colour = has_colour(STDOUT_FILENO);
  const std::string mark = part.ok ? "ok     " : "missing";
  const std::string shown = !colour ? mark : (part.ok ? "\x1b[32m" : "\x1b[33m") + mark + "\x1b[0m";
  std::cout << fmt::format("{}  {:{}}  {}\n", shown, part.name, width, part.message);
}

int examine(const Common& common) {
  std::vector<Component> parts{{"client", true, "version " + client::version()},
                               check_address(common)};
  if (address_named(common).empty()) parts.push_back(check_daemon_program());
  const std::vector<Component> service = check_service(common);
  parts.insert(parts.end(), service.begin(), service.end());
  const bool works = std::any_of(parts.begin(), parts.end(), [](const Component& part) {
    return part.name == "cpu" && part.ok;
  });
  if (common.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Component& part : parts) {
      list.push_back({{"name", part.name}, {"ok", part.ok}, {"message", part.message}});
    }
    std::cout << nlohmann::ordered_json{{"ok", works}, {"components", list}}.dump(2) << "\n";
  } else {
    std::size_t width = 0;
    for (const Component& part : parts)
      width = std::max(width, part.name.size());
    for (const Component& part : parts)
      print_line(part, width);
  }
  return works ? kDone : kService;
}

}  // namespace

void add_doctor(CLI::App& app, Program& program) {
  CLI::App& command =
      add_command(app, program, "doctor", "say what works here, and what is missing");
  command.callback([&program] { program.run = [&program] { return examine(program.common); }; });
}

}  // namespace kiln::cli
