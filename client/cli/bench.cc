// `kiln bench`: how long a kernel takes when it is run again and again on the same arrays, and how
// long within calls from here, whose arguments have just been written.
//
// A core that has run a kernel finds it and its arrays in the caches, and the threads that share
// its loops are awake; a call from a client finds neither. Both are measured in turns, so that
// what else the machine does counts for both.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "client/cli/kernel_file.h"
#include "client/cli/measure_parts.h"
#include "client/cli/outputs.h"
#include "client/cli/program.h"
#include "client/cli/report.h"
#include "client/cli/waiting.h"

namespace kiln::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kTurns = 5;
constexpr double kLeastOfTurn = 0.02;  // seconds of runs without a call between

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds, medians.
struct Bench {
  double back_to_back = 0;
  double in_a_call = 0;  // the kernel
  double call = 0;       // as the client waits for it
};

struct BenchCommand {
  KernelChoice kernel;
  CallChoice call;
  unsigned calls = 100;

  int run(const Common& common) const {
    const Definition definition = kernel.load(call.target());
    CallOptions options = call.options(definition);
    std::vector<Argument> inputs =
        call.inputs.empty() ? std::vector<Argument>{} : call.load(definition);
    options.sizes.merge(sizes_of_inputs(definition, inputs));
    options.sizes = with_sizes_taken(definition, options.sizes);
    if (inputs.empty()) inputs = made_up_inputs(definition, options.sizes);
    const Kernel compiled = build_here(common.connect(), definition, call.build_options(kernel));
    const Bench bench = [&] {
      const Waiting waiting("measuring " + definition.name());
      return measured(compiled, inputs, options);
    }();
    deliver(common, definition, options.sizes, bench);
    return kDone;
  }

 private:
  Bench measured(const Kernel& compiled, const std::vector<Argument>& inputs,
                 const CallOptions& options) const {
    const SourceLocation nowhere = SourceLocation::none();
    const double once = compiled.measure(inputs, 1, 2, options, nowhere).back();
    const auto repeat =
        static_cast<unsigned>(std::clamp(kLeastOfTurn / std::max(once, 1e-7), 1.0, 20'000.0));
    std::vector<double> runs;
    std::vector<double> kernels;
    std::vector<double> waits;
    for (unsigned turn = 0; turn < kTurns; ++turn) {
      for (const double seconds : compiled.measure(inputs, repeat, 3, options, nowhere))
        runs.push_back(seconds);
      for (unsigned i = turn; i < std::max(calls, kTurns); i += kTurns) {
        const Clock::time_point begin = Clock::now();
        compiled.call(inputs, options, nowhere);
        waits.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
        kernels.push_back(compiled.timings().kernel);
      }
    }
    return {median(runs), median(kernels), median(waits)};
  }

  void deliver(const Common& common, const Definition& definition,
               const std::map<std::string, std::int64_t>& sizes, const Bench& bench) const {
    const double operations = parts_unmeasured(definition, sizes).back().operations;
    const double ratio = bench.in_a_call / bench.back_to_back;
    if (common.json) {
      std::cout << nlohmann::ordered_json{{"kernel", definition.name()},
                                          {"device", call.device},
                                          {"sizes", sizes},
                                          {"operations", operations},
                                          {"back_to_back", bench.back_to_back},
                                          {"in_a_call", bench.in_a_call},
                                          {"call", bench.call}}
                       .dump(2)
                << "\n";
      return;
    }
    std::string taken;
    for (const auto& [name, value] : sizes)
      taken += fmt::format("{}{} = {}", taken.empty() ? "sizes: " : ", ", name, value);
    if (!taken.empty()) std::cout << taken << "\n";
    std::cout << table(
        {{"KERNEL", "BACK TO BACK", "G OPERATIONS/S", "IN A CALL", "TIMES", "THE CALL"},
         {definition.name(), time_text(bench.back_to_back),
          fmt::format("{:.3g}", operations / bench.back_to_back / 1e9), time_text(bench.in_a_call),
          fmt::format("{:.2f}", ratio), time_text(bench.call)}});
  }
};

}  // namespace

void add_bench(CLI::App& app, Program& program) {
  CLI::App& command = add_command(app, program, "bench",
                                  "time a kernel, run again and again and within calls from here");
  const auto state = std::make_shared<BenchCommand>();
  state->kernel.add_to(command);
  state->call.add_to(command);
  command.add_option("--calls", state->calls, "how many calls are made")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.callback([&program, state] {
    program.run = [&program, state] { return state->run(program.common); };
  });
}

}  // namespace kiln::cli
