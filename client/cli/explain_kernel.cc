// `kiln explain FILE`: what each stage has to do, how long it takes alone and which share of what
// the device can do that is, and then the loops with the code that they became, line by line. With
// an arch that no device of the service has nothing is measured.
#include "client/cli/explain_kernel.h"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/cli/aligned.h"
#include "client/cli/explain_page.h"
#include "client/cli/files.h"
#include "client/cli/measure_parts.h"
#include "client/cli/outputs.h"
#include "client/cli/report.h"
#include "client/cli/sass.h"
#include "client/cli/waiting.h"

namespace kiln::cli {
namespace {

/// "1.2 G" of 1.2e9.
std::string amount(double value) {
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.3g} {}", value, unit);
}

std::string joined(const std::map<std::string, std::int64_t>& sizes) {
  std::string text;
  for (const auto& [name, value] : sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

/// The type that the kernel computes in: that of its first floating output, or float32.
std::string type_of(const Definition& definition) {
  for (const Parameter& parameter : definition.parameters()) {
    if (parameter.output && parameter.type == float64) return "float64";
  }
  return "float32";
}

std::vector<std::vector<std::string>> costs_table(const std::vector<PartCost>& costs,
                                                  const std::optional<Roof>& roof) {
  std::vector<std::vector<std::string>> rows{
      {"STAGE", "OPERATIONS", "BYTES", "TIME", "OP/S", "B/S", "OF ROOF", "BOUND BY"}};
  for (const PartCost& cost : costs) {
    std::vector<std::string> row{cost.name, amount(cost.operations), amount(cost.bytes) + "B"};
    if (cost.seconds && roof) {
      const double seconds = std::max(*cost.seconds, 1e-9);
      row.push_back(time_text(seconds));
      row.push_back(amount(cost.operations / seconds));
      row.push_back(amount(cost.bytes / seconds) + "B");
      row.push_back(fmt::format("{:.0f} %", 100 * cost.least(*roof) / seconds));
      row.push_back(cost.bound(*roof));
    } else {
      row.insert(row.end(), 5, "-");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::ordered_json costs_json(const std::vector<PartCost>& costs,
                                  const std::optional<Roof>& roof,
                                  const std::map<std::string, std::int64_t>& sizes,
                                  const AlignedCode& code) {
  nlohmann::ordered_json object{{"sizes", sizes}, {"stages", nlohmann::ordered_json::array()}};
  for (const PartCost& cost : costs) {
    nlohmann::ordered_json row{
        {"name", cost.name}, {"operations", cost.operations}, {"bytes", cost.bytes}};
    if (cost.seconds) row["seconds"] = *cost.seconds;
    if (cost.seconds && roof) {
      row["of_roof"] = cost.least(*roof) / std::max(*cost.seconds, 1e-9);
      row["bound"] = cost.bound(*roof);
    }
    object["stages"].push_back(std::move(row));
  }
  if (roof) {
    object["roof"] = {{"operations_a_second", roof->operations}, {"bytes_a_second", roof->bytes}};
  }
  object["loops"] = code.loops;
  for (const CodeColumn& column : code.columns) {
    for (const CodeColumn::Line& line : column.lines)
      object["code"][column.name].push_back({line.from, line.text});
  }
  return object;
}

AlignedCode code_of(const Kernel& compiled) {
  AlignedCode code = read_aligned(compiled.source("aligned", SourceLocation::none()));
  if (code.cubin.empty()) return code;
  if (const std::optional<std::string> text = disassembled(code.cubin))
    code.columns.push_back(sass_column(*text, code.columns.front()));
  return code;
}

/// What the parts of a kernel cost; the roof only where a device has measured them.
struct Costs {
  std::vector<PartCost> parts;
  std::optional<Roof> roof;
};

Costs measured_costs(const PartMeasure& measure, const Definition& definition,
                     const Kernel& compiled, const std::vector<Argument>& inputs) {
  const bool shows_progress = is_terminal(STDERR_FILENO);
  const auto tell = [&](const std::string& what) {
    if (shows_progress) std::cerr << "\r\x1b[Kmeasuring " << what << std::flush;
  };
  Costs costs{measure.parts(definition, compiled, inputs, tell), {}};
  tell("the roof of the device");
  costs.roof = measure.roof(type_of(definition));
  if (shows_progress) std::cerr << "\r\x1b[K" << std::flush;
  return costs;
}

std::vector<std::string> notes_of(const Costs& costs,
                                  const std::map<std::string, std::int64_t>& sizes,
                                  bool some_are_taken) {
  std::vector<std::string> notes;
  if (!sizes.empty()) {
    notes.push_back(
        fmt::format("sizes: {}{}", joined(sizes),
                    some_are_taken ? " (taken where not given: --size NAME=NUMBER, or --in)" : ""));
  }
  if (!costs.roof) {
    notes.emplace_back(
        "operations and bytes are counted; times need a run on a device that is here");
    return notes;
  }
  notes.push_back(fmt::format(
      "roof, measured on the device: {}op/s (a product of matrices), {}B/s (a + 3*b of large "
      "arrays); more than 100 % of the bytes comes out of caches",
      amount(costs.roof->operations), amount(costs.roof->bytes)));
  if (costs.parts.size() > 1) {
    notes.emplace_back(
        "each stage is measured alone, as a kernel that the service schedules; the last row is the "
        "whole, in which stages share loops and keep what they pass on out of memory");
  }
  return notes;
}

void print_explanation(const Explanation& explanation, bool with_code) {
  std::cout << explanation.title << "\n" << table(explanation.table);
  for (const std::string& note : explanation.notes)
    std::cout << note << "\n";
  if (with_code) std::cout << "\n" << aligned_text(explanation.code);
}

}  // namespace

bool ExplainKernel::is_kernel(const std::string& word) {
  if (word == kStandard || word.find_first_of("./") != std::string::npos) return true;
  try {
    load_operator(word);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void ExplainKernel::add_to(CLI::App& command) {
  kernel.add_flags_to(command);
  command.add_option("--in", call.inputs, "an input: NAME=FILE.npy; without any they are made up")
      ->allow_extra_args(false);
  command.add_option("--size", call.sizes, "a size: NAME=NUMBER; without it one is taken")
      ->allow_extra_args(false);
  command.add_option("--device", call.device, "cpu, cuda, or a GPU by its number: cuda:1")
      ->capture_default_str();
  command.add_option("--arch", arch,
                     "a CPU's name or sm_90, which need not be here: nothing is measured");
  command.add_flag("--no-run", no_run, "measure nothing");
  command.add_flag("--no-code", no_code, "the table alone");
  command.add_option("--html", html, "write one HTML file that needs nothing beside it");
}

int ExplainKernel::run(const Common& common) const {
  const std::string target = call.target();
  const bool is_file =
      kernel.file == kStandard || kernel.file.find_first_of("./") != std::string::npos;
  const Definition definition =
      is_file ? kernel.load(target) : kernel.scheduled(load_operator(kernel.file), target);
  CallOptions options = call.options(definition);
  const std::vector<Argument> inputs =
      call.inputs.empty() ? std::vector<Argument>{} : call.load(definition);
  const std::map<std::string, std::int64_t> given = [&] {
    std::map<std::string, std::int64_t> sizes = options.sizes;
    sizes.merge(sizes_of_inputs(definition, inputs));
    return sizes;
  }();
  options.sizes = with_sizes_taken(definition, given);

  BuildOptions build = kernel.options(target);
  build.arch = arch;
  const bool measures = arch.empty() && !no_run;
  const Connection connection = common.connect();
  const Kernel compiled = measures ? build_here(connection, definition, build)
                                   : compile_anywhere(common, definition, build);

  const Costs costs = measures ? measured_costs(PartMeasure(connection, build, options), definition,
                                                compiled, inputs)
                               : Costs{parts_unmeasured(definition, options.sizes), {}};

  Explanation explanation;
  explanation.title =
      fmt::format("{} for {}{}", definition.name(), target == "llvm" ? "cpu" : target,
                  arch.empty() ? "" : " " + arch);
  explanation.notes = notes_of(costs, options.sizes, given.size() < options.sizes.size());
  explanation.table = costs_table(costs.parts, costs.roof);
  if (!no_code) explanation.code = code_of(compiled);
  if (!html.empty()) {
    write_through(html, [&](std::ostream& out) { out << explain_page(explanation); });
  }
  if (common.json) {
    std::cout << costs_json(costs.parts, costs.roof, options.sizes, explanation.code).dump(2)
              << "\n";
  } else {
    print_explanation(explanation, html.empty() && !no_code);
  }
  return kDone;
}

}  // namespace kiln::cli
