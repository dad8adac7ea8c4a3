// `kiln schedule show`, `explain` and `apply`: the steps of a file, those that the service adds and
// why, and a kernel file with others put in.
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "client/cli/draw_loops.h"
#include "client/cli/explain_schedule.h"
#include "client/cli/kernel_file.h"
#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cpp/text_file.h"

namespace kiln::cli {
namespace {

void print_schedule(const std::string& text, const Common& common) {
  if (common.json) {
    std::cout << nlohmann::ordered_json{{"text", text}}.dump(2) << "\n";
  } else {
    std::cout << text;
  }
}

struct ShowCommand {
  KernelChoice kernel;
  std::string target = "cpu";
  std::string arch;
  bool automatic = false;
  bool svg = false;

  int run(const Common& common) const {
    const std::string compiled_for = target_named(target);
    const std::string block = compiled_for == "llvm" ? "cpu" : compiled_for;
    const Definition definition = kernel.load(compiled_for);
    if (svg) {
      print_schedule(drawn(definition, compiled_for, common), common);
      return kDone;
    }
    print_schedule(automatic ? chosen(definition, compiled_for, block, common)
                             : definition.schedule_text(block),
                   common);
    return kDone;
  }

  /// The loops that the steps make, as a picture.
  std::string drawn(const Definition& definition, const std::string& compiled_for,
                    const Common& common) const {
    LowerOptions options;
    options.automatic = automatic;
    return draw_loops(common.connect().lower(definition, options, kernel.options(compiled_for),
                                             SourceLocation::none()));
  }

  /// What the service makes of it: the steps of the file and those for stages without any.
  std::string chosen(const Definition& definition, const std::string& compiled_for,
                     const std::string& block, const Common& common) const {
    BuildOptions options = kernel.options(compiled_for);
    options.arch = arch;
    const Kernel compiled = compile_anywhere(common, definition, options);
    const nlohmann::json report = nlohmann::json::parse(compiled.report());
    return format_text(schedule_block(block, report.at("schedule").get<std::vector<std::string>>()),
                       "schedule");
  }
};

struct ApplyCommand {
  std::string file;
  std::string schedule;
  std::string kernel;
  std::string out;
  bool in_place = false;

  int run(const Common& common) const {
    const std::string result = apply_schedules(detail::read_text(file), file, kernel,
                                               detail::read_text(schedule), schedule);
    if (in_place) {
      detail::write_text(file, result);
    } else if (!out.empty()) {
      detail::write_text(out, result);
    } else {
      print_schedule(result, common);
    }
    return kDone;
  }
};

void add_show(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "show", "print the schedule of a kernel");
  const auto state = std::make_shared<ShowCommand>();
  state->kernel.add_to(command);
  command.add_option("--target", state->target, "cpu (or llvm), or cuda")->capture_default_str();
  command.add_option("--arch,--cpu", state->arch,
                     "with --auto: sm_90, or a CPU's name; without it that of the device");
  command.add_flag("--auto", state->automatic,
                   "the schedule that will run, with untouched stages scheduled");
  command.add_flag("--svg", state->svg, "a picture of the loops in place of the steps");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

void add_explanation(CLI::App& app, Program& program) {
  CLI::App& command =
      add_command(app, program, "explain",
                  "the schedules that a kernel may have, and what each is predicted to take");
  const auto state = std::make_shared<ExplainSchedule>();
  state->add_to(command);
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

void add_apply(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "apply",
                                  "print a kernel file with the blocks of a schedule file in it");
  const auto state = std::make_shared<ApplyCommand>();
  command.add_option("FILE", state->file, "a .kiln file")->required();
  command.add_option("SCHEDULE", state->schedule, "a file of schedule blocks")->required();
  command.add_option("--kernel", state->kernel, "which kernel, where the file has several");
  CLI::Option* const out = command.add_option("--out", state->out, "write to this file");
  command.add_flag("--in-place", state->in_place, "write to FILE itself")->excludes(out);
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace

void add_schedule(CLI::App& app, Program& program) {
  CLI::App& command = *app.add_subcommand("schedule", "schedules as text: show, explain, apply");
  command.require_subcommand(1);
  add_show(command, program);
  add_explanation(command, program);
  add_apply(command, program);
}

}  // namespace kiln::cli
