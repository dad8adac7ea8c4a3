// The graph of a definition: what a stage needs before it, and which leading dimensions its inputs
// give it. States of scans come from nowhere, so what the rest of the scan reads decides for them.
#include <set>

#include "client/cpp/instance.h"
#include "client/cpp/sizes.h"

namespace kiln {
inline namespace client {
namespace detail {

// What each stage of a definition needs, and which dimensions stand in front of it.

/// The dimensions in front of each stage: what those of the inputs below it stretch to. What a scan
/// reads decides about all of its parts, its states included.
void Instance::find_batches() {
  std::map<std::uint32_t, Inputs> below;
  for (const auto& [stage, argument] : binding_.arguments)
    below[stage] = {stage};
  for (int id = 0; id < definition_.stages_size(); ++id) {
    if (!definition_.stages(id).has_scan()) continue;
    const v1::Scan& scan = definition_.stages(id).scan();
    const Inputs reached = reached_by(scan, below);
    below[static_cast<std::uint32_t>(id)] = reached;
    for (const auto* list : {&scan.init(), &scan.update(), &scan.state()}) {
      for (const v1::TensorId& tensor : *list)
        below[tensor.stage()] = reached;
    }
  }
  for (std::uint32_t id = 0; id < static_cast<std::uint32_t>(definition_.stages_size()); ++id) {
    if (!below.contains(id)) {
      for (const std::uint32_t other : needed(id))
        below[id].insert(below[other].begin(), below[other].end());
    }
    std::vector<Shape> shapes;
    for (const std::uint32_t input : below[id]) {
      const auto own = binding_.batches.find(input);
      if (own != binding_.batches.end()) shapes.push_back(own->second);
    }
    // Shapes that do not fit are refused by bind(), which asks for sizes before.
    const auto given = binding_.batches.find(id);
    batches_[id] =
        given != binding_.batches.end() ? given->second : stretched(shapes).value_or(Shape());
  }
}

/// The inputs below a scan, without what only its states lead to.
Instance::Inputs Instance::reached_by(const v1::Scan& scan,
                                      const std::map<std::uint32_t, Inputs>& below) const {
  std::set<std::uint32_t> seen;
  std::vector<std::uint32_t> stack;
  for (const v1::TensorId& state : scan.state())
    seen.insert(state.stage());
  for (const auto* list : {&scan.init(), &scan.update()}) {
    for (const v1::TensorId& tensor : *list)
      stack.push_back(tensor.stage());
  }
  Inputs reached;
  while (!stack.empty()) {
    const std::uint32_t stage = stack.back();
    stack.pop_back();
    if (!seen.insert(stage).second) continue;
    if (const auto known = below.find(stage); known != below.end()) {
      reached.insert(known->second.begin(), known->second.end());
      continue;
    }
    for (const std::uint32_t other : needed(stage))
      stack.push_back(other);
  }
  return reached;
}

std::vector<std::uint32_t> Instance::needed(std::uint32_t stage) const {
  const v1::Stage& row = definition_.stages(static_cast<int>(stage));
  if (row.has_compute()) {
    return read_stages({row.compute().bodies().begin(), row.compute().bodies().end()});
  }
  std::vector<std::uint32_t> stages;
  if (row.has_scatter()) {
    stages.assign(row.scatter().indices().begin(), row.scatter().indices().end());
    stages.push_back(row.scatter().update());
    stages = read_stages(std::move(stages));
    stages.push_back(row.scatter().base().stage());
    return stages;
  }
  for (const auto* list : {&row.scan().init(), &row.scan().update(), &row.scan().state()}) {
    for (const v1::TensorId& tensor : *list)
      stages.push_back(tensor.stage());
  }
  return stages;
}

/// The stages read below expressions.
std::vector<std::uint32_t> Instance::read_stages(std::vector<std::uint32_t> stack) const {
  std::set<std::uint32_t> stages;
  std::set<std::uint32_t> seen;
  while (!stack.empty()) {
    const std::uint32_t id = stack.back();
    stack.pop_back();
    if (!seen.insert(id).second) continue;
    const v1::Expression& row = definition_.expressions(static_cast<int>(id));
    const auto push = [&](const auto& list) {
      stack.insert(stack.end(), list.begin(), list.end());
    };
    if (row.has_operation()) push(row.operation().operands());
    if (row.has_cast()) stack.push_back(row.cast().operand());
    if (row.has_read()) {
      stages.insert(row.read().tensor().stage());
      push(row.read().indices());
    }
    if (row.has_reduction()) {
      push(row.reduction().sources());
      push(row.reduction().init());
      if (row.reduction().has_condition()) stack.push_back(row.reduction().condition());
      for (const std::uint32_t axis : row.reduction().axes()) {
        const v1::Axis& bounds = definition_.axes(static_cast<int>(axis));
        stack.push_back(bounds.minimum());
        stack.push_back(bounds.extent());
      }
    }
  }
  return {stages.begin(), stages.end()};
}

}  // namespace detail
}  // namespace client
}  // namespace kiln
