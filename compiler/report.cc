#include "compiler/report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "compiler/ir/mutator.h"

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

json describe(const language::Step& step) {
  const language::StepRow& row = language::row_of(step.kind);
  json result = {{"step", row.spelling}, {"stage", step.stage}};
  if (!step.axes.empty()) result["axes"] = step.axes;
  if (!step.factors.empty()) result["factors"] = step.factors;
  if (step.parts) result["parts"] = *step.parts;
  if (!step.tag.empty()) result["tag"] = step.tag;
  if (row.uses == language::StepUses::At) {
    result["at_stage"] = step.at_stage;
    result["at_axis"] = step.at_axis;
  }
  return result;
}

}  // namespace

void CountAccesses::after(std::string_view pass, ir::Kernel& kernel) {
  if (pass != "build_loops") return;
  Count count;
  count(kernel.body);
  accesses = count.accesses;
}

std::string report_of(const ir::Kernel& kernel, const language::Schedule& schedule,
                      const Artifact& artifact, int64_t accesses) {
  Count count;
  count(kernel.body);
  json report = artifact.report.empty() ? json::object() : json::parse(artifact.report);
  report["guards"] = count.checks;
  report["proved"] = std::max<int64_t>(accesses - count.checks, 0);
  report["notes"] = kernel.notes;
  report["code_bytes"] = artifact.code.size();
  report["schedule"] = json::array();
  for (const language::Step& step : schedule.steps) {
    report["schedule"].push_back(describe(step));
  }
  if (!report.contains("launches")) report["launches"] = artifact.variants[0].launches.size();
  if (!report.contains("kernels")) {
    report["kernels"] = json::array();
    for (const Variant& variant : artifact.variants) {
      report["kernels"].push_back({{"name", variant.launches[0].entry}});
    }
  }
  // A name with bytes that are no UTF-8 must not end a compile.
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace kiln
