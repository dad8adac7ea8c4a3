// A step, from the wiring to memory: order, shapes, groups of nodes that become kernels, and places
// of what passes between these. What an update hands to the next step has a place to itself for the
// whole step: at its end it changes places with the parameter, so that nothing is copied and a step
// that fails leaves every parameter as it was. What is computed once lies outside, as a parameter.
#include "compiler/program/plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/program/constants.h"
#include "compiler/program/gradients.h"

namespace kiln::program {
namespace {

class Planner {
 public:
  Planner(const Program& program, Graph graph, Shapes shapes)
      : program_(program), graph_(std::move(graph)) {
    plan_.shapes = std::move(shapes);
    for (const ValueId value : results_of(program))
      results_.insert(value);
  }

  Plan run(const SavedByProducts& saved_by_products, const HasFastForm& has_fast_form) {
    const std::vector<bool> constant = constant_nodes(program_, graph_, plan_.shapes);
    for (const std::vector<NodeId>& group :
         fuse(program_, graph_, plan_.shapes, constant, saved_by_products, has_fast_form))
      add_kernel(group, constant[group[0]]);
    plan_.values.resize(program_.values.size());
    for (ValueId value = 0; value < program_.values.size(); ++value) {
      if (program_.values[value].kind != ValueKind::Made) plan_.values[value].place = Place::Given;
    }
    place_values();
    return std::move(plan_);
  }

 private:
  void add_kernel(const std::vector<NodeId>& nodes, bool is_constant) {
    PlannedKernel kernel;
    kernel.is_constant = is_constant;
    kernel.nodes = nodes;
    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    kernel.joined = join(program_, plan_.shapes, nodes, [&](ValueId value) {
      return results_.count(value) != 0 || is_read_outside(value, inside);
    });
    std::vector<std::string> names;
    for (const NodeId node : nodes)
      names.push_back(program_.nodes[node].name);
    // The last node is what the others are computed for.
    kernel.name =
        names.size() == 1 ? names[0] : fmt::format("{}_and_{}", names.back(), names.size() - 1);
    kernel.joined.kernel.names.kernel = kernel.name;
    for (const ValueId value : kernel.joined.inputs)
      kernel.read_bytes += plan_.shapes.values[value].bytes();
    for (const ValueId value : kernel.joined.outputs)
      kernel.written_bytes += plan_.shapes.values[value].bytes();
    plan_.kernels.push_back(std::move(kernel));
  }

  bool is_read_outside(ValueId value, const std::set<NodeId>& inside) const {
    return std::ranges::any_of(graph_.readers[value],
                               [&](NodeId node) { return inside.count(node) == 0; });
  }

  void place_values() {
    const auto last = static_cast<uint32_t>(plan_.kernels.size()) - 1;
    std::map<ValueId, Block> blocks;
    for (uint32_t k = 0; k < plan_.kernels.size(); ++k) {
      const Joined& joined = plan_.kernels[k].joined;
      if (plan_.kernels[k].is_constant) {
        for (const ValueId value : joined.outputs)
          plan_.values[value].place = Place::Kept;
        continue;
      }
      for (const ValueId value : joined.outputs)
        blocks[value] = {plan_.shapes.values[value].bytes(), k,
                         results_.count(value) != 0 ? last : k};
      for (const ValueId value : joined.inputs) {
        const auto block = blocks.find(value);
        if (block != blocks.end()) block->second.last = std::max(block->second.last, k);
      }
    }
    for (const Update& update : program_.updates)
      blocks.at(update.value).first = 0;

    std::vector<ValueId> values;
    std::vector<Block> list;
    for (const auto& [value, block] : blocks) {
      values.push_back(value);
      list.push_back(block);
    }
    plan_.memory = plan_memory(list);
    for (size_t i = 0; i < values.size(); ++i) {
      PlannedValue& planned = plan_.values[values[i]];
      planned.place = Place::Arena;
      planned.offset = plan_.memory.offsets[i];
      planned.reuses = name_before(values, list, i);
    }
  }

  /// The value that lay where block i lies, last before it.
  std::string name_before(const std::vector<ValueId>& values, const std::vector<Block>& blocks,
                          size_t i) const {
    const std::vector<int64_t>& offsets = plan_.memory.offsets;
    int64_t latest = -1;
    std::string name;
    for (size_t other = 0; other < blocks.size(); ++other) {
      const bool shares = offsets[other] < offsets[i] + blocks[i].bytes &&
                          offsets[i] < offsets[other] + blocks[other].bytes;
      if (other == i || !shares || blocks[other].last >= blocks[i].first) continue;
      if (static_cast<int64_t>(blocks[other].last) <= latest) continue;
      latest = blocks[other].last;
      name = program_.values[values[other]].name;
    }
    return name;
  }

  const Program& program_;
  const Graph graph_;
  Plan plan_;
  std::set<ValueId> results_;
};

}  // namespace

Plan make_plan(const Program& program, const GivenTypes& given,
               const SavedByProducts& saved_by_products, const FindPacked& find_packed,
               const HasFastForm& has_fast_form) {
  Program whole = with_packing(with_gradients(program, given), given, find_packed);
  Graph graph = graph_of(whole);
  Shapes shapes = infer_shapes(whole, graph, given);
  Plan plan =
      Planner(whole, std::move(graph), std::move(shapes)).run(saved_by_products, has_fast_form);
  plan.program = std::move(whole);
  return plan;
}

}  // namespace kiln::program
