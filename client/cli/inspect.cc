// `kiln inspect FILE.kiln`: what a step of a program runs, for arrays of some shapes, and in which
// memory. Nothing is run, so shapes are all that is given.
//
//   kiln inspect jacobi.kiln --shape u=1024,1024 --svg plan.svg
#include <charconv>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/cli/draw_plan.h"
#include "client/cli/files.h"
#include "client/cli/report.h"
#include "client/cli/run_program.h"
#include "client/cli/waiting.h"

namespace kiln::cli {
namespace {

std::vector<std::int64_t> shape_of(const std::string& name, std::string_view text) {
  std::vector<std::int64_t> shape;
  if (text == "()") return shape;
  while (!text.empty()) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    const auto used = static_cast<std::size_t>(end - text.data());
    const bool goes_on = used < text.size() && text[used] == ',' && used + 1 < text.size();
    if (error != std::errc() || size < 0 || (used < text.size() && !goes_on)) {
      throw UsageError(
          fmt::format("--shape of {} must be sizes with commas between, as in {}=3,4, "
                      "or {}=() of a number",
                      name, name, name));
    }
    shape.push_back(size);
    text.remove_prefix(goes_on ? used + 1 : used);
  }
  return shape;
}

nlohmann::ordered_json plan_json(const ProgramPlan& plan) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const ProgramPlan::Step& kernel : plan.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"nodes", kernel.nodes},
                       {"reads", kernel.read_bytes},
                       {"writes", kernel.written_bytes},
                       {"once", kernel.once}});
  }
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const ProgramPlan::Value& value : plan.values) {
    if (value.offset < 0) continue;
    values.push_back({{"name", value.name},
                      {"type", name_of(value.type)},
                      {"shape", value.shape},
                      {"offset", value.offset},
                      {"becomes", value.becomes},
                      {"reuses", value.reuses}});
  }
  return {{"program", plan.program},   {"kernels", kernels},      {"moved", plan.moved_bytes()},
          {"arena", plan.arena_bytes}, {"live", plan.live_bytes}, {"separate", plan.separate_bytes},
          {"values", values}};
}

struct InspectCommand {
  KernelChoice kernel;
  StepChoice steps;
  std::vector<std::string> shapes;
  std::string svg;

  int run(const Common& common) const {
    const auto [text, name] = kernel.read();
    const std::vector<client::Program> programs = parse_programs(text, name);
    if (programs.empty()) {
      throw UsageError(
          fmt::format("{} has no program; the loops of a kernel are printed by kiln "
                      "lower",
                      name));
    }
    const client::Program* program = steps.choose(programs, kernel);
    const std::map<std::string, std::vector<std::int64_t>> shapes_given = given(*program);
    const Connection connection = common.connect();
    const ProgramPlan plan = [&] {
      const Waiting waiting("compiling " + program->name());
      return connection.plan(*program, shapes_given, {.batch = steps.batch},
                             SourceLocation::none());
    }();
    if (!svg.empty()) write_through(svg, [&](std::ostream& out) { out << draw_plan(plan); });
    std::cout << (common.json ? plan_json(plan).dump(2) + "\n" : print_plan(plan));
    return kDone;
  }

 private:
  std::map<std::string, std::vector<std::int64_t>> given(const client::Program& program) const {
    std::map<std::string, std::vector<std::int64_t>> given;
    for (const std::string& each : shapes) {
      const auto [name, shape] = split_pair(each, "--shape");
      given[name] = shape_of(name, shape);
    }
    std::vector<std::string> missing;
    for (const ProgramValue& value : program.values()) {
      if (given.count(value.name) == 0) missing.push_back(value.name);
    }
    if (!missing.empty()) {
      throw UsageError(fmt::format("{} needs the shape of {}: give it with --shape {}=ROWS,COLUMNS",
                                   program.name(), fmt::join(missing, ", "), missing[0]));
    }
    return given;
  }
};

}  // namespace

void add_inspect(CLI::App& app, Program& program) {
  CLI::App& command = add_command(
      app, program, "inspect", "print, and draw, what a step of a program runs, in which memory");
  const auto state = std::make_shared<InspectCommand>();
  command.add_option("FILE", state->kernel.file, "a .kiln file with a program")->required();
  command.add_option("--program", state->steps.program, "which, where the file has several");
  command
      .add_option("--shape", state->shapes, "NAME=ROWS,COLUMNS of each array that a run is given")
      ->take_all();
  command.add_option("--batch", state->steps.batch, "rows of its data sets that a step sees");
  command.add_option("--svg", state->svg, "draw the kernels and their memory into this file");
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
