// `kiln serve`: becomes kilnd (exec) with the flags that follow, so that signals, output and exit
// codes are the daemon's own.
#include <cstring>
#include <memory>

#include <unistd.h>

#include "client/cli/program.h"
#include "client/cpp/fail.h"
#include "client/cpp/private_daemon.h"

namespace kiln::cli {
namespace {

int serve(const std::vector<std::string>& flags) {
  std::vector<std::string> looked_at;
  const std::string program = client::detail::find_daemon(looked_at);
  if (program.empty()) {
    client::detail::fail(ErrorKind::Unavailable, "NO_DAEMON",
                         "no daemon to start: looked at {}; install Kiln, or name the daemon in "
                         "KILN_DAEMON",
                         fmt::join(looked_at, ", "));
  }
  std::vector<const char*> arguments{program.c_str()};
  for (const std::string& flag : flags)
    arguments.push_back(flag.c_str());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), const_cast<char* const*>(arguments.data()));
  client::detail::fail(ErrorKind::Unavailable, "DAEMON_START",
                       "the daemon {} cannot be started: {}", program, std::strerror(errno));
}

}  // namespace

void add_serve(CLI::App& app, Program& program) {
  CLI::App* command =
      app.add_subcommand("serve", "run the daemon kilnd with the flags that follow");
  command->prefix_command();
  command->set_help_flag();  // --help is the daemon's
  command->callback(
      [command, &program] { program.run = [command] { return serve(command->remaining()); }; });
}

}  // namespace kiln::cli
