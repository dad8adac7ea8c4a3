// Programs from tensors: placeholders and what is wanted of a step are collected, and built into
// values, nodes, and the definitions that nodes share.
//
//   update(w, w - slope)  ->  values [w, next], node next = subtract(w, slope), update w = next
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/ranges.h>
#include <kiln/program_builder.h>

#include "client/cpp/encode.h"
#include "client/cpp/fail.h"
#include "client/cpp/nodes.h"
#include "client/cpp/program_graph.h"
#include "client/cpp/program_random.h"
#include "client/cpp/program_state.h"
#include "client/cpp/sizes.h"

namespace kiln {
inline namespace client {
namespace detail {

using Named = std::vector<std::pair<std::string, Tensor>>;

struct ProgramParts {
  struct Given {
    Tensor tensor;
    v1::ValueKind kind;
    std::optional<Argument> values = {};  // of a parameter
  };

  std::string name;
  std::uint64_t seed = 0;
  std::uint64_t streams = 0;  // of random numbers, so far
  std::vector<Given> given = {};
  std::vector<std::pair<Tensor, Tensor>> updates = {};
  Named reports = {};
  Named outputs = {};
  std::optional<Tensor> until = {};
};

namespace {

/// A tensor that a step computes, with the same elements.
Tensor copied(const Tensor& tensor, const std::string& name) {
  return compute(
      tensor.shape(), [&](const std::vector<Expr>& axes) { return tensor(axes); }, name);
}

Tensor computed(const Tensor& tensor) {
  const bool is_given = std::holds_alternative<PlaceholderStage>(tensor.stage()->value);
  return is_given ? copied(tensor, tensor.name() + "_now") : tensor;
}

std::string described(const Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const Expr& size : tensor.shape())
    sizes.push_back(size_text(size));
  return fmt::format("{}[{}]", name_of(tensor.dtype()), fmt::join(sizes, ", "));
}

/// A program on its way to the wire.
class Message {
 public:
  explicit Message(const ProgramParts& parts) : parts_(parts) {
    state_.wire.set_name(parts.name);
    const std::vector<GraphNode> nodes = nodes_below(wanted());
    for (const ProgramParts::Given& given : parts.given) {
      const std::uint32_t id = add_value(given.tensor, given.kind);
      if (given.values) state_.own.emplace(id, *given.values);
    }
    for (const Tensor& tensor : placeholders_of(nodes)) {
      if (!numbers_.contains(key_of(tensor))) add_value(tensor, v1::VALUE_KIND_INPUT);
    }
    for (const GraphNode& node : nodes)
      add_node(node);
    for (const auto& [parameter, value] : parts.updates) {
      v1::ProgramUpdate& update = *state_.wire.add_updates();
      update.set_parameter(number_of(parameter));
      update.set_value(number_of(value));
    }
    for (const auto& [name, tensor] : parts.outputs) {
      state_.wire.add_outputs(number_of(tensor));
      state_.outputs.push_back(name);
    }
    for (const auto& [name, tensor] : parts.reports) {
      state_.wire.add_reports(number_of(tensor));
      state_.reports.push_back(name);
    }
    if (parts.until) state_.wire.set_until(number_of(*parts.until));
  }

  ProgramState take() { return std::move(state_); }

 private:
  using Key = std::pair<const StageNode*, unsigned>;
  static Key key_of(const Tensor& tensor) { return {tensor.stage().get(), tensor.output()}; }

  std::vector<Tensor> wanted() const {
    std::vector<Tensor> tensors;
    for (const Named* named : {&parts_.outputs, &parts_.reports}) {
      for (const auto& [name, tensor] : *named)
        tensors.push_back(tensor);
    }
    for (const auto& [parameter, value] : parts_.updates)
      tensors.push_back(value);
    if (parts_.until) tensors.push_back(*parts_.until);
    return tensors;
  }

  std::uint32_t add_value(const Tensor& tensor, v1::ValueKind kind) {
    const auto id = static_cast<std::uint32_t>(state_.wire.values_size());
    const std::string name = tensor.name();
    const int count = names_[name]++;
    v1::ProgramValue& value = *state_.wire.add_values();
    value.set_name(count == 0 ? name : fmt::format("{}_{}", name, count));
    value.set_kind(kind);
    numbers_[key_of(tensor)] = id;
    return id;
  }

  std::uint32_t number_of(const Tensor& tensor) const {
    const auto found = numbers_.find(key_of(tensor));
    if (found == numbers_.end()) {
      fail(ErrorKind::InvalidArgument, "PROGRAM_VALUE",
           "{} is a part of a scan and has no value outside of it; compute it anew from what the "
           "scan is given",
           tensor.name());
    }
    return found->second;
  }

  void add_node(const GraphNode& graph_node) {
    v1::ProgramNode node;
    for (const Tensor& input : graph_node.inputs)
      node.add_inputs(number_of(input));
    for (const Tensor& output : graph_node.outputs())
      node.add_outputs(add_value(output, v1::VALUE_KIND_UNSPECIFIED));
    const StageNode& last = *graph_node.stages.back();
    node.set_name(node.outputs_size() == 1
                      ? state_.wire.values(static_cast<int>(node.outputs(0))).name()
                      : last.name);
    node.set_definition(definition_of(graph_node));
    node.set_file(last.file);
    node.set_line(last.line);
    *state_.wire.add_nodes() = std::move(node);
  }

  std::uint32_t definition_of(const GraphNode& node) {
    border::WireKernel kernel = encode_node(node);
    const auto [found, is_new] =
        definitions_.try_emplace(kernel.definition.SerializeAsString(),
                                 static_cast<std::uint32_t>(state_.wire.definitions_size()));
    if (is_new) {
      *state_.wire.add_definitions() = std::move(kernel.definition);
      *state_.wire.add_source_maps() = std::move(kernel.names);
    }
    return found->second;
  }

  const ProgramParts& parts_;
  ProgramState state_;
  std::map<Key, std::uint32_t> numbers_;
  std::map<std::string, int> names_;
  std::map<std::string, std::uint32_t> definitions_;
};

Tensor add_given(ProgramParts& parts, ProgramParts::Given given, const SourceLocation& where) {
  const std::string name = given.tensor.name();
  const bool is_known = std::ranges::any_of(
      parts.given, [&](const ProgramParts::Given& other) { return other.tensor.name() == name; });
  if (is_known) {
    fail_at(where, "PROGRAM_NAME", "{} has two placeholders {}; give each a name of its own",
            parts.name, name);
  }
  return parts.given.emplace_back(std::move(given)).tensor;
}

void refuse_update(const ProgramParts& parts, const Tensor& parameter, const Tensor& value) {
  const bool is_parameter = std::ranges::any_of(parts.given, [&](const ProgramParts::Given& each) {
    return each.kind == v1::VALUE_KIND_PARAMETER && is_same(each.tensor, parameter);
  });
  if (!is_parameter) {
    fail(ErrorKind::InvalidArgument, "PROGRAM_UPDATE",
         "{0} updates {1}, which is no parameter of it; make it one by program.parameter(values, "
         "\"{1}\")",
         parts.name, parameter.name());
  }
  for (const auto& [other, becomes] : parts.updates) {
    if (!is_same(other, parameter)) continue;
    fail(ErrorKind::InvalidArgument, "PROGRAM_UPDATE", "{} updates {} twice", parts.name,
         parameter.name());
  }
  const Shape own = parameter.shape();
  const Shape given = value.shape();
  const bool fits = value.dtype() == parameter.dtype() &&
                    std::equal(own.begin(), own.end(), given.begin(), given.end(),
                               [](const Expr& a, const Expr& b) { return is_same_size(a, b); });
  if (fits) return;
  fail(ErrorKind::InvalidArgument, "PROGRAM_UPDATE",
       "parameter {} is {}, but becomes {}, which is {}", parameter.name(), described(parameter),
       value.name(), described(value));
}

std::pair<DType, std::vector<std::int64_t>> type_of(const Argument& values) {
  return std::visit([](const auto& array) { return std::pair(array.dtype(), array.shape()); },
                    values);
}

}  // namespace
}  // namespace detail

ProgramBuilder::ProgramBuilder(std::string name, std::uint64_t seed)
    : parts_(std::make_shared<detail::ProgramParts>(
          detail::ProgramParts{.name = std::move(name), .seed = seed})) {}

const std::string& ProgramBuilder::name() const { return parts_->name; }

Tensor ProgramBuilder::data(Shape shape, DType type, std::string name, SourceLocation where) {
  const Tensor tensor = placeholder(std::move(shape), type, std::move(name), where);
  return detail::add_given(*parts_, {tensor, v1::VALUE_KIND_BATCH}, where);
}

Tensor ProgramBuilder::input(Shape shape, DType type, std::string name, SourceLocation where) {
  const Tensor tensor = placeholder(std::move(shape), type, std::move(name), where);
  return detail::add_given(*parts_, {tensor, v1::VALUE_KIND_INPUT}, where);
}

Tensor ProgramBuilder::parameter(const Argument& values, std::string name, SourceLocation where) {
  const auto [type, sizes] = detail::type_of(values);
  const Tensor tensor =
      placeholder(Shape(sizes.begin(), sizes.end()), type, std::move(name), where);
  return detail::add_given(*parts_, {tensor, v1::VALUE_KIND_PARAMETER, values}, where);
}

std::vector<Tensor> ProgramBuilder::parameters() const {
  std::vector<Tensor> tensors;
  for (const detail::ProgramParts::Given& given : parts_->given) {
    if (given.kind == v1::VALUE_KIND_PARAMETER) tensors.push_back(given.tensor);
  }
  return tensors;
}

Tensor ProgramBuilder::step(SourceLocation where) {
  for (const detail::ProgramParts::Given& given : parts_->given) {
    if (given.kind == v1::VALUE_KIND_STEP) return given.tensor;
  }
  const Tensor tensor = placeholder({}, int64, "step", where);
  return detail::add_given(*parts_, {tensor, v1::VALUE_KIND_STEP}, where);
}

Tensor ProgramBuilder::uniform(const std::vector<std::int64_t>& shape, std::string name,
                               SourceLocation where) {
  return random(false, shape, name, where);
}

Tensor ProgramBuilder::normal(const std::vector<std::int64_t>& shape, std::string name,
                              SourceLocation where) {
  return random(true, shape, name, where);
}

Tensor ProgramBuilder::random(bool is_normal, const std::vector<std::int64_t>& shape,
                              const std::string& name, const SourceLocation& where) {
  const detail::RandomStream stream{parts_->seed, parts_->streams++};
  return detail::random_tensor(is_normal, shape, step(where), stream, name, where);
}

void ProgramBuilder::update(const Tensor& parameter, const Tensor& value, SourceLocation where) {
  detail::at_line(where, [&] {
    detail::refuse_update(*parts_, parameter, value);
    const bool is_taken = std::ranges::any_of(
        parts_->updates, [&](const auto& other) { return detail::is_same(other.second, value); });
    parts_->updates.emplace_back(parameter, is_taken
                                                ? detail::copied(value, parameter.name() + "_next")
                                                : detail::computed(value));
  });
}

void ProgramBuilder::report(std::string name, const Tensor& number) {
  parts_->reports.emplace_back(std::move(name), detail::computed(number));
}

void ProgramBuilder::output(std::string name, const Tensor& tensor) {
  parts_->outputs.emplace_back(std::move(name), detail::computed(tensor));
}

void ProgramBuilder::until(const Tensor& condition) { parts_->until = detail::computed(condition); }

Program ProgramBuilder::build(SourceLocation where) const {
  return detail::at_line(where, [&] {
    return Program(std::make_shared<const detail::ProgramState>(detail::Message(*parts_).take()));
  });
}

}  // namespace client
}  // namespace kiln
