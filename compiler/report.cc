// Builds the two halves of a report. How many accesses were proved is what build_loops made less
// what still has a check at the end, so it is counted twice: once by an observer behind
// build_loops, once in the loops that are left.
#include "compiler/report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "compiler/ir/mutator.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/text/text_names.h"

namespace kiln {
namespace {

using nlohmann::json;

class Count : public ir::Visitor {
 public:
  int64_t accesses = 0;
  int64_t checks = 0;

 private:
  using Visitor::visit;
  void visit(const ir::Load& node) override {
    ++accesses;
    Visitor::visit(node);
  }
  void visit(const ir::Store& node) override {
    ++accesses;
    Visitor::visit(node);
  }
  void visit(const ir::Check& node) override { ++checks; }
};

/// A name with bytes that are no UTF-8 must not end a compile.
std::string text_of(const json& report) {
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void CountAccesses::after(std::string_view pass, ir::Kernel& kernel) {
  if (pass != "build_loops") return;
  Count count;
  count(kernel.body);
  accesses = count.accesses;
}

std::string report_of(const ir::Kernel& kernel, const Artifact& artifact, int64_t accesses) {
  Count count;
  count(kernel.body);
  json report = artifact.report.empty() ? json::object() : json::parse(artifact.report);
  report["guards"] = count.checks;
  report["proved"] = std::max<int64_t>(accesses - count.checks, 0);
  report["code_bytes"] = artifact.code.size();
  if (!report.contains("launches")) report["launches"] = artifact.variants[0].launches.size();
  if (!report.contains("kernels")) {
    report["kernels"] = json::array();
    for (const Variant& variant : artifact.variants) {
      report["kernels"].push_back({{"name", variant.launches[0].entry}});
    }
  }
  return text_of(report);
}

std::string named_report_of(const language::Kernel& definition, const language::Schedule& schedule,
                            const ir::Kernel& kernel, std::string_view machine) {
  json report = {{"schedule", language::kernel_file_text(schedule, definition.definition,
                                                         language::printable_names(definition))},
                 {"notes", kernel.notes}};
  if (!machine.empty()) report["machine"] = machine;
  return text_of(report);
}

}  // namespace kiln
