// `kiln tune`: a search with its progress. Ctrl-C stops it as its budget would, with what it has
// found printed.
#include <csignal>
#include <iostream>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "client/cli/kernel_file.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"

namespace kiln::cli {
namespace {

/// While it lives, the first Ctrl-C asks to stop; one more ends the program as ever.
class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::jthread([this](const std::stop_token& done) {
      constexpr timespec kPeriod{.tv_sec = 0, .tv_nsec = 20'000'000};
      while (!done.stop_requested()) {
        if (sigtimedwait(&signals_, nullptr, &kPeriod) != SIGINT) continue;
        source_.request_stop();
        return;
      }
    });
  }
  ~StopOnInterrupt() {
    thread_.request_stop();
    thread_.join();
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  sigset_t signals_{};
  std::stop_source source_;
  std::jthread thread_;
};

nlohmann::ordered_json trial_json(const TuneTrial& trial) {
  return {{"number", trial.number},   {"candidate", trial.candidate}, {"seconds", trial.seconds},
          {"failure", trial.failure}, {"recorded", trial.recorded},   {"elapsed", trial.elapsed},
          {"best", trial.best}};
}

nlohmann::ordered_json result_json(const TuneResult& result, const std::vector<TuneTrial>& trials) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TuneTrial& trial : trials)
    list.push_back(trial_json(trial));
  return {{"default_seconds", result.default_seconds},
          {"best_seconds", result.best_seconds},
          {"candidate", result.candidate},
          {"schedule", result.schedule},
          {"record", result.record},
          {"trials", result.trials},
          {"failures", result.failures},
          {"end", result.end},
          {"problem", result.problem},
          {"read_for", result.read_for},
          {"measured", list}};
}

std::string end_text(const std::string& end) {
  if (end == "stopped") return "you stopped it; what it found stays";
  if (end == "candidates") return "every candidate was tried";
  return fmt::format("the {} were used up; call again to go on", end);
}

struct TuneCommand {
  KernelChoice kernel;
  CallChoice call;
  std::string arch;
  unsigned trials = 0;
  double seconds = 0;

  int run(const Common& common) const {
    const std::string target = call.target();
    if (call.device.starts_with("cuda:") && call.device != "cuda:0") {
      throw UsageError(fmt::format(
          "tune measures on the first GPU, and what it finds serves all; leave the number out of "
          "--device {}",
          call.device));
    }
    const Definition definition = kernel.load(target);
    TuneOptions options{
        .sizes = call.options(definition).sizes, .trials = trials, .seconds = seconds};
    if (!call.inputs.empty()) options.inputs = call.load(definition);
    TuneProgress progress(std::cerr, is_terminal(STDERR_FILENO), definition.name());
    std::vector<TuneTrial> measured;
    options.on_start = [&](const TuneStart& start) { progress.begin(start); };
    options.on_trial = [&](const TuneTrial& trial) {
      measured.push_back(trial);
      progress.show(trial);
    };
    const StopOnInterrupt interrupt;
    options.stop = interrupt.token();
    BuildOptions build = call.build_options(kernel);
    if (!arch.empty()) build.arch = arch;
    const TuneResult result =
        common.connect().tune(definition, options, build, SourceLocation::none());
    progress.finish();
    if (common.json) {
      std::cout << result_json(result, measured).dump(2) << "\n";
    } else {
      print(definition.name(), result);
    }
    return result.end == "stopped" ? kStopped : kDone;
  }

  static void print(const std::string& name, const TuneResult& result) {
    const bool is_read = !result.read_for.empty();
    std::cout << fmt::format("{}: {} candidates {}, {} failed; {}\n", name, result.trials,
                             is_read ? "read" : "measured", result.failures, end_text(result.end));
    if (is_read) {
      std::cout << fmt::format(
          "no {} is here: times are predicted by the code for it, and nothing ran\n",
          result.read_for);
    }
    if (result.candidate.empty()) {
      std::cout << fmt::format("the schedule without tuning, {} a run, is the fastest\n",
                               time_text(result.default_seconds));
    } else {
      std::cout << fmt::format("{} a run instead of {}, {:.2f} times as fast: {}\n",
                               time_text(result.best_seconds), time_text(result.default_seconds),
                               result.default_seconds / result.best_seconds, result.candidate);
    }
    if (!result.record.empty()) {
      std::cout << fmt::format("record {}: every later build of {} is scheduled so\n",
                               result.record, name);
    }
    for (const std::string& step : result.schedule)
      std::cout << "  " << step << "\n";
    if (!result.problem.empty()) std::cout << result.problem << "\n";
  }
};

}  // namespace

void add_tune(CLI::App& app, Program& program) {
  CLI::App& command = add_command(
      app, program, "tune", "measure schedules of a kernel, and keep the fastest for later builds");
  const auto state = std::make_shared<TuneCommand>();
  state->kernel.add_to(command);
  command
      .add_option("--in", state->call.inputs,
                  "an input to measure with: NAME=FILE.npy; without any the service makes them up")
      ->allow_extra_args(false);
  command.add_option("--size", state->call.sizes, "a size that no input gives: NAME=NUMBER")
      ->allow_extra_args(false);
  command.add_option("--device,--target", state->call.device, "cpu, cuda or cuda:0")
      ->capture_default_str();
  command.add_option("--arch", state->arch,
                     "sm_90, ...: where the service has no such GPU, the code for it is read");
  command.add_option("--trials", state->trials, "how many candidates are measured at most");
  command.add_option("--seconds", state->seconds, "how long the search may take")
      ->check(CLI::NonNegativeNumber);
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
