// What follows from the kind of a stage: outputs, axes, bodies, types, shapes. A scan has the shape
// of its state and a scatter that of its base, so both are asked in turn.
#include "compiler/language/definition.h"

#include <algorithm>

#include <fmt/format.h>

namespace kiln::language {

uint32_t output_count(const Stage& stage) {
  if (const auto* compute = std::get_if<Compute>(&stage)) {
    return static_cast<uint32_t>(compute->bodies.size());
  }
  if (const auto* scan = std::get_if<Scan>(&stage))
    return static_cast<uint32_t>(scan->state.size());
  return 1;
}

std::vector<AxisId> axes_of(const Stage& stage) {
  if (const auto* compute = std::get_if<Compute>(&stage)) return compute->axes;
  if (const auto* scan = std::get_if<Scan>(&stage)) return {scan->axis};
  if (const auto* scatter = std::get_if<Scatter>(&stage)) return scatter->axes;
  return {};
}

std::vector<ExprId> bodies_of(const Stage& stage) {
  if (const auto* compute = std::get_if<Compute>(&stage)) return compute->bodies;
  const auto* scatter = std::get_if<Scatter>(&stage);
  if (scatter == nullptr) return {};
  std::vector<ExprId> bodies = scatter->indices;
  bodies.push_back(scatter->update);
  return bodies;
}

std::vector<ExprId> parts_of(const Reduction& reduction) {
  std::vector<ExprId> parts = reduction.sources;
  if (reduction.condition) parts.push_back(*reduction.condition);
  parts.insert(parts.end(), reduction.init.begin(), reduction.init.end());
  return parts;
}

DType Definition::type_of(TensorId tensor) const {
  const Stage& stage = stages[tensor.stage];
  if (const auto* compute = std::get_if<Compute>(&stage)) {
    return expressions[compute->bodies[tensor.output]].type;
  }
  if (const auto* scan = std::get_if<Scan>(&stage)) return type_of(scan->state[tensor.output]);
  if (const auto* scatter = std::get_if<Scatter>(&stage)) return type_of(scatter->base);
  return std::get<Placeholder>(stage).type;
}

std::vector<ExprId> Definition::shape_of(TensorId tensor) const {
  const Stage& stage = stages[tensor.stage];
  if (const auto* compute = std::get_if<Compute>(&stage)) {
    std::vector<ExprId> shape;
    for (const AxisId axis : compute->axes) {
      shape.push_back(axes[axis].extent);
    }
    return shape;
  }
  if (const auto* scan = std::get_if<Scan>(&stage)) return shape_of(scan->state[tensor.output]);
  if (const auto* scatter = std::get_if<Scatter>(&stage)) return shape_of(scatter->base);
  return std::get<Placeholder>(stage).shape;
}

bool Definition::is_output(TensorId tensor) const {
  return !std::holds_alternative<Placeholder>(stages[tensor.stage]) &&
         std::find(parameters.begin(), parameters.end(), tensor) != parameters.end();
}

size_t Definition::values_of(const Reduction& reduction) const {
  return reduction.combiner ? 1 : reducers[reduction.reducer].types.size();
}

const Reduction* Definition::whole_reduction(const Compute& compute) const {
  const auto* first = std::get_if<Reduction>(&expressions[compute.bodies[0]].node);
  if (first == nullptr) return nullptr;
  const size_t values = values_of(*first);
  // A reducer of several values is whole where each output takes its own result.
  if (values > 1 && values != compute.bodies.size()) return nullptr;
  for (uint32_t output = 0; output < compute.bodies.size(); ++output) {
    const auto* other = std::get_if<Reduction>(&expressions[compute.bodies[output]].node);
    if (other == nullptr || other->axes != first->axes || values_of(*other) != values) {
      return nullptr;
    }
    // Reducers of one value may differ from output to output: each reduces by itself.
    if (values == 1) continue;
    Reduction expected = *first;
    expected.output = output;
    if (!(*other == expected)) return nullptr;
  }
  return first;
}

std::string SourceMap::tensor_name(const Definition& definition, TensorId tensor) const {
  const std::string& stage = stages[tensor.stage];
  if (output_count(definition.stages[tensor.stage]) == 1) return stage;
  const auto own = tensors.find(tensor);
  if (own != tensors.end()) return own->second;
  return fmt::format("{}.v{}", stage, tensor.output);
}

}  // namespace kiln::language
