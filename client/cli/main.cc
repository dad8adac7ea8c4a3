// The program kiln: commands, common flags, and what every mistake ends as. A word in the place of
// a command is looked at before CLI11 does, since CLI11 would name the flags behind it.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cli/waiting.h"
#include "client/cpp/fail.h"
#include "command_line/usage_text.h"
#include "compiler/language/suggest.h"

namespace kiln::cli {

CLI::App& add_command(CLI::App& app, Program& program, const std::string& name,
                      const std::string& description) {
  CLI::App& command = *app.add_subcommand(name, description);
  Common& common = program.common;
  command.add_option("--address", common.address,
                     "the service: HOST:PORT or unix:PATH; without it $KILN_ADDRESS, then the "
                     "service of kiln login, then a private daemon");
  command.add_option("--token", common.token, "a bearer token; without it $KILN_TOKEN");
  command.add_option("--ca", common.ca,
                     "a PEM file with the authorities to trust; turns on TLS; without it $KILN_CA");
  command.add_option("--cert", common.cert,
                     "a PEM file with this client's certificate, where the service asks for one; "
                     "without it $KILN_CERT");
  command.add_option("--key", common.key,
                     "a PEM file with the certificate's key; without it $KILN_KEY");
  command.add_flag("--json", common.json, "print JSON");
  return command;
}

Kernel compile_anywhere(const Common& common, const Definition& definition,
                        const BuildOptions& options) {
  const Connection connection = common.connect();
  try {
    const Waiting waiting("compiling " + definition.name());
    return connection.compile(definition, options, SourceLocation::none());
  } catch (const Error& error) {
    if (error.reason() != "NO_DEVICE" || !options.arch.empty()) throw;
    ErrorFields fields = error.fields();
    fields.notes.emplace_back("the flag for it is --arch sm_90");
    throw_error(std::move(fields));
  }
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      if (c + 1 < row.size()) line.append(widths[c] - row[c].size() + 2, ' ');
    }
    text += line + "\n";
  }
  return text;
}

namespace {

/// What stands in the place of a command but is none, else empty.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  const auto word = std::find_if(arguments.begin(), arguments.end(),
                                 [](const std::string& each) { return !each.starts_with('-'); });
  if (word == arguments.end()) return "";
  if (*word == "help") return "help is a flag: kiln --help, or kiln run --help";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), *word) != names.end()) return "";
  const std::vector<std::string_view> commands(names.begin(), names.end());
  return fmt::format("there is no command {}{}", *word, language::suggestion(*word, commands));
}

/// What kiln without a command says.
constexpr const char* kFirstSteps =
    "Compiles and runs tensor kernels on a Kiln service. The first five commands:\n\n"
    "  kiln doctor                                      what works here, and what is missing\n"
    "  kiln run FILE.kiln --in X=x.npy --out Y=y.npy    compile a kernel and run it\n"
    "  kiln lower FILE.kiln                             the loops that it becomes\n"
    "  kiln compile FILE.kiln --target cuda --arch sm_90 --report\n"
    "                                                   for a GPU, which need not be here\n"
    "  kiln submit FILE.kiln --in X=x.npy               leave it to the service, as a job\n\n"
    "kiln --help lists all commands, kiln COMMAND --help the flags of one.\n";

void add_commands(CLI::App& app, Program& program) {
  add_run(app, program);
  add_compile(app, program);
  add_bench(app, program);
  add_profile(app, program);
  add_lower(app, program);
  add_differentiate(app, program);
  add_inspect(app, program);
  add_schedule(app, program);
  add_format(app, program);
  add_jobs(app, program);
  add_devices(app, program);
  add_tensors(app, program);
  add_doctor(app, program);
  add_explain(app, program);
  add_login(app, program);
  add_cache(app, program);
  add_serve(app, program);
  add_top(app, program);
  add_tune(app, program);
  add_version(app, program);
  add_completion(app, program);
}

int run_command_line(int argc, char** argv) {
  CLI::App app("Compiles and runs tensor kernels on a Kiln service", "kiln");
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("kiln {}", client::version()));
  Program program;
  app.add_flag("--json", program.common.json, "print JSON");
  add_commands(app, program);
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.empty()) {
    std::cout << kFirstSteps;
    return kDone;
  }
  // The flag itself may stand behind the mistake.
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    if (const std::string message = unknown_command(app, arguments); !message.empty()) {
      throw UsageError(message);
    }
    app.parse(argc, argv);
    if (const std::string message = command_line::missing_value(app); !message.empty()) {
      throw UsageError(message);
    }
    return program.run();
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    print_usage_error(command_line::first_mistake(app, arguments, error), json);
    return kUsage;
  } catch (const UsageError& error) {
    print_usage_error(error.what(), json);
    return kUsage;
  } catch (const Error& error) {
    print_error(error, json);
    return exit_code_of(error.kind());
  }
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) {
  // gRPC's own lines name its files; whoever looks for a fault in it sets another level.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  try {
    return kiln::cli::run_command_line(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return kiln::cli::kService;
  }
}
