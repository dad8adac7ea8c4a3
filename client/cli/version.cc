// `kiln version`: of the client, and of the daemon where one runs already. A question of versions
// starts nothing.
#include <iostream>

#include <nlohmann/json.hpp>

#include "client/cli/program.h"
#include "client/cpp/private_daemon.h"
#include "client/cpp/profile.h"

namespace kiln::cli {
namespace {

/// Asks no private daemon that does not run: a question of versions starts nothing.
bool may_ask(const Common& common) {
  const bool named = !client::detail::endpoint_of(common.address, {}).address.empty();
  return named || client::detail::private_daemon_runs();
}

int print_versions(const Common& common) {
  std::string daemon = "not running";
  if (may_ask(common)) {
    const Connection connection = common.connect();
    daemon = connection.describe().version;
    if (!common.json) daemon += " at " + connection.address();
  }
  if (common.json) {
    const nlohmann::ordered_json object{
        {"client", client::version()},
        {"daemon", may_ask(common) ? nlohmann::ordered_json(daemon) : nullptr}};
    std::cout << object.dump(2) << "\n";
  } else {
    std::cout << "client  " << client::version() << "\ndaemon  " << daemon << "\n";
  }
  return 0;
}

}  // namespace

void add_version(CLI::App& app, Program& program) {
  CLI::App& command =
      add_command(app, program, "version", "print the versions of client and daemon");
  command.callback(
      [&program] { program.run = [&program] { return print_versions(program.common); }; });
}

}  // namespace kiln::cli
