// Takes the copy of the filters out of a convolution, for who keeps it from call to call. What is
// left reads the copy by o // 32 and o % 32, by which its schedule finds that none is needed.
//
//   Y[o, i, j] = sum(X[c, i + r, j + s] * F[o, c, r, s])
//   ->  P[b, c, r, s, l] = F[b * 32 + l, c, r, s];  Y[o, i, j] = sum(X[..] * P[o // 32, c, r, s, o
//   % 32])
#include "compiler/autoschedule/choose/packed_filters.h"

#include <algorithm>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/templates/image_sketches.h"
#include "compiler/autoschedule/templates/open_schedule.h"
#include "compiler/ir/build.h"
#include "compiler/language/wire/canonical.h"

namespace kiln::autoschedule {
namespace {

using namespace language;

/// Adds to the tables of a definition.
class Writer {
 public:
  explicit Writer(Definition& definition) : definition_(definition) {}

  ExprId add(DType type, decltype(Expression::node) node) {
    definition_.expressions.push_back({type, std::move(node)});
    return static_cast<ExprId>(definition_.expressions.size() - 1);
  }
  ExprId index(int64_t value) { return add(DType::Int64, IntegerConstant{value}); }
  ExprId of(Operator op, ExprId a, ExprId b) { return add(DType::Int64, Operation{op, {a, b}}); }

 private:
  Definition& definition_;
};

/// The one read of a tensor; nothing where there are more.
std::optional<ExprId> only_read(const Definition& definition, TensorId tensor) {
  std::optional<ExprId> found;
  for (ExprId id = 0; id < definition.expressions.size(); ++id) {
    const auto* read = std::get_if<Read>(&definition.expressions[id].node);
    if (read == nullptr || read->tensor != tensor) continue;
    if (found) return std::nullopt;
    found = id;
  }
  return found;
}

std::vector<int64_t> shape_of_panels(const FilterPanels& panels, const std::vector<int64_t>& from) {
  std::vector<int64_t> shape;
  for (const size_t dimension : panels.order)
    shape.push_back(from[dimension]);
  shape[panels.split] /= panels.channels;
  shape.push_back(panels.channels);
  return shape;
}

Kernel copy_kernel(const std::string& name, DType type, const std::vector<int64_t>& from,
                   const FilterPanels& panels) {
  Kernel kernel;
  Writer write(kernel.definition);
  Placeholder filters{type, {}};
  for (const int64_t extent : from)
    filters.shape.push_back(write.index(extent));
  Compute copy;
  std::vector<ExprId> places;
  const ExprId zero = write.index(0);
  for (const int64_t extent : shape_of_panels(panels, from)) {
    const auto axis = static_cast<AxisId>(kernel.definition.axes.size());
    kernel.definition.axes.push_back({AxisKind::Data, zero, write.index(extent)});
    copy.axes.push_back(axis);
    places.push_back(write.add(DType::Int64, AxisUse{axis}));
  }
  std::vector<ExprId> indices(from.size());
  for (size_t i = 0; i < panels.order.size(); ++i)
    indices[panels.order[i]] = places[i];
  ExprId& row = indices[panels.order[panels.split]];
  row = write.of(Operator::Add, write.of(Operator::Mul, row, write.index(panels.channels)),
                 places.back());
  copy.bodies = {write.add(type, Read{{0, 0}, indices})};
  kernel.definition.stages = {std::move(filters), std::move(copy)};
  kernel.definition.parameters = {{0, 0}, {1, 0}};
  kernel.names.kernel = name + "_packed";
  kernel.names.stages = {name, name + "_packed"};
  kernel.names.stage_lines.resize(2);
  for (size_t axis = 0; axis < kernel.definition.axes.size(); ++axis)
    kernel.names.axes.push_back("i" + std::to_string(axis));
  return kernel;
}

Kernel product_kernel(Kernel kernel, ExprId read_of_filters, const std::vector<int64_t>& from,
                      const FilterPanels& panels) {
  Definition& definition = kernel.definition;
  Writer write(definition);
  auto& placeholder = std::get<Placeholder>(definition.stages[panels.filters.stage]);
  placeholder.shape.clear();
  for (const int64_t extent : shape_of_panels(panels, from))
    placeholder.shape.push_back(write.index(extent));
  const std::vector<ExprId> before =
      std::get<Read>(definition.expressions[read_of_filters].node).indices;
  std::vector<ExprId> indices;
  for (const size_t dimension : panels.order)
    indices.push_back(before[dimension]);
  const ExprId channels = write.index(panels.channels);
  const ExprId row = indices[panels.split];
  indices[panels.split] = write.of(Operator::FloorDiv, row, channels);
  indices.push_back(write.of(Operator::FloorMod, row, channels));
  std::get<Read>(definition.expressions[read_of_filters].node).indices = std::move(indices);
  kernel.names.stages[panels.filters.stage] += "_packed";
  return canonicalize(kernel, {}).kernel;  // expressions after what they refer to
}

/// Extents of a placeholder; nothing where one is not known.
std::optional<std::vector<int64_t>> known_shape(const StageGraph& graph, TensorId tensor) {
  std::vector<int64_t> shape;
  for (const ir::Expr& extent : graph[tensor.stage].shapes[tensor.output]) {
    const std::optional<int64_t> known = ir::as_const_int(analysis::simplify(extent));
    if (!known) return std::nullopt;
    shape.push_back(*known);
  }
  return shape;
}

}  // namespace

std::optional<PackedFilters> pack_filters(const Kernel& kernel, const std::vector<bool>& lasting,
                                          const Target& target, const CompileOptions& options) {
  const Definition& definition = kernel.definition;
  if (!options.automatic || !target.traits().has_vectors ||
      std::ranges::find(lasting, true) == lasting.end()) {
    return std::nullopt;
  }
  const StageGraph graph = graph_of(kernel, {});
  const Chooser chooser{graph, options, machine_of(target.arch), target.arch};
  for (const StageId id : graph.stage_of_id) {
    const std::optional<FilterPanels> panels = wanted_panels(chooser, id);
    if (!panels) continue;
    const auto at = std::ranges::find(definition.parameters, panels->filters);
    const auto position = static_cast<size_t>(at - definition.parameters.begin());
    const std::optional<ExprId> read = only_read(definition, panels->filters);
    const auto shape = known_shape(graph, panels->filters);
    if (at == definition.parameters.end() || !lasting[position] || !read || !shape) continue;
    const std::string name = kernel.names.tensor_name(definition, panels->filters);
    return PackedFilters{position,
                         copy_kernel(name, definition.type_of(panels->filters), *shape, *panels),
                         product_kernel(kernel, *read, *shape, *panels)};
  }
  return std::nullopt;
}

}  // namespace kiln::autoschedule
