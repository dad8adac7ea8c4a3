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

struct Instance::Stage {
  std::map<std::uint32_t, Expr> axes;  // by number: its own, and those it reduces over
  std::map<std::uint32_t, std::shared_ptr<const AxisNode>> reduced;
  Shape batch;
  std::vector<Expr> leading;
  std::map<std::uint32_t, Expr> known;  // expressions that are made
};

Instance::Instance(const Binding& binding)
    : binding_(binding), definition_(binding.kernel.definition) {
  for (const auto& [stage, argument] : binding.arguments)
    made_[stage] = {argument};
  find_batches();
}

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

Tensor Instance::tensor(const v1::TensorId& id) {
  make(id.stage());
  return made_.at(id.stage())[id.output()].tensor();
}

Expr Instance::size(std::uint32_t id) {
  Stage none;
  return expression(id, none);
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
    if (!row.has_compute() && !row.has_scan() && !row.has_placeholder()) {
      fail_at(binding_.where, "COMPOSITION", "{} makes {} in a way that cannot be composed yet",
              binding_.kernel.names.kernel(), stage_name(stage));
    }
    if (row.has_placeholder()) {
      Shape shape = batches_[stage];
      for (const std::uint32_t extent : row.placeholder().shape())
        shape.push_back(size(extent));
      made_[stage] = {placeholder(std::move(shape), type(row.placeholder().type()),
                                  stage_name(stage), binding_.where)};
    }
  }
}

std::vector<std::uint32_t> Instance::needed(std::uint32_t stage) const {
  const v1::Stage& row = definition_.stages(static_cast<int>(stage));
  if (row.has_compute()) return read_stages(row.compute());
  std::vector<std::uint32_t> stages;
  for (const auto* list : {&row.scan().init(), &row.scan().update(), &row.scan().state()}) {
    for (const v1::TensorId& tensor : *list)
      stages.push_back(tensor.stage());
  }
  return stages;
}

std::vector<std::uint32_t> Instance::read_stages(const v1::Compute& compute) const {
  std::set<std::uint32_t> stages;
  std::set<std::uint32_t> seen;
  std::vector<std::uint32_t> stack(compute.bodies().begin(), compute.bodies().end());
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
      stack.push_back(row.reduction().source());
      for (const std::uint32_t axis : row.reduction().axes()) {
        const v1::Axis& bounds = definition_.axes(static_cast<int>(axis));
        stack.push_back(bounds.minimum());
        stack.push_back(bounds.extent());
      }
    }
  }
  return {stages.begin(), stages.end()};
}

std::vector<std::string> Instance::axis_names(const v1::Compute& compute,
                                              std::size_t leading) const {
  std::vector<std::string> own;
  for (const std::uint32_t axis : compute.axes())
    own.push_back(axis_name(axis));
  std::vector<std::string> names;
  for (int number = 0; names.size() < leading; ++number) {
    std::string name = fmt::format("i{}", number);
    if (std::find(own.begin(), own.end(), name) == own.end()) names.push_back(std::move(name));
  }
  names.insert(names.end(), own.begin(), own.end());
  return names;
}

