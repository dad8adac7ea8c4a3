// Makes a definition's stages anew for one call: its axes and bodies under the caller's sizes,
// types and leading dimensions (inlining a template, without a string in between).
//
//   softmax of n, on (batch, 10)  ->  stages over (batch, 10) that read their own row
#include "client/cpp/instance.h"

#include <algorithm>
#include <set>

#include "client/cpp/definition_state.h"
#include "client/cpp/fail.h"
#include "client/cpp/nodes.h"
#include "client/cpp/sizes.h"

namespace kiln {
inline namespace client {
namespace detail {

Instance::Instance(const Binding& binding)
    : binding_(binding), definition_(binding.kernel.definition) {
  for (const auto& [stage, argument] : binding.arguments)
    made_[stage] = {argument};
  find_batches();
}

Tensor Instance::tensor(const v1::TensorId& id) {
  make(id.stage());
  return made_.at(id.stage())[id.output()].tensor();
}

void Instance::put(std::uint32_t stage, const std::shared_ptr<const StageNode>& node) {
  std::size_t outputs = 1;
  if (const auto* compute = std::get_if<ComputeStage>(&node->value))
    outputs = compute->bodies.size();
  if (const auto* scan = std::get_if<ScanStage>(&node->value)) outputs = scan->state.size();
  made_[stage].clear();
  for (unsigned output = 0; output < outputs; ++output)
    made_[stage].emplace_back(Tensor(node, output));
}

DType Instance::type(int declared) const {
  const auto bound = binding_.types.find(declared);
  return bound == binding_.types.end() ? static_cast<DType>(declared) : bound->second;
}

const std::string& Instance::stage_name(std::uint32_t stage) const {
  return binding_.kernel.names.stages(static_cast<int>(stage));
}

const std::string& Instance::axis_name(std::uint32_t axis) const {
  return binding_.kernel.names.axes(static_cast<int>(axis));
}

/// Makes what the stage needs, then the stage; a chain of stages may be long.
void Instance::make(std::uint32_t last) {
  std::vector<std::uint32_t> stack = {last};
  while (!stack.empty()) {
    const std::uint32_t stage = stack.back();
    std::vector<std::uint32_t> missing = needed(stage);
    std::erase_if(missing, [this](std::uint32_t other) { return made_.contains(other); });
    if (!made_.contains(stage) && !missing.empty()) {
      stack.insert(stack.end(), missing.begin(), missing.end());
      continue;
    }
    stack.pop_back();
    if (made_.contains(stage)) continue;
    const v1::Stage& row = definition_.stages(static_cast<int>(stage));
    if (row.has_compute()) make_compute(stage, row.compute());
    if (row.has_scan()) make_scan(stage, row.scan());
    if (row.has_scatter()) make_scatter(stage, row.scatter());
    if (row.has_placeholder()) {
      const Shape shape = shape_of(stage, row.placeholder().shape());
      made_[stage] = {
          placeholder(shape, type(row.placeholder().type()), stage_name(stage), binding_.where)};
    }
  }
}

std::vector<std::string> Instance::axis_names(
    const google::protobuf::RepeatedField<std::uint32_t>& axes, std::size_t leading) const {
  std::vector<std::string> own;
  for (const std::uint32_t axis : axes)
    own.push_back(axis_name(axis));
  std::vector<std::string> names;
  for (int number = 0; names.size() < leading; ++number) {
    std::string name = fmt::format("i{}", number);
    if (std::find(own.begin(), own.end(), name) == own.end()) names.push_back(std::move(name));
  }
  names.insert(names.end(), own.begin(), own.end());
  return names;
}

/// Which of (dimensions in front, own dimensions) of a stage stands where in its tensors.
std::vector<std::size_t> Instance::order(std::uint32_t stage, std::size_t rank) const {
  const std::size_t dimensions = batches_.at(stage).size() + rank;
  return binding_.arguments.contains(stage) ? order_of_argument(dimensions, rank, binding_.axis)
                                            : order_of(dimensions, rank, binding_.axis);
}

/// The shape of a stage with these extents of its own.
Shape Instance::shape_of(std::uint32_t stage,
                         const google::protobuf::RepeatedField<std::uint32_t>& extents) {
  Shape full = batches_[stage];
  for (const std::uint32_t extent : extents)
    full.push_back(size(extent));
  Shape shape;
  for (const std::size_t d : order(stage, static_cast<std::size_t>(extents.size())))
    shape.push_back(full[d]);
  return shape;
}

/// A compute over the leading dimensions and its own, with bodies that read below the same leading
/// ones.
void Instance::make_compute(std::uint32_t id, const v1::Compute& compute) {
  Stage stage{.batch = batches_[id]};
  const std::size_t leading = stage.batch.size();
  google::protobuf::RepeatedField<std::uint32_t> extents;
  for (const std::uint32_t axis : compute.axes())
    extents.Add(definition_.axes(static_cast<int>(axis)).extent());
  const std::vector<std::size_t> places = order(id, static_cast<std::size_t>(compute.axes_size()));
  const Bodies bodies = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> placed = indices;
    for (std::size_t d = 0; d < places.size(); ++d)
      placed[places[d]] = indices[d];
    stage.leading.assign(placed.begin(), placed.begin() + static_cast<std::ptrdiff_t>(leading));
    for (int d = 0; d < compute.axes_size(); ++d)
      stage.axes.emplace(compute.axes(d), placed[leading + static_cast<std::size_t>(d)]);
    std::vector<Expr> values;
    for (const std::uint32_t body : compute.bodies())
      values.push_back(expression(body, stage));
    return values;
  };
  const std::vector<std::string> all = axis_names(compute.axes(), leading);
  std::vector<std::string> names;
  for (const std::size_t d : places)
    names.push_back(all[d]);
  finish(id, detail::compute(shape_of(id, extents), bodies, -1, Names(stage_name(id), names),
                             binding_.where));
}

/// One scatter for all leading dimensions: their indices become indices of the result.
void Instance::make_scatter(std::uint32_t id, const v1::Scatter& scatter) {
  Stage stage{.batch = batches_[id]};
  const std::size_t leading = stage.batch.size();
  const auto rank = static_cast<std::size_t>(scatter.indices_size());
  const std::vector<std::size_t> places = order(id, rank);
  if (!std::is_sorted(places.begin(), places.end())) {
    fail_at(binding_.where, "AXIS", "{} has a scatter, so its dimension must be the last one",
            called(binding_.kernel.names.kernel()));
  }
  Shape shape = stage.batch;
  for (const std::uint32_t axis : scatter.axes())
    shape.push_back(size(definition_.axes(static_cast<int>(axis)).extent()));
  const Bodies bodies = [&](const std::vector<Expr>& indices) {
    stage.leading.assign(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(leading));
    for (int d = 0; d < scatter.axes_size(); ++d)
      stage.axes.emplace(scatter.axes(d), indices[leading + static_cast<std::size_t>(d)]);
    std::vector<Expr> values = stage.leading;
    for (const std::uint32_t index : scatter.indices())
      values.push_back(expression(index, stage));
    values.push_back(expression(scatter.update(), stage));
    return values;
  };
  const Names names(stage_name(id), axis_names(scatter.axes(), leading));
  finish(id, {detail::scatter(scatter.combiner(), stored(scatter.base(), stage.batch), shape,
                              bodies, -1, names, binding_.where)});
}

/// A tensor with all the dimensions in front, which a copy has where it is seen otherwise.
Tensor Instance::stored(const v1::TensorId& id, const Shape& batch) {
  const Given& base = made_.at(id.stage())[id.output()];
  const Shape& own = batches_[id.stage()];
  const bool is_stored =
      !base.is_number() &&
      std::equal(own.begin(), own.end(), batch.begin(), batch.end(),
                 [](const Expr& a, const Expr& b) { return is_same_size(a, b); });
  if (is_stored) return base.tensor();
  Shape shape = batch;
  const Shape given = base.shape();
  shape.insert(shape.end(), given.begin() + static_cast<std::ptrdiff_t>(own.size()), given.end());
  const Bodies copy = [&](const std::vector<Expr>& indices) -> std::vector<Expr> {
    const auto own_begin = indices.begin() + static_cast<std::ptrdiff_t>(batch.size());
    return {element(id, batch, {indices.begin(), own_begin}, {own_begin, indices.end()})};
  };
  const std::string name = base.is_number() ? stage_name(id.stage()) : base.tensor().name();
  return detail::compute(shape, copy, -1, name + "_copy", binding_.where).front();
}

/// Keeps what a stage has made; several outputs have the names of the definition.
void Instance::finish(std::uint32_t id, std::vector<Tensor> tensors) {
  std::vector<std::string> names(tensors.size());
  for (const v1::TensorName& named : binding_.kernel.names.tensors()) {
    if (named.tensor().stage() == id) names[named.tensor().output()] = named.name();
  }
  const bool all_named = std::none_of(names.begin(), names.end(),
                                      [](const std::string& name) { return name.empty(); });
  if (tensors.size() > 1 && all_named) {
    auto named = std::make_shared<StageNode>(*tensors[0].stage());
    named->tensor_names = std::move(names);
    for (std::uint32_t output = 0; output < tensors.size(); ++output)
      tensors[output] = Tensor(named, output);
  }
  made_[id] = {tensors.begin(), tensors.end()};
}

/// Time moves behind the leading dimensions; the scan is made from its parts as a program would.
void Instance::make_scan(std::uint32_t id, const v1::Scan& scan) {
  const auto tensors = [this](const auto& ids) {
    std::vector<Tensor> list;
    for (const v1::TensorId& tensor : ids) {
      list.push_back(made_.at(tensor.stage())[tensor.output()].tensor());
    }
    return list;
  };
  const v1::Stage& state = definition_.stages(static_cast<int>(scan.state(0).stage()));
  const std::vector<std::size_t> places =
      order(id, static_cast<std::size_t>(state.placeholder().shape_size()));
  const auto time_at =
      std::find(places.begin(), places.end(), batches_[id].size() + scan.dimension());
  std::vector<Tensor> made = client::scan(
      tensors(scan.init()), tensors(scan.update()), tensors(scan.state()), {}, stage_name(id),
      ScanTime{.dimension = static_cast<unsigned>(time_at - places.begin()),
               .reverse = scan.reverse()},
      binding_.where);
  // Of several states it is called after the first.
  auto node = std::make_shared<StageNode>(*made[0].stage());
  auto& stage = std::get<ScanStage>(node->value);
  AxisNode time = *stage.axis.node();
  time.name = axis_name(scan.axis());
  stage.axis = Axis(std::make_shared<const AxisNode>(std::move(time)));
  for (std::uint32_t output = 0; output < made.size(); ++output)
    made[output] = Tensor(node, output);
  finish(id, std::move(made));
}

}  // namespace detail

std::vector<Tensor> Definition::tensors(SourceLocation where) const {
  const border::WireKernel& kernel = state_->kernel;
  detail::Binding binding{.kernel = kernel, .where = where};
  for (int v = 0; v < kernel.definition.variables_size(); ++v) {
    const std::string& name = kernel.names.variables(v);
    const bool nonnegative = kernel.definition.variables(v).nonnegative();
    binding.sizes.emplace(static_cast<std::uint32_t>(v), nonnegative ? size_var(name) : var(name));
  }
  detail::Instance sizes(binding);
  for (const v1::TensorId& input : detail::parameters_of(kernel.definition, true)) {
    const v1::Placeholder& row =
        kernel.definition.stages(static_cast<int>(input.stage())).placeholder();
    Shape shape;
    for (const std::uint32_t extent : row.shape())
      shape.push_back(sizes.size(extent));
    binding.arguments.emplace(input.stage(),
                              placeholder(std::move(shape), static_cast<DType>(row.type()),
                                          detail::name_of(kernel, input), where));
  }
  detail::Instance instance(binding);
  std::vector<Tensor> tensors;
  for (const v1::TensorId& parameter : kernel.definition.parameters())
    tensors.push_back(instance.tensor(parameter));
  return tensors;
}

Tensors Definition::apply(const std::vector<Given>& arguments,
                          const std::map<std::string, Expr>& sizes, std::optional<Along> along,
                          SourceLocation where) const {
  const detail::Binding binding = detail::bind(state_->kernel, arguments, sizes, along, where);
  detail::Instance instance(binding);
  Tensors tensors;
  for (const v1::TensorId& output : detail::parameters_of(state_->kernel.definition, false))
    tensors.push_back(instance.tensor(output));
  return tensors;
}

}  // namespace client
}  // namespace kiln
