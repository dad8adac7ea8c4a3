// Takes what is computed in front of a product out of it, and writes the program that stores it:
// tiles of some rows, element by element.
#include "compiler/tile/stored_stage.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "compiler/tile/find_product.h"
#include "compiler/tile/program_writer.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using namespace language;

namespace {

constexpr int64_t kTileElements = 4096;
constexpr int64_t kMostColumns = 256;

/// Looks at a stage that is computed element by element.
class StageFinder : public ElementFinder {
 public:
  using ElementFinder::ElementFinder;
  using ElementFinder::find_output;

 private:
  void look_at_reduction(const Reduction&, DType, const Renamed&) override {
    refuse_form("it has several sums");
  }
};

int64_t step_within(const Extent& extent, int64_t most) {
  if (extent.size >= 0) return most;
  const auto length = static_cast<uint64_t>(std::max<int64_t>(extent.constant, 1));
  return std::min(most, static_cast<int64_t>(std::bit_ceil(length)));
}

/// The program of a kernel whose one output is computed element by element.
Program elements_program(const Kernel& kernel) {
  StageFinder finder(kernel.definition);
  const StageId output = finder.find_output();
  const Compute& compute = finder.compute_of(output);
  finder.look_at(compute.bodies[0], same_names(compute.axes));
  std::vector<int64_t> steps(compute.axes.size(), 1);
  int64_t room = kTileElements;
  for (size_t d = steps.size(); d-- > 0;) {
    const bool is_column = d + 1 == steps.size();
    steps[d] = step_within(finder.extent_of(kernel.definition.axes[compute.axes[d]].extent),
                           is_column ? kMostColumns : room);
    room /= steps[d];
  }
  ProgramWriter writer(kernel, finder);
  for (size_t d = 0; d < steps.size(); ++d)
    writer.add_axis(compute.axes[d], steps[d]);
  writer.end_blocks();
  std::vector<language::AxisId> rows = compute.axes;
  rows.pop_back();
  const Sheet sheet{std::move(rows), compute.axes.back(), {}};
  writer.store(sheet, output, compute.axes,
               writer.value_of(sheet, compute.bodies[0], same_names(compute.axes)));
  return writer.finish();
}

/// The stage that a factor is, where it is computed and read element by element.
std::vector<StageId> stages_of(const Definition& definition, const Element& factor) {
  if (!factor.computed) return {};
  const auto* read = std::get_if<Read>(&definition.expressions[factor.computed->expr].node);
  if (read == nullptr || !std::holds_alternative<Compute>(definition.stages[read->tensor.stage]))
    return {};
  return {read->tensor.stage};
}

StoredStage stored_stage(const Kernel& kernel, StageId stage) {
  Kernel elements = kernel;
  StoredStage stored;
  const std::vector<TensorId>& parameters = kernel.definition.parameters;
  elements.definition.parameters.clear();
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    if (kernel.definition.is_output(parameters[i])) continue;
    elements.definition.parameters.push_back(parameters[i]);
    stored.inputs.push_back(i);
  }
  elements.definition.parameters.push_back({stage, 0});
  elements.names.kernel = fmt::format("{}_computes_{}", kernel.names.kernel,
                                      kernel.names.tensor_name(kernel.definition, {stage, 0}));
  stored.program = elements_program(elements);
  return stored;
}

}  // namespace

StoredFactors stored_factors(const Kernel& kernel) {
  ProductFinder finder(kernel.definition);
  const Product product = finder.find_sides();
  std::vector<StageId> stages = stages_of(kernel.definition, product.rows);
  for (const StageId stage : stages_of(kernel.definition, product.columns))
    if (std::ranges::count(stages, stage) == 0) stages.push_back(stage);
  StoredFactors result{kernel, {}};
  for (const StageId stage : stages) {
    result.stages.push_back(stored_stage(kernel, stage));
    Definition& rest = result.rest.definition;
    rest.stages[stage] =
        Placeholder{kernel.definition.type_of({stage, 0}), kernel.definition.shape_of({stage, 0})};
    rest.parameters.push_back({stage, 0});
  }
  return result;
}

}  // namespace kiln::tile
