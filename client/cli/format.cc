// `kiln fmt`: all files are read and laid out before one is written, so a mistake in the last
// leaves the others as they were.
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cpp/text_file.h"

namespace kiln::cli {
namespace {

struct FormatCommand {
  std::vector<std::string> files;
  bool check = false;

  int run(const Common& common) const {
    // All are read first, so that a mistake in the last leaves the others alone.
    std::vector<std::pair<std::string, std::string>> changes;
    for (const std::string& file : files) {
      const std::string text = detail::read_text(file);
      std::string formatted = format_text(text, file);
      if (formatted != text) changes.emplace_back(file, std::move(formatted));
    }
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const auto& [file, text] : changes) {
      if (!check) detail::write_text(file, text);
      if (!common.json) std::cout << file << "\n";
      names.push_back(file);
    }
    if (common.json) {
      std::cout << nlohmann::ordered_json{{check ? "would_change" : "changed", names}}.dump(2)
                << "\n";
    }
    return check && !changes.empty() ? kWrongRequest : kDone;
  }
};

}  // namespace

void add_format(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "fmt", "lay out kernel and schedule files");
  const auto state = std::make_shared<FormatCommand>();
  command.add_option("FILE", state->files, "kernel files or schedule files")->required();
  command.add_flag("--check", state->check,
                   "change nothing; list the files that would change and exit with 1");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
