// `kiln cache warm`: has a service compile kernels before anybody waits for them, as after it was
// brought up to date. What its cache has costs nothing, so the same list may be run at each start.
//
//   kiln cache warm model.kiln saved.module --list more.txt
#include <iostream>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "client/cli/kernel_file.h"
#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cli/waiting.h"
#include "client/cpp/fail.h"
#include "client/cpp/text_file.h"

namespace kiln::cli {
namespace {

struct WarmCommand {
  std::vector<std::string> files;
  std::vector<std::string> lists;
  std::string target = "llvm";
  std::string arch;

  struct Outcome {
    std::string file;
    std::string kernel;  // empty: the file was not read
    std::string cache;
    double seconds = 0;
    std::optional<Error> error;
  };

  int run(const Common& common) const {
    const Connection connection = common.connect();
    std::vector<Outcome> outcomes;
    for (const std::string& file : all_files()) {
      try {
        file.ends_with(".kiln") ? take_text(connection, file, outcomes)
                                : take_module(connection, file, outcomes);
      } catch (const Error& error) {
        outcomes.push_back({.file = file, .error = error});
      }
    }
    common.json ? print_json(outcomes) : print(outcomes);
    for (const Outcome& outcome : outcomes) {
      if (outcome.error) return exit_code_of(outcome.error->kind());
    }
    return kDone;
  }

  /// Those that are named and those of the lists: a line each, # before comments.
  std::vector<std::string> all_files() const {
    std::vector<std::string> all = files;
    for (const std::string& list : lists) {
      std::istringstream lines(client::detail::read_text(list));
      for (std::string line; std::getline(lines, line);) {
        line.resize(std::min(line.find('#'), line.size()));
        line.resize(line.find_last_not_of(" \t\r") + 1);
        line.erase(0, line.find_first_not_of(" \t"));
        if (!line.empty()) all.push_back(line);
      }
    }
    if (all.empty())
      throw UsageError("cache warm takes kernel files, or a list of them: --list FILE");
    return all;
  }

  void take_text(const Connection& connection, const std::string& file,
                 std::vector<Outcome>& outcomes) const {
    const std::string name = target_named(target);
    for (const Definition& kernel : parse(client::detail::read_text(file), file)) {
      Outcome& outcome = outcomes.emplace_back();
      outcome.file = file;
      outcome.kernel = kernel.name();
      try {
        const Waiting waiting("compiling " + kernel.name());
        note(connection.compile(kernel.with_schedule(name == "cuda" ? name : "cpu"),
                                {.target = name, .arch = arch}, SourceLocation::none()),
             outcome);
      } catch (const Error& error) {
        outcome.error = error;
      }
    }
  }

  /// A module says itself what its kernels are for.
  static void take_module(const Connection& connection, const std::string& file,
                          std::vector<Outcome>& outcomes) {
    for (const Kernel& kernel : connection.load_module(file)) {
      Outcome& outcome = outcomes.emplace_back();
      outcome.file = file;
      outcome.kernel = kernel.name();
      note(kernel, outcome);
    }
  }

  static void note(const Kernel& kernel, Outcome& outcome) {
    const Timings timings = kernel.build_timings();
    outcome.cache = timings.cache;
    outcome.seconds = timings.compile;
  }

  static void print(const std::vector<Outcome>& outcomes) {
    std::size_t compiled = 0;
    std::size_t found = 0;
    for (const Outcome& outcome : outcomes) {
      if (outcome.error) {
        std::cerr << fmt::format("error: {}: {}\n",
                                 outcome.kernel.empty() ? outcome.file : outcome.kernel,
                                 outcome.error->what());
        continue;
      }
      ++(outcome.cache == "compiled" ? compiled : found);
    }
    std::cout << fmt::format("{} compiled, {} there already, {} failed\n", compiled, found,
                             outcomes.size() - compiled - found);
  }

  static void print_json(const std::vector<Outcome>& outcomes) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Outcome& outcome : outcomes) {
      nlohmann::ordered_json row{{"file", outcome.file}, {"kernel", outcome.kernel}};
      if (outcome.error) {
        row["error"] = to_json(*outcome.error);
      } else {
        row["cache"] = outcome.cache;
        row["seconds"] = outcome.seconds;
      }
      rows.push_back(std::move(row));
    }
    std::cout << rows.dump(2) << "\n";
  }
};

}  // namespace

void add_warm(CLI::App& cache, Program& program) {
  CLI::App& command =
      add_command(cache, program, "warm", "have the service compile kernels before somebody waits");
  const auto state = std::make_shared<WarmCommand>();
  command.add_option("FILE", state->files, "kernel files, and modules that export_library wrote");
  command.add_option("--list", state->lists, "a file that names such files, one a line")
      ->allow_extra_args(false);
  command
      .add_option("--target", state->target, "what kernel files are for: llvm (or cpu), or cuda")
      ->capture_default_str();
  command.add_option("--arch", state->arch,
                     "sm_90, or a CPU's name; without it that of the device");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
