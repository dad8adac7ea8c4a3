// `kiln completion SHELL`: a script that completes commands and their flags. It is written from the
// commands themselves, so it has all of them.
//
//   source <(kiln completion bash)      kiln completion fish | source
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/cli/program.h"
#include "client/cli/report.h"

namespace kiln::cli {
namespace {

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames())
      flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands)
    names.push_back(command->get_name());
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands(nullptr);
}

/// Files are completed where no flag is wanted: the shell's own completion knows them best.
std::string bash(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    std::vector<std::string> words = names_of(commands_of(*command));
    for (const std::string& flag : flags_of(*command))
      words.push_back(flag);
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), fmt::join(words, " "));
  }
  return fmt::format(
      "_kiln() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} words=\"{} --help --version\"\n"
      "  if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
      "    case ${{COMP_WORDS[1]}} in\n{}    esac\n"
      "  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}}\n"
      "complete -o default -F _kiln kiln\n",
      fmt::join(names_of(commands_of(app)), " "), cases);
}

std::string zsh(const CLI::App& app) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + bash(app);
}

/// A text inside single quotes.
std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string fish(const CLI::App& app) {
  std::string script;
  for (const CLI::App* command : commands_of(app)) {
    script += fmt::format("complete -c kiln -n __fish_use_subcommand -a {} -d {}\n",
                          command->get_name(), quoted(command->get_description()));
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        script += fmt::format("complete -c kiln -n '__fish_seen_subcommand_from {}' -l {} -d {}\n",
                              command->get_name(), name, quoted(option->get_description()));
      }
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& app, Program& program) {
  CLI::App& command = *app.add_subcommand(
      "completion", "print a script for a shell: source <(kiln completion bash)");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.callback([&app, &program, shell] {
    program.run = [&app, shell] {
      std::cout << (*shell == "fish" ? fish(app) : *shell == "zsh" ? zsh(app) : bash(app));
      return kDone;
    };
  });
}

}  // namespace kiln::cli
