// `kiln submit`, `wait`, `result`, `jobs` and `cancel`. Only an id is kept between them, so any may
// be called from another shell, or after the daemon was started again.
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "client/cli/kernel_file.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "client/cli/waiting.h"

namespace kiln::cli {
namespace {

nlohmann::ordered_json state_json(const JobState& state) {
  return {{"job", state.job},
          {"phase", name_of(state.phase)},
          {"kernel", state.kernel},
          {"seconds", state.seconds},
          {"message", state.message}};
}

struct SubmitCommand {
  KernelChoice kernel;
  CallChoice call;

  int run(const Common& common) const {
    const std::string target = call.target();
    const Definition definition = kernel.load(target);
    const std::vector<Argument> inputs = call.load(definition);
    const CallOptions options = call.options(definition);
    const Connection connection = common.connect();
    const Job job = [&] {
      const Waiting waiting("sending the inputs of " + definition.name());
      return connection.submit(definition, inputs, call.build_options(kernel), options,
                               SourceLocation::none());
    }();
    if (common.json) {
      std::cout << nlohmann::ordered_json{{"job", job.id()}}.dump(2) << "\n";
    } else {
      std::cout << job.id() << "\n";
    }
    return 0;
  }
};

struct ResultCommand {
  std::string id;
  OutputChoice output;

  int wait(const Common& common) const {
    const Job job = common.connect().find_job(id);
    // Progress goes to stderr: stdout carries the results.
    Progress progress(std::cerr, is_terminal(STDERR_FILENO));
    job.watch([&](const JobState& state) { progress.show(state); });
    progress.finish();
    return take(job, common);
  }

  int take(const Job& job, const Common& common) const {
    const JobResult result = job.result();
    std::vector<std::string> names;
    std::vector<NamedArray> outputs;
    for (const JobOutput& each : result.outputs) {
      names.push_back(each.name);
      outputs.push_back({each.name, each.value});
    }
    output.check(names, "job " + job.id(), common.json);
    output.deliver(outputs, result.timings, common.json);
    return 0;
  }
};

int list_jobs(const Common& common) {
  const std::vector<JobState> jobs = common.connect().jobs();
  if (common.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const JobState& state : jobs)
      list.push_back(state_json(state));
    std::cout << nlohmann::ordered_json{{"jobs", list}}.dump(2) << "\n";
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"JOB", "KERNEL", "PHASE", "TIME"}};
  for (const JobState& state : jobs) {
    rows.push_back(
        {state.job, state.kernel, std::string(name_of(state.phase)), time_text(state.seconds)});
  }
  std::cout << table(rows);
  return 0;
}

int cancel(const std::string& id, const Common& common) {
  const JobState state = common.connect().find_job(id).cancel();
  if (common.json) {
    std::cout << state_json(state).dump(2) << "\n";
  } else {
    std::cout << fmt::format("{}: {}\n", state.job, name_of(state.phase));
  }
  return 0;
}

void add_submit(CLI::App& app, Program& program) {
  CLI::App& command =
      add_command(app, program, "submit", "leave a kernel to the service and print the job's id");
  const auto state = std::make_shared<SubmitCommand>();
  state->kernel.add_to(command);
  state->call.add_to(command);
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

/// wait and result differ in whether progress is shown: the service holds a result back until the
/// job has ended.
void add_result(CLI::App& app, Program& program, const std::string& name,
                const std::string& description, bool waits) {
  CLI::App& command = add_command(app, program, name, description);
  const auto state = std::make_shared<ResultCommand>();
  command.add_option("ID", state->id, "the job, as submit printed it, or how its id begins")
      ->required();
  state->output.add_to(command);
  command.callback([&program, state, waits] {
    program.run = [&program, state, waits] {
      const Common& common = program.common;
      return waits ? state->wait(common)
                   : state->take(common.connect().find_job(state->id), common);
    };
  });
}

}  // namespace

void add_jobs(CLI::App& app, Program& program) {
  add_submit(app, program);
  add_result(app, program, "wait", "show the progress of a job, then take its result", true);
  add_result(app, program, "result", "take the result of a job", false);

  CLI::App& list = add_command(app, program, "jobs", "list the jobs of the service");
  list.callback([&program] { program.run = [&program] { return list_jobs(program.common); }; });

  CLI::App& stop = add_command(app, program, "cancel", "end a job");
  const auto id = std::make_shared<std::string>();
  stop.add_option("ID", *id, "the job, as submit printed it, or how its id begins")->required();
  stop.callback(
      [&program, id] { program.run = [&program, id] { return cancel(*id, program.common); }; });
}

}  // namespace kiln::cli
