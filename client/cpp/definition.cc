#include <fstream>
#include <iterator>
#include <utility>

#include <kiln/definition.h>

#include "client/cpp/definition_state.h"
#include "client/cpp/encode.h"
#include "client/cpp/fail.h"
#include "client/cpp/schedule_state.h"

namespace kiln {
inline namespace client {
namespace detail {
namespace {

std::shared_ptr<const DefinitionState> make_state(const std::vector<Tensor>& arguments,
                                                  const std::string& name,
                                                  const ScheduleState* schedule) {
  auto state = std::make_shared<DefinitionState>();
  state->kernel = encode(arguments, name, schedule);
  if (!state->kernel.schedules.empty()) {
    state->schedule = std::move(state->kernel.schedules[0].second);
    state->kernel.schedules.clear();
  }
  return state;
}

/// A size as a person writes it. Only what shapes are made of has an infix.
class SizeText {
 public:
  explicit SizeText(const border::WireKernel& kernel) : kernel_(kernel) {}

  std::string operator()(std::uint32_t id) const {
    const v1::Expression& expr = kernel_.definition.expressions(static_cast<int>(id));
    if (expr.has_integer()) return std::to_string(expr.integer().value());
    if (expr.has_cast()) return (*this)(expr.cast().operand());
    if (expr.kind_case() == v1::Expression::kVariable) {
      return kernel_.names.variables(static_cast<int>(expr.variable()));
    }
    if (!expr.has_operation()) return "?";
    return text(expr.operation());
  }

 private:
  std::string text(const v1::Operation& operation) const {
    std::vector<std::string> operands;
    for (const std::uint32_t operand : operation.operands())
      operands.push_back((*this)(operand));
    const std::string& op = operation.operator_();
    for (const auto& [spelling, infix] :
         {std::pair{"add", "+"}, std::pair{"subtract", "-"}, std::pair{"multiply", "*"}}) {
      if (op == spelling)
        return fmt::format("{} {} {}", bracketed(operands[0]), infix, bracketed(operands[1]));
    }
    return fmt::format("{}({})", op, fmt::join(operands, ", "));
  }

  static std::string bracketed(const std::string& operand) {
    const bool compound = operand.find(' ') != std::string::npos && operand.back() != ')';
    return compound ? "(" + operand + ")" : operand;
  }

  const border::WireKernel& kernel_;
};

class ParameterTable {
 public:
  explicit ParameterTable(const border::WireKernel& kernel) : kernel_(kernel), size_text_(kernel) {}

  Parameter operator[](const v1::TensorId& id) const {
    const v1::Stage& stage = stage_of(id);
    Parameter parameter{.name = kernel_.names.stages(static_cast<int>(id.stage())),
                        .type = type_of(id),
                        .output = !stage.has_placeholder(),
                        .shape = shape_of(id)};
    if (outputs_of(stage) > 1) parameter.name += fmt::format(".v{}", id.output());
    return parameter;
  }

 private:
  const v1::Stage& stage_of(const v1::TensorId& id) const {
    return kernel_.definition.stages(static_cast<int>(id.stage()));
  }

  static int outputs_of(const v1::Stage& stage) {
    if (stage.has_scan()) return stage.scan().state_size();
    return stage.has_compute() ? stage.compute().bodies_size() : 1;
  }

  DType type_of(const v1::TensorId& id) const {
    const v1::Stage& stage = stage_of(id);
    const int output = static_cast<int>(id.output());
    if (stage.has_placeholder()) return static_cast<DType>(stage.placeholder().type());
    if (stage.has_scan()) return type_of(stage.scan().state(output));
    return type_of_expression(stage.compute().bodies(output));
  }

  DType type_of_expression(std::uint32_t id) const {
    const v1::Expression& expr = kernel_.definition.expressions(static_cast<int>(id));
    switch (expr.kind_case()) {
      case v1::Expression::kInteger: return static_cast<DType>(expr.integer().type());
      case v1::Expression::kFloating: return static_cast<DType>(expr.floating().type());
      case v1::Expression::kCast: return static_cast<DType>(expr.cast().type());
      case v1::Expression::kRead: return type_of(expr.read().tensor());
      case v1::Expression::kReduction: return type_of_expression(expr.reduction().source());
      case v1::Expression::kOperation: return type_of_operation(expr.operation());
      default: return int64;
    }
  }

  DType type_of_operation(const v1::Operation& operation) const {
    std::vector<int> types;
    for (const std::uint32_t operand : operation.operands()) {
      types.push_back(static_cast<int>(type_of_expression(operand)));
    }
    return static_cast<DType>(border::result_type(operation.operator_(), types));
  }

  std::vector<std::string> shape_of(const v1::TensorId& id) const {
    const v1::Stage& stage = stage_of(id);
    if (stage.has_scan()) return shape_of(stage.scan().state(static_cast<int>(id.output())));
    std::vector<std::string> shape;
    for (const std::uint32_t size : stage.placeholder().shape())
      shape.push_back(size_text_(size));
    for (const std::uint32_t axis : stage.compute().axes()) {
      shape.push_back(size_text_(kernel_.definition.axes(static_cast<int>(axis)).extent()));
    }
    return shape;
  }

  const border::WireKernel& kernel_;
  SizeText size_text_;
};

}  // namespace
}  // namespace detail

Definition::Definition(std::initializer_list<Tensor> arguments)
    : Definition(std::vector<Tensor>(arguments)) {}

Definition::Definition(const std::vector<Tensor>& arguments, std::string name)
    : state_(detail::make_state(arguments, name, nullptr)) {}

Definition::Definition(const Schedule& schedule, const std::vector<Tensor>& arguments,
                       std::string name)
    : state_(detail::make_state(arguments, name, schedule.state().get())) {}

const std::string& Definition::name() const { return state_->kernel.names.kernel(); }

std::vector<Parameter> Definition::parameters() const {
  const detail::ParameterTable table(state_->kernel);
  std::vector<Parameter> parameters;
  for (const v1::TensorId& id : state_->kernel.definition.parameters()) {
    parameters.push_back(table[id]);
  }
  return parameters;
}

std::vector<std::string> Definition::sizes() const {
  const auto& names = state_->kernel.names.variables();
  return {names.begin(), names.end()};
}

std::vector<std::string> Definition::schedules() const {
  std::vector<std::string> names;
  for (const auto& [name, schedule] : state_->kernel.schedules)
    names.push_back(name);
  return names;
}

Definition Definition::with_schedule(std::string_view name) const {
  auto state = std::make_shared<detail::DefinitionState>(*state_);
  state->schedule.Clear();
  for (const auto& [block, schedule] : state_->kernel.schedules) {
    if (block == name) state->schedule = schedule;
  }
  return Definition(std::move(state));
}

Definition Definition::without_schedule() const {
  auto state = std::make_shared<detail::DefinitionState>(*state_);
  state->schedule.Clear();
  return Definition(std::move(state));
}

std::string Definition::text() const { return border::print_text(state_->kernel); }

std::vector<Definition> parse(std::string_view text, const std::string& file_name) {
  std::vector<Definition> definitions;
  for (border::WireKernel& kernel : border::parse_text(text, file_name)) {
    auto state = std::make_shared<detail::DefinitionState>();
    state->kernel = std::move(kernel);
    definitions.emplace_back(std::shared_ptr<const detail::DefinitionState>(std::move(state)));
  }
  return definitions;
}

std::vector<Definition> load_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    detail::fail(ErrorKind::NotFound, "FILE",
                 "{} cannot be read: there is no such file, or no right "
                 "to read it",
                 path);
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return parse(text, path);
}

}  // namespace client
}  // namespace kiln
