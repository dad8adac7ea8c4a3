// Statements of a kernel file as stages. The result goes through encode and decode, so that a file
// is checked as any request is, and by the same sentences.
#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/language/describe.h"
#include "compiler/language/suggest.h"
#include "compiler/language/text/build_text.h"
#include "compiler/language/wire/decode.h"

namespace kiln::language::syntax {

ExprId Workspace::add(DType type, decltype(Expression::node) node) {
  definition.expressions.push_back({type, std::move(node)});
  return static_cast<ExprId>(definition.expressions.size() - 1);
}

AxisId Workspace::add_axis(AxisKind kind, std::string_view name, ExprId minimum, ExprId extent) {
  definition.axes.push_back({kind, minimum, extent});
  names.axes.emplace_back(name);
  return static_cast<AxisId>(definition.axes.size() - 1);
}

StageId Workspace::add_stage(Stage stage, std::string name, Place place) {
  definition.stages.push_back(std::move(stage));
  names.stages.push_back(std::move(name));
  names.stage_lines.push_back({0, static_cast<uint32_t>(source.line_of(place))});
  return static_cast<StageId>(definition.stages.size() - 1);
}

std::optional<int64_t> Workspace::constant(ExprId expr) const {
  const auto* integer = std::get_if<IntegerConstant>(&definition.expressions[expr].node);
  return integer == nullptr ? std::nullopt : std::optional(integer->value);
}

std::string stage_name(const std::vector<std::string>& outputs) {
  if (outputs.size() == 1) return outputs[0];
  const size_t dot = outputs[0].rfind(".v0");
  if (dot != std::string::npos && dot + 3 == outputs[0].size()) {
    const std::string prefix = outputs[0].substr(0, dot);
    bool all = true;
    for (size_t i = 0; i < outputs.size(); ++i) {
      all = all && outputs[i] == fmt::format("{}.v{}", prefix, i);
    }
    if (all) return prefix;
  }
  return fmt::format("{}", fmt::join(outputs, ", "));
}

namespace {

class KernelBuilder : public StageBuilder {
 public:
  KernelBuilder(const Source& source, const Tree& tree, const KernelText& text)
      : text_(text), work_{.source = source, .tree = tree} {}

  Kernel build() {
    work_.names.kernel = std::string(text_.name);
    work_.names.files.push_back(work_.source.file());
    // Sizes of all parameters first: a shape may use one that a later parameter declares.
    for (const TypedName& parameter : text_.parameters) {
      for (const int extent : parameter.shape) {
        declare_sizes(extent);
      }
    }
    for (const TypedName& parameter : text_.parameters) {
      declare(parameter);
      if (!parameter.is_output) make_placeholder(parameter, true);
    }
    for (const Statement& statement : text_.statements) {
      build(statement);
    }
    for (const TypedName& parameter : text_.parameters) {
      const NamedTensor& tensor = work_.tensors.find(parameter.name)->second;
      if (!tensor.id) {
        work_.source.refuse(parameter.place, "{} is an output, but nothing computes it",
                            parameter.name);
      }
      work_.definition.parameters.push_back(*tensor.id);
    }
    return {std::move(work_.definition), std::move(work_.names)};
  }

 private:
  const Node& at(int node) const { return work_.tree.nodes[static_cast<size_t>(node)]; }

  /// Names in the shape of a parameter are sizes.
  void declare_sizes(int id) {
    const Node& node = at(id);
    if (node.kind == Node::Kind::Name && !work_.sizes.contains(node.text))
      add_size(node.text, true);
    for (const int child : node.children) {
      declare_sizes(child);
    }
  }

  void add_size(std::string_view name, bool nonnegative) {
    work_.sizes.emplace(name, static_cast<VariableId>(work_.definition.variables.size()));
    work_.definition.variables.push_back({nonnegative});
    work_.names.variables.emplace_back(name);
  }

