// `kiln run` of a program: data sets, inputs and parameters come from files, and parameters go back
// to files like outputs.
//
//   kiln run jacobi.kiln --in u=start.npy --steps 10000 --out u=end.npy
#include "client/cli/run_program.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "client/cli/npy.h"
#include "client/cli/report.h"
#include "client/cli/waiting.h"

namespace kiln::cli {
namespace {

template <typename... Args>
[[noreturn]] void usage(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

std::string program_names(const std::vector<client::Program>& programs) {
  std::vector<std::string> names;
  names.reserve(programs.size());
  for (const client::Program& program : programs)
    names.push_back(program.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view text_of(ProgramRole role) {
  return role == ProgramRole::Data    ? "data set"
         : role == ProgramRole::Input ? "input"
                                      : "parameter";
}

/// The arrays of --in by name: all that the program needs, and nothing else.
std::map<std::string, Argument> given_arguments(const client::Program& program,
                                                const std::vector<std::string>& inputs) {
  std::map<std::string, std::string> files;
  for (const std::string& text : inputs) {
    const auto [name, path] = split_pair(text, "--in");
    if (!files.emplace(name, path).second) usage("--in names {} twice", name);
  }
  std::map<std::string, Argument> given;
  std::vector<std::string> missing;
  for (const ProgramValue& value : program.values()) {
    const auto file = files.find(value.name);
    if (file == files.end()) {
      missing.push_back(fmt::format("{} {}", text_of(value.role), value.name));
      continue;
    }
    if (missing.empty()) given.emplace(value.name, read_npy(file->second, value.type));
    files.erase(file);
  }
  if (!files.empty()) usage("{} has no input {}", program.name(), files.begin()->first);
  if (!missing.empty()) {
    usage("{} needs {}: give {} with --in NAME=FILE.npy", program.name(), fmt::join(missing, ", "),
          missing.size() == 1 ? "it" : "them");
  }
  return given;
}

/// What a run of it leaves: its outputs, and its parameters.
std::vector<std::string> outputs_of(const client::Program& program) {
  std::vector<std::string> names = program.outputs();
  for (const ProgramValue& value : program.values()) {
    const bool is_output = std::find(names.begin(), names.end(), value.name) != names.end();
    if (value.role == ProgramRole::Parameter && !is_output) names.push_back(value.name);
  }
  return names;
}

void show_progress(const ProgramProgress& progress) {
  std::string means;
  for (const auto& [name, mean] : progress.means)
    means += fmt::format("{} = {:.6g}, ", name, mean);
  const bool is_epoch = progress.epochs > 0;
  std::cerr << fmt::format("{} {}: {}{}\n", is_epoch ? "epoch" : "step",
                           is_epoch ? progress.epochs : progress.steps, means,
                           time_text(progress.seconds));
}

}  // namespace

void StepChoice::add_to(CLI::App& command) {
  command.add_option("--program", program, "which program, where the file has several");
  command.add_option("--steps", steps,
                     "of a program: how many steps; at most, where it has an until");
  command.add_option("--epochs", epochs, "of a program: how often its data sets are passed over");
  command.add_option("--batch", batch, "of a program: rows of its data sets that a step sees");
  command.add_option("--first-step", first_step, "of a program: what its steps are counted from");
  command.add_flag("--stop-on-nan", stop_on_nan,
                   "of a program: stop before the step whose report is NaN");
}

const client::Program* StepChoice::choose(const std::vector<client::Program>& programs,
                                          const KernelChoice& kernel) const {
  if (!program.empty()) {
    const auto found = std::find_if(programs.begin(), programs.end(),
                                    [&](const auto& each) { return each.name() == program; });
    if (found != programs.end()) return &*found;
    usage("{} has no program {}; it has {}", kernel.file, program,
          programs.empty() ? "none" : program_names(programs));
  }
  if (programs.size() == 1 && kernel.kernel.empty()) return &programs[0];
  if (programs.size() > 1 && kernel.kernel.empty()) {
    usage("{} has several programs: choose one of {} with --program, or a kernel with --kernel",
          kernel.file, program_names(programs));
  }
  if (steps > 0 || epochs > 0 || batch > 0 || first_step > 0 || stop_on_nan) {
    usage(
        "only programs take steps, but a kernel of {} is run; leave --steps, --epochs, --batch, "
        "--first-step and --stop-on-nan out",
        kernel.file);
  }
  return nullptr;
}

int run_program(const Common& common, const client::Program& program, const StepChoice& steps,
                const CallChoice& call, const OutputChoice& output) {
  const std::vector<std::string> names = outputs_of(program);
  const std::vector<std::string> reports = program.reports();
  std::vector<std::string> all = names;
  all.insert(all.end(), reports.begin(), reports.end());
  output.check(all, program.name(), common.json);
  const std::map<std::string, Argument> given = given_arguments(program, call.inputs);
  if (!call.sizes.empty()) usage("a program takes no --size; its sizes are those of its arrays");
  ProgramOptions options{.target = call.target(),
                         .device = call.numbered_gpu(),
                         .steps = steps.steps,
                         .epochs = steps.epochs,
                         .batch = steps.batch,
                         .first_step = steps.first_step,
                         .stop_on_nan = steps.stop_on_nan};
  // Rounded up, since 0 would be no limit.
  options.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(call.timeout * 1000)));
  const Connection connection = common.connect();
  // What comes first: sending, planning, compiling.
  std::optional<Waiting> waiting("starting " + program.name());
  if (!common.json) {
    options.on_progress = [&waiting](const ProgramProgress& progress) {
      waiting.reset();
      show_progress(progress);
    };
  }
  const ProgramResult result = connection.run(program, given, options, SourceLocation::none());
  waiting.reset();

  std::vector<NamedArray> arrays;
  for (const std::string& name : names) {
    const auto found = result.outputs.find(name);
    arrays.push_back(
        {name, found != result.outputs.end() ? found->second : std::get<Array>(given.at(name))});
  }
  for (const std::string& name : reports) {
    const std::vector<double>& values = result.reports.at(name);
    if (common.json || output.has_file(name)) {
      arrays.push_back({name, Array(values, {static_cast<std::int64_t>(values.size())})});
    } else if (!values.empty()) {
      std::cerr << fmt::format("{}: {:.6g} in step {}\n", name, values.back(), result.steps);
    }
  }
  output.deliver(arrays, result.timings, common.json);
  return 0;
}

}  // namespace kiln::cli
