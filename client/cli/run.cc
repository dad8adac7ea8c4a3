// `kiln run` of a kernel: compile, call, deliver; of a compiled one, the call alone. Names of
// outputs are checked first, so that a mistake there costs no compile.
#include <memory>

#include "client/cli/kernel_file.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"
#include "client/cli/run_artifact.h"
#include "client/cli/run_program.h"
#include "client/cli/waiting.h"

namespace kiln::cli {
namespace {

struct RunCommand {
  KernelChoice kernel;
  StepChoice steps;
  CallChoice call;
  OutputChoice output;

  int run(const Common& common) const {
    if (is_artifact(kernel.file)) return run_artifact(common, kernel, call, output);
    const std::string target = call.target();
    const auto [text, name] = kernel.read();
    const std::vector<client::Program> programs = parse_programs(text, name);
    if (const client::Program* program = steps.choose(programs, kernel)) {
      return run_program(common, *program, steps, call, output);
    }
    const Definition definition = kernel.choose(text, name, target);
    std::vector<std::string> names;
    for (const Parameter& parameter : definition.parameters()) {
      if (parameter.output) names.push_back(parameter.name);
    }
    output.check(names, definition.name(), common.json);
    const std::vector<Argument> inputs = call.load(definition);
    const CallOptions options = call.options(definition);

    const Kernel compiled = build_here(common.connect(), definition, call.build_options(kernel));
    const Outputs results = [&] {
      const Waiting waiting("running " + definition.name());
      return compiled.call(inputs, options, SourceLocation::none());
    }();
    std::vector<NamedArray> outputs;
    for (std::size_t i = 0; i < results.size(); ++i)
      outputs.push_back({names[i], results[i]});
    Timings timings = compiled.timings();
    timings.compile = compiled.build_timings().compile;
    timings.cache = compiled.build_timings().cache;
    output.deliver(outputs, timings, common.json);
    return 0;
  }
};

}  // namespace

void add_run(CLI::App& app, Program& program) {
  CLI::App& command =
      add_command(app, program, "run",
                  "compile a kernel, or a program of kernels, and run it; run a compiled one");
  const auto state = std::make_shared<RunCommand>();
  state->kernel.add_to(command);
  state->call.add_to(command);
  state->output.add_to(command);
  state->steps.add_to(command);
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
