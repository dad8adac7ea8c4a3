// Copies that kernels begin with, as nodes: the filters of a convolution lie as its tiles read
// them. Made of a parameter that stays as it is, such a copy is one of the constants of a program.
//
//   y = conv(x, f)   ->   p = copy(f), y = conv'(x, p)
#include "compiler/program/packing.h"

#include <algorithm>
#include <map>

#include "compiler/language/wire/canonical.h"
#include "compiler/program/constants.h"

namespace kiln::program {
namespace {

class Packing {
 public:
  Packing(Program& program, const FindPacked& find) : program_(program), find_(find) {}

  void run(const Graph& graph, const Shapes& shapes) {
    const std::vector<bool> lasting = lasting_values(program_);
    if (std::ranges::find(lasting, true) == lasting.end()) return;
    for (const NodeId id : graph.order) {
      const language::Kernel& kernel = shapes.kernels[id];
      std::optional<Packed> packed = find_(kernel, marked(kernel.definition, id, lasting));
      if (packed) pack(id, input_of(kernel.definition, packed->parameter), std::move(*packed));
    }
  }

 private:
  /// Which input of a node a parameter of its kernel is.
  static size_t input_of(const language::Definition& definition, size_t parameter) {
    const auto end = definition.parameters.begin() + static_cast<std::ptrdiff_t>(parameter);
    return static_cast<size_t>(
        std::count_if(definition.parameters.begin(), end,
                      [&](language::TensorId tensor) { return !definition.is_output(tensor); }));
  }

  /// By parameter, whether it is an input that lasts.
  std::vector<bool> marked(const language::Definition& definition, NodeId id,
                           const std::vector<bool>& lasting) const {
    std::vector<bool> marks;
    for (size_t i = 0; i < definition.parameters.size(); ++i) {
      marks.push_back(!definition.is_output(definition.parameters[i]) &&
                      lasting[program_.nodes[id].inputs[input_of(definition, i)]]);
    }
    return marks;
  }

  void pack(NodeId id, size_t input, Packed packed) {
    const ValueId from = program_.nodes[id].inputs[input];
    const auto [known, is_new] = copies_.emplace(
        std::pair(from, language::canonical_form(packed.copy.definition)), program_.values.size());
    if (is_new) add_copy(from, program_.nodes[id].line, std::move(packed.copy));
    Node& node = program_.nodes[id];
    node.inputs[input] = known->second;
    node.kernel = static_cast<uint32_t>(program_.kernels.size());
    program_.kernels.push_back(std::move(packed.rest));
  }

  void add_copy(ValueId from, const SourceLocation& line, language::Kernel copy) {
    const std::string name = program_.values[from].name + "_packed";
    const auto made = static_cast<ValueId>(program_.values.size());
    program_.values.push_back({name, ValueKind::Made});
    program_.nodes.push_back({.name = name,
                              .kernel = static_cast<uint32_t>(program_.kernels.size()),
                              .inputs = {from},
                              .outputs = {made},
                              .line = line});
    program_.kernels.push_back(std::move(copy));
  }

  Program& program_;
  const FindPacked& find_;
  std::map<std::pair<ValueId, std::string>, ValueId> copies_;  // by what is copied, and how
};

}  // namespace

Program with_packing(Program program, const GivenTypes& given, const FindPacked& find) {
  if (!find) return program;
  const Graph graph = graph_of(program);
  const Shapes shapes = infer_shapes(program, graph, given);
  Packing(program, find).run(graph, shapes);
  return program;
}

}  // namespace kiln::program
