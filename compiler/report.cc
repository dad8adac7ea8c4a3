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

std::string cpu_report(const ir::Kernel& kernel, const language::Schedule& schedule,
                       const Artifact& artifact, int64_t accesses) {
  Count count;
  count(kernel.body);
  json steps = json::array();
  for (const language::Step& step : schedule.steps)
    steps.push_back(describe(step));
  json kernels = json::array();
  for (const Variant& variant : artifact.variants) {
    kernels.push_back({{"name", variant.launches[0].entry}});
  }
  const json report = {{"guards", count.checks},
                       {"proved", std::max<int64_t>(accesses - count.checks, 0)},
                       {"launches", 1},
                       {"schedule", steps},
                       {"notes", kernel.notes},
                       {"kernels", kernels},
                       {"object_bytes", artifact.code.size()}};
  // A name with bytes that are no UTF-8 must not end a compile.
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace kiln