  /// Enters the tensor with its type and shape; what computes it comes later.
  void declare(const TypedName& typed) {
    const auto type = find_dtype(typed.type);
    if (!type) {
      std::vector<std::string_view> known;
      for (int i = 1; dtype_from_number(i); ++i) {
        known.push_back(name_of(*dtype_from_number(i)));
      }
      work_.source.refuse(typed.type_place, "unknown type {}{}", typed.type.substr(0, 64),
                          suggestion(typed.type, known));
    }
    if (work_.sizes.contains(typed.name)) {
      work_.source.refuse(typed.place, "{} is a size already", typed.name);
    }
    NamedTensor tensor = {.type = *type, .place = typed.place};
    ExpressionBuilder shape(work_, {});
    for (const int extent : typed.shape) {
      tensor.shape.push_back(shape.index(extent));
    }
    const auto [known, fresh] = work_.tensors.emplace(typed.name, std::move(tensor));
    if (!fresh) {
      work_.source.refuse(typed.place, "{} is declared twice; first at line {}", typed.name,
                          work_.source.line_of(known->second.place));
    }
  }

  void make_placeholder(const TypedName& typed, bool is_input) {
    NamedTensor& tensor = work_.tensors.find(typed.name)->second;
    const StageId stage = work_.add_stage(Placeholder{tensor.type, tensor.shape},
                                          std::string(typed.name), typed.place);
    tensor.id = TensorId{stage, 0};
    tensor.is_input = is_input;
  }

  void build(const Statement& statement) override {
    switch (statement.kind) {
      case Statement::Kind::Declare:
        declare(statement.declared);
        // The state of a scan call, which has no block of its own.
        if (statement.declared.is_state) make_placeholder(statement.declared, false);
        return;
      case Statement::Kind::DeclareSize: return declare_size(statement);
      case Statement::Kind::Reducer: return build_reducer(work_, statement.reducer);
      case Statement::Kind::Assign: return assign(statement.assignment);
      case Statement::Kind::ScanBlock: return build_scan_block(*this, work_, statement);
      case Statement::Kind::ScanCall: return build_scan_call(*this, work_, statement.scan);
      case Statement::Kind::ScatterCall: return scatter_call(statement.scatter);
    }
  }

  /// `size n` may not be negative, `var n` may; said of a size that is known, it only says which.
  void declare_size(const Statement& statement) {
    const std::string_view name = statement.declared.name;
    const bool nonnegative = !statement.declared.is_state;
    const auto known = work_.sizes.find(name);
    if (known != work_.sizes.end()) {
      work_.definition.variables[known->second].nonnegative = nonnegative;
      return;
    }
    if (work_.tensors.contains(name)) {
      work_.source.refuse(statement.place, "{} is a tensor already", name);
    }
    add_size(name, nonnegative);
  }

  NamedTensor& target(std::string_view name, Place place) override {
    const auto found = work_.tensors.find(name);
    if (found == work_.tensors.end()) {
      work_.source.refuse(place, "{} has no type; declare it before, as in {}: float32[n]", name,
                          name);
    }
    if (found->second.is_input) {
      work_.source.refuse(
          place,
          "{} is an input and cannot be computed; outputs stand behind ->, as in -> ({}: ...)",
          name, name);
    }
    if (found->second.id) work_.source.refuse(place, "{} is computed twice", name);
    return found->second;
  }

  static std::vector<std::string> strings(const std::vector<std::string_view>& views) {
    return {views.begin(), views.end()};
  }

  LeftSide left_side(const Assignment& assignment, std::string stage,
                     const std::optional<InitialSteps>& init) override {
    LeftSide left;
    left.stage = std::move(stage);
    const NamedTensor& tensor = work_.tensors.find(assignment.names[0])->second;
    if (assignment.indices.size() != tensor.shape.size()) {
      work_.source.refuse(assignment.place, "{} has {} dimension{}, but has {} {} on the left",
                          assignment.names[0], tensor.shape.size(),
                          tensor.shape.size() == 1 ? "" : "s", assignment.indices.size(),
                          assignment.indices.size() == 1 ? "index" : "indices");
    }
    for (size_t i = 0; i < assignment.indices.size(); ++i) {
      const bool is_time = init && i == init->dimension;
      const std::string name = is_time ? init->axis : axis_name(assignment.indices[i]);
      if (name != "_" &&
          std::find(left.names.begin(), left.names.end(), name) != left.names.end()) {
        work_.source.refuse(at(assignment.indices[i]).place, "axis {} stands twice on the left",
                            name);
      }
      const ExprId extent = is_time ? init->count : tensor.shape[i];
      left.names.push_back(name);
      left.axes.push_back(work_.add_axis(AxisKind::Data, name, work_.integer(0), extent));
    }
    return left;
  }

