// Prints the candidates with their bottlenecks. Measured ones are compiled with their steps as if a
// file had them, and run on inputs that are made up.
#include "client/cli/explain_schedule.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <kiln/predict.h>
#include <nlohmann/json.hpp>

#include "client/cli/measure_parts.h"
#include "client/cli/outputs.h"
#include "client/cli/report.h"
#include "client/cli/waiting.h"

namespace kiln::cli {
namespace {

struct Row {
  PredictedSchedule schedule;
  std::optional<double> measured;
};

std::string largest_of(const PredictedSchedule& schedule) {
  const PredictedTerm* largest = nullptr;
  for (const PredictedTerm& term : schedule.terms) {
    const bool is_more = largest == nullptr || term.seconds > largest->seconds;
    if (!term.on_top && is_more) largest = &term;
  }
  return largest == nullptr ? "" : largest->name;
}

/// The terms of all rows, each once: code of tiles has others than loops. Those on top come last.
std::vector<PredictedTerm> terms_of(const std::vector<Row>& rows) {
  std::vector<PredictedTerm> terms;
  for (const Row& row : rows)
    for (const PredictedTerm& term : row.schedule.terms)
      if (std::ranges::find(terms, term.name, &PredictedTerm::name) == terms.end())
        terms.push_back(term);
  std::stable_partition(terms.begin(), terms.end(),
                        [](const PredictedTerm& term) { return !term.on_top; });
  return terms;
}

std::vector<std::vector<std::string>> predictions_table(const std::vector<Row>& rows) {
  const bool is_measured = rows.front().measured.has_value();
  const std::vector<PredictedTerm> terms = terms_of(rows);
  std::vector<std::string> head{"SCHEDULE", "PREDICTED"};
  if (is_measured) head.insert(head.end(), {"MEASURED", "RATIO"});
  head.emplace_back("BOUND BY");
  for (const PredictedTerm& term : terms) {
    std::string name = (term.on_top ? "+ " : "") + term.name;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    head.push_back(std::move(name));
  }
  std::vector<std::vector<std::string>> table{std::move(head)};
  for (const Row& row : rows) {
    std::vector<std::string> line{row.schedule.name, time_text(row.schedule.seconds)};
    if (is_measured) {
      line.push_back(time_text(*row.measured));
      line.push_back(fmt::format("{:.2f}", *row.measured / row.schedule.seconds));
    }
    line.push_back(largest_of(row.schedule));
    for (const PredictedTerm& each : terms) {
      const auto term = std::ranges::find(row.schedule.terms, each.name, &PredictedTerm::name);
      line.push_back(term == row.schedule.terms.end() ? "" : time_text(term->seconds));
    }
    table.push_back(std::move(line));
  }
  return table;
}

nlohmann::ordered_json predictions_json(const Predictions& predictions,
                                        const std::vector<Row>& rows,
                                        const std::map<std::string, std::int64_t>& sizes) {
  nlohmann::ordered_json object{{"machine", predictions.machine},
                                {"surroundings", predictions.surroundings},
                                {"sizes", sizes},
                                {"schedules", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    nlohmann::ordered_json written{{"name", row.schedule.name},
                                   {"seconds", row.schedule.seconds},
                                   {"bound", largest_of(row.schedule)},
                                   {"steps", row.schedule.steps}};
    for (const PredictedTerm& term : row.schedule.terms)
      written["terms"][term.name] = term.seconds;
    if (row.measured) written["measured"] = *row.measured;
    object["schedules"].push_back(std::move(written));
  }
  return object;
}

/// The definition under these steps.
Definition under(const Definition& definition, const PredictedSchedule& schedule,
                 const std::string& block) {
  return definition.with_schedules(schedule_block(block, schedule.steps), schedule.name)
      .with_schedule(block);
}

void print_predictions(const Predictions& predictions, const std::vector<Row>& rows,
                       std::size_t all, bool with_steps) {
  std::cout << "machine: " << predictions.machine << "\n";
  std::cout << "around it: " << predictions.surroundings << "\n\n";
  std::cout << table(predictions_table(rows));
  std::cout << "\nthe first is taken; a run takes its largest term, and those with a + on top\n";
  if (rows.size() < all) {
    std::cout << fmt::format("{} more are predicted to take longer: --top {}\n", all - rows.size(),
                             all);
  }
  for (const Row& row : rows) {
    if (!with_steps) break;
    std::cout << fmt::format("\n{}\n  {}\n", row.schedule.name,
                             fmt::join(row.schedule.steps, "\n  "));
  }
}

}  // namespace

void ExplainSchedule::add_to(CLI::App& command) {
  kernel.add_to(command);
  command.add_option("--size", call.sizes, "a size: NAME=NUMBER; without it one is taken")
      ->allow_extra_args(false);
  command.add_option("--target", device, "cpu (or llvm), or cuda")->capture_default_str();
  command.add_option("--arch,--cpu", arch, "a CPU's name or sm_90, which need not be here: znver5");
  command.add_option("--threads", threads, "cores that the kernel is to have: those of the host")
      ->check(CLI::Range(1, 1024));
  command.add_option("--top", top, "how many to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI::Option* const measured =
      command.add_flag("--measure", measure, "run each that is shown, beside its prediction");
  command.add_flag("--steps", steps, "the steps of each that is shown");
  measured->excludes("--arch")->excludes("--threads");
}

int ExplainSchedule::run(const Common& common) const {
  const std::string target = target_named(device);
  if (measure && target != "llvm") {
    throw UsageError("--measure runs on the CPU; leave it out for --target cuda");
  }
  const Definition definition = kernel.load(target);
  CallOptions options = call.options(definition);
  options.sizes = with_sizes_taken(definition, options.sizes);
  BuildOptions build = kernel.options(target);
  build.arch = arch;
  const Connection connection = common.connect();
  const Predictions predictions = connection.predict(
      definition, {.sizes = options.sizes, .threads = threads}, build, SourceLocation::none());

  std::vector<Row> rows;
  const std::size_t shown = std::min<std::size_t>(top, predictions.schedules.size());
  const PartMeasure measure_with(connection, build, options);
  for (std::size_t i = 0; i < shown; ++i) {
    Row& row = rows.emplace_back(Row{predictions.schedules[i], {}});
    if (!measure) continue;
    const Waiting waiting(fmt::format("measuring {}", row.schedule.name));
    row.measured = measure_with.seconds(under(definition, row.schedule, "cpu"), {});
  }
  if (common.json) {
    std::cout << predictions_json(predictions, rows, options.sizes).dump(2) << "\n";
  } else {
    print_predictions(predictions, rows, predictions.schedules.size(), steps);
  }
  return kDone;
}

}  // namespace kiln::cli