void Instance::make_compute(std::uint32_t id, const v1::Compute& compute) {
  Stage stage{.batch = batches_[id]};
  const std::size_t leading = stage.batch.size();
  Shape shape = stage.batch;
  for (const std::uint32_t axis : compute.axes())
    shape.push_back(size(definition_.axes(static_cast<int>(axis)).extent()));
  const Bodies bodies = [&](const std::vector<Expr>& indices) {
    stage.leading.assign(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(leading));
    for (int d = 0; d < compute.axes_size(); ++d)
      stage.axes.emplace(compute.axes(d), indices[leading + static_cast<std::size_t>(d)]);
    std::vector<Expr> values;
    for (const std::uint32_t body : compute.bodies())
      values.push_back(expression(body, stage));
    return values;
  };
  const Names names(stage_name(id), axis_names(compute, leading));
  finish(id, detail::compute(shape, bodies, -1, names, binding_.where));
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

void Instance::make_scan(std::uint32_t id, const v1::Scan& scan) {
  const auto tensors = [this](const auto& ids) {
    std::vector<Tensor> list;
    for (const v1::TensorId& tensor : ids) {
      list.push_back(made_.at(tensor.stage())[tensor.output()].tensor());
    }
    return list;
  };
  std::vector<Tensor> made = client::scan(
      tensors(scan.init()), tensors(scan.update()), tensors(scan.state()), {}, stage_name(id),
      ScanTime{.dimension = scan.dimension() + static_cast<unsigned>(batches_[id].size()),
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

Expr Instance::expression(std::uint32_t id, Stage& stage) {
  if (const auto known = stage.known.find(id); known != stage.known.end()) return known->second;
  const Expr made = build(definition_.expressions(static_cast<int>(id)), stage);
  stage.known.emplace(id, made);
  return made;
}

Expr Instance::build(const v1::Expression& row, Stage& stage) {
  switch (row.kind_case()) {
    case v1::Expression::kInteger:
      return constant(row.integer().value(), type(row.integer().type()));
    case v1::Expression::kFloating: {
      const DType wanted = type(row.floating().type());
      const double value = row.floating().value();
      const bool is_whole = value == static_cast<double>(static_cast<std::int64_t>(value));
      if (!border::is_float(static_cast<int>(wanted)) && is_whole) {
        return constant(static_cast<std::int64_t>(value), wanted);
      }
      return constant(value, wanted);
    }
    case v1::Expression::kVariable: return binding_.sizes.at(row.variable());
    case v1::Expression::kAxis: return axis(row.axis(), stage);
    case v1::Expression::kOperation: {
      std::vector<Expr> operands;
      for (const std::uint32_t operand : row.operation().operands())
        operands.push_back(expression(operand, stage));
      return folded(row.operation().operator_(), operands);
    }
    case v1::Expression::kCast:
      return cast(expression(row.cast().operand(), stage), type(row.cast().type()));
    case v1::Expression::kRead: return read(row.read(), stage);
    case v1::Expression::kReduction: return reduction(row.reduction(), stage);
    default:
      fail_at(binding_.where, "COMPOSITION", "{} has an expression that cannot be composed yet",
              binding_.kernel.names.kernel());
  }
}

Expr Instance::read(const v1::Read& read, Stage& stage) {
  const Given& tensor = made_.at(read.tensor().stage())[read.tensor().output()];
  const Shape& own = batches_[read.tensor().stage()];
  const std::size_t skipped = stage.batch.size() - own.size();
  std::vector<Expr> indices;
  for (std::size_t d = 0; d < own.size(); ++d) {
    const bool repeated = is_one(own[d]) && !is_one(stage.batch[skipped + d]);
    indices.push_back(repeated ? constant(0, int64) : stage.leading[skipped + d]);
  }
  for (const std::uint32_t index : read.indices())
    indices.push_back(expression(index, stage));
  const Expr element = tensor.at(indices);
  if (!tensor.is_number()) return element;
  const v1::Stage& input = definition_.stages(static_cast<int>(read.tensor().stage()));
  return cast(element, type(input.placeholder().type()));
}

Expr Instance::reduction(const v1::Reduction& reduction, Stage& stage) {
  std::vector<ReduceAxis> axes;
  for (const std::uint32_t id : reduction.axes()) {
    axis(id, stage);
    axes.emplace_back(stage.reduced.at(id));
  }
  return reduce(reduction.combiner(), expression(reduction.source(), stage), axes);
}

/// An axis of the stage, or the reduction axis of that number, made when it is first met.
Expr Instance::axis(std::uint32_t id, Stage& stage) {
  if (const auto known = stage.axes.find(id); known != stage.axes.end()) return known->second;
  const v1::Axis& row = definition_.axes(static_cast<int>(id));
  const Expr minimum = expression(row.minimum(), stage);
  const Expr extent = expression(row.extent(), stage);
  const auto node =
      std::make_shared<const AxisNode>(AxisNode{AxisKind::Reduce, axis_name(id), minimum, extent});
  stage.reduced.emplace(id, node);
  const Expr value = make_expr(int64, AxisValue{node});
  stage.axes.emplace(id, value);
  return value;
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
                          const std::map<std::string, Expr>& sizes, SourceLocation where) const {
  const detail::Binding binding = detail::bind(state_->kernel, arguments, sizes, where);
  detail::Instance instance(binding);
  Tensors tensors;
  for (const v1::TensorId& output : detail::parameters_of(state_->kernel.definition, false))
    tensors.push_back(instance.tensor(output));
  return tensors;
}

}  // namespace client
}  // namespace kiln