  std::string axis_name(int id) override {
    const Node& name = at(id);
    if (name.kind != Node::Kind::Name) {
      work_.source.refuse(name.place,
                          "the left side names an axis for each dimension, as in C[i, j]");
    }
    if (work_.sizes.contains(name.text)) {
      work_.source.refuse(name.place, "{} is a size already; give the axis another name",
                          name.text);
    }
    return std::string(name.text);
  }

  std::vector<ExprId> bodies(const Assignment& assignment, const LeftSide& left) override {
    ExpressionBuilder builder(work_, left);
    std::vector<ExprId> result;
    if (assignment.values.size() != assignment.names.size()) {
      result = tuple(builder, assignment);
      for (size_t i = 0; i < result.size(); ++i)
        check_type(assignment.names[i], assignment.values[0], result[i]);
      return result;
    }
    for (size_t i = 0; i < assignment.values.size(); ++i) {
      const DType type = work_.tensors.find(assignment.names[i])->second.type;
      result.push_back(builder.body(assignment.values[i], type));
      check_type(assignment.names[i], assignment.values[i], result.back());
    }
    return result;
  }

  /// One reduction on the right for all tensors on the left.
  std::vector<ExprId> tuple(ExpressionBuilder& builder, const Assignment& assignment) {
    const Node& value = at(assignment.values[0]);
    const auto own = find_reducer(work_, value.text);
    const size_t values = !own || own->output ? 1 : work_.definition.reducers[own->id].types.size();
    if (values != assignment.names.size()) {
      work_.source.refuse(assignment.place, "{} tensors on the left, but {} gives {} value{}",
                          assignment.names.size(), value.text, values, values == 1 ? "" : "s");
    }
    return builder.tuple(assignment.values[0]);
  }

  /// The declaration says the type of a tensor; an expression of another is not cast in silence.
  void check_type(std::string_view name, int value, ExprId body) {
    const DType type = work_.tensors.find(name)->second.type;
    const DType actual = work_.definition.expressions[body].type;
    if (actual == type) return;
    work_.source.refuse(at(value).place, "{} is {}, but its value is {}; cast it, as in {}(...)",
                        name, type, actual, type);
  }

  StageId compute(const Assignment& assignment, const std::vector<std::string>& outputs,
                  const std::optional<InitialSteps>& init) override {
    const std::string name = stage_name(outputs);
    const LeftSide left = left_side(assignment, name, init);
    std::vector<ExprId> values = bodies(assignment, left);
    const StageId stage =
        work_.add_stage(Compute{left.axes, std::move(values)}, name, assignment.place);
    name_outputs(stage, outputs);
    return stage;
  }

  void name_outputs(StageId stage, const std::vector<std::string>& outputs) override {
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      if (work_.names.tensor_name(work_.definition, {stage, i}) == outputs[i]) continue;
      work_.names.tensors[{stage, i}] = outputs[i];
    }
  }

  void assign(const Assignment& assignment) override {
    for (const std::string_view name : assignment.names) {
      target(name, assignment.place);
    }
    const StageId stage = compute(assignment, strings(assignment.names), {});
    for (uint32_t i = 0; i < assignment.names.size(); ++i) {
      work_.tensors.find(assignment.names[i])->second.id = TensorId{stage, i};
    }
  }

  /// The result has the shape of its base, so its own declaration is compared with that.
  void scatter_call(const ScatterCall& call) {
    target(call.name, call.place);
    const StageId stage = build_scatter(work_, call);
    work_.tensors.find(call.name)->second.id = TensorId{stage, 0};
    check_declared(work_, call.name, call.place, "scatter");
  }

  const KernelText& text_;
  Workspace work_;
};

}  // namespace

Kernel build_kernel(const Source& source, const Tree& tree, const KernelText& text,
                    const Limits& limits) {
  const Kernel kernel = KernelBuilder(source, tree, text).build();
  try {
    return decode(encode(kernel.definition), encode(kernel.names), limits);
  } catch (Error& error) {
    // Errors of a stage know their line; the others are the kernel's.
    if (error.location().line == 0) source.locate(error, text.place);
    throw;
  }
}

}  // namespace kiln::language::syntax
