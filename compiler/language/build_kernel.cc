#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/language/build_text.h"
#include "compiler/language/describe.h"
#include "compiler/language/linear.h"
#include "compiler/language/suggest.h"

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

namespace {

/// The name of a stage with these outputs: "C"; "scan" for scan.v0 and scan.v1; else "S, R".
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

class KernelBuilder {
 public:
  KernelBuilder(const Source& source, const Tree& tree, const KernelText& text)
      : text_(text), work_{.source = source, .tree = tree} {}

  Kernel build() {
    work_.names.kernel = std::string(text_.name);
    work_.names.files.push_back(work_.source.file());
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

  void build(const Statement& statement) {
    switch (statement.kind) {
      case Statement::Kind::Declare:
        declare(statement.declared);
        if (statement.declared.is_state) make_placeholder(statement.declared, false);
        return;
      case Statement::Kind::DeclareSize: return declare_size(statement);
      case Statement::Kind::Assign: return assign(statement.assignment);
      case Statement::Kind::ScanBlock: return scan_block(statement);
      case Statement::Kind::ScanCall: return scan_call(statement.scan);
    }
  }

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

  /// The declared tensor that an assignment computes; refuses one that is computed already.
  NamedTensor& target(std::string_view name, Place place) {
    const auto found = work_.tensors.find(name);
    if (found == work_.tensors.end()) {
      work_.source.refuse(place, "{} has no type; declare it before, as in {}: float32[n]", name,
                          name);
    }
    if (found->second.is_input) {
      work_.source.refuse(place, "{} is an input and cannot be computed", name);
    }
    if (found->second.id) work_.source.refuse(place, "{} is computed twice", name);
    return found->second;
  }

  static std::vector<std::string> strings(const std::vector<std::string_view>& views) {
    return {views.begin(), views.end()};
  }

  /// Checks the left side and makes its axes. `rows` replaces the first extent, of an init.
  LeftSide left_side(const Assignment& assignment, std::string stage,
                     std::optional<ExprId> rows = std::nullopt) {
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
      const std::string name = axis_name(assignment.indices[i], rows && i == 0);
      if (name != "_" &&
          std::find(left.names.begin(), left.names.end(), name) != left.names.end()) {
        work_.source.refuse(at(assignment.indices[i]).place, "axis {} stands twice on the left",
                            name);
      }
      const ExprId extent = rows && i == 0 ? *rows : tensor.shape[i];
      left.names.push_back(name);
      left.axes.push_back(work_.add_axis(AxisKind::Data, name, work_.integer(0), extent));
    }
    return left;
  }

  std::string axis_name(int id, bool of_init) {
    const Node& node = at(id);
    if (of_init && node.kind == Node::Kind::Integer) return "_";
    const Node& name = of_init && node.kind == Node::Kind::Apply ? at(node.children[0]) : node;
    if (name.kind != Node::Kind::Name) {
      work_.source.refuse(node.place,
                          "the left side names an axis for each dimension, as in C[i, j]");
    }
    if (work_.sizes.contains(name.text)) {
      work_.source.refuse(name.place, "{} is a size already; give the axis another name",
                          name.text);
    }
    return std::string(name.text);
  }

  std::vector<ExprId> bodies(const Assignment& assignment, const LeftSide& left) {
    ExpressionBuilder builder(work_, left);
    std::vector<ExprId> result;
    for (size_t i = 0; i < assignment.values.size(); ++i) {
      const DType type = work_.tensors.find(assignment.names[i])->second.type;
      const ExprId body = builder.body(assignment.values[i], type);
      const DType actual = work_.definition.expressions[body].type;
      if (actual != type) {
        work_.source.refuse(at(assignment.values[i]).place,
                            "{} is {}, but its value is {}; cast it, as in {}(...)",
                            assignment.names[i], type, actual, type);
      }
      result.push_back(body);
    }
    return result;
  }

  StageId compute(const Assignment& assignment, const std::vector<std::string>& outputs,
                  std::optional<ExprId> rows = std::nullopt) {
    const std::string name = stage_name(outputs);
    const LeftSide left = left_side(assignment, name, rows);
    std::vector<ExprId> values = bodies(assignment, left);
    const StageId stage =
        work_.add_stage(Compute{left.axes, std::move(values)}, name, assignment.place);
    name_outputs(stage, outputs);
    return stage;
  }

  void name_outputs(StageId stage, const std::vector<std::string>& outputs) {
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      if (work_.names.tensor_name(work_.definition, {stage, i}) == outputs[i]) continue;
      work_.names.tensors[{stage, i}] = outputs[i];
    }
  }

  void assign(const Assignment& assignment) {
    for (const std::string_view name : assignment.names) {
      target(name, assignment.place);
    }
    const StageId stage = compute(assignment, strings(assignment.names));
    for (uint32_t i = 0; i < assignment.names.size(); ++i) {
      work_.tensors.find(assignment.names[i])->second.id = TensorId{stage, i};
    }
  }

  // A scan block: the initial rows, the states, what is computed at each step.

  /// The first index on the left, where it says which initial steps are meant.
  struct Rows {
    int64_t first = 0;
    int64_t count = 0;
    bool by_name = false;  // t < count
  };

  std::optional<Rows> initial_rows(const Assignment& assignment) const {
    if (assignment.indices.empty()) return std::nullopt;
    const Node& node = at(assignment.indices[0]);
    const auto number = [](const Node& literal) {
      const bool is_short = literal.kind == Node::Kind::Integer && literal.text.size() < 10;
      return is_short ? std::stoll(std::string(literal.text)) : -1;
    };
    if (node.kind == Node::Kind::Integer) return Rows{number(node), 1, false};
    if (node.kind == Node::Kind::Apply && node.op == Operator::Less &&
        at(node.children[1]).kind == Node::Kind::Integer) {
      return Rows{0, number(at(node.children[1])), true};
    }
    return std::nullopt;
  }

  void scan_block(const Statement& block) {
    std::vector<std::string> states;
    std::map<std::string, std::vector<const Assignment*>> inits;
    for (const Statement& statement : block.statements) {
      if (statement.kind == Statement::Kind::Declare) build(statement);
      if (statement.kind != Statement::Kind::Assign) continue;
      const Assignment& assignment = statement.assignment;
      if (!initial_rows(assignment)) continue;
      const std::string name(assignment.names[0]);
      target(name, assignment.place);
      if (assignment.names.size() > 1) {
        work_.source.refuse(assignment.place, "initial steps are given for one tensor at a time");
      }
      if (!inits.contains(name)) states.push_back(name);
      inits[name].push_back(&assignment);
    }
    if (states.empty()) {
      work_.source.refuse(block.place, "the scan has no initial step, as in S[0, i] = ...");
    }
    Scan scan = {};
    for (const std::string& name : states) {
      scan.init.push_back({init_of(name, inits[name], block.time), 0});
    }
    for (const std::string& name : states) {
      const NamedTensor& tensor = work_.tensors.find(name)->second;
      const StageId state =
          work_.add_stage(Placeholder{tensor.type, tensor.shape}, name + ".state", block.place);
      scan.state.push_back({state, 0});
      work_.states.emplace(name, TensorId{state, 0});
    }
    for (const Statement& statement : block.statements) {
      if (statement.kind == Statement::Kind::Declare) continue;
      if (statement.kind != Statement::Kind::Assign) {
        work_.source.refuse(statement.place, "expected an assignment such as S[t, i] = ...");
      }
      if (!initial_rows(statement.assignment)) step_of_scan(statement.assignment);
    }
    for (const std::string& name : states) {
      const auto update = work_.updates.find(name);
      if (update == work_.updates.end()) {
        work_.source.refuse(inits[name][0]->place,
                            "{} has an initial step but no {}[{}, ...] = ...", name, name,
                            block.time);
      }
      scan.update.push_back(update->second);
    }
    work_.states.clear();
    work_.updates.clear();
    finish_scan(std::move(scan), states, "", block.place);
  }

  void step_of_scan(const Assignment& assignment) {
    const std::string name(assignment.names[0]);
    const bool has_state =
        std::any_of(assignment.names.begin(), assignment.names.end(),
                    [this](std::string_view each) { return work_.states.contains(each); });
    if (!has_state) return assign(assignment);
    if (assignment.names.size() > 1) {
      work_.source.refuse(assignment.place,
                          "the state of a scan is computed by itself, not in a tuple");
    }
    if (work_.updates.contains(name)) {
      work_.source.refuse(assignment.place, "{} is computed twice", name);
    }
    const StageId stage = compute(assignment, {name + ".update"});
    work_.updates.emplace(name, TensorId{stage, 0});
  }

  StageId init_of(const std::string& name, const std::vector<const Assignment*>& rows,
                  std::string_view time) {
    const Rows first = *initial_rows(*rows[0]);
    if (first.by_name && rows.size() > 1) {
      work_.source.refuse(rows[1]->place, "the initial steps of {} are given twice", name);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const Rows row = *initial_rows(*rows[i]);
      if (row.by_name ? row.count >= 1 : row.first == static_cast<int64_t>(i)) continue;
      work_.source.refuse(
          rows[i]->place,
          "the initial steps of {} must be 0, 1, ... in order; expected {}[{}, ...]", name, name,
          i);
    }
    if (rows.size() == 1) {
      return compute(*rows[0], {name + ".init"}, work_.integer(first.count));
    }
    return init_of_rows(name, rows, time);
  }

  /// Several rows are one tensor: if_then_else(t == 0, row 0, if_then_else(t == 1, row 1, ...)).
  StageId init_of_rows(const std::string& name, const std::vector<const Assignment*>& rows,
                       std::string_view time) {
    const ExprId count = work_.integer(static_cast<int64_t>(rows.size()));
    const LeftSide left = left_side(*rows[0], name + ".init", count);
    work_.names.axes[left.axes[0]] = std::string(time);
    const DType type = work_.tensors.find(name)->second.type;
    std::vector<ExprId> values;
    for (const Assignment* row : rows) {
      LeftSide own = left;
      for (size_t i = 1; i < row->indices.size() && row->indices.size() == own.names.size(); ++i) {
        own.names[i] = axis_name(row->indices[i], false);
      }
      const std::vector<ExprId> value = bodies(*row, own);
      values.push_back(value[0]);
    }
    ExprId body = values.back();
    for (size_t i = values.size() - 1; i-- > 0;) {
      const ExprId time = work_.add(DType::Int64, AxisUse{left.axes[0]});
      const ExprId row = work_.integer(static_cast<int64_t>(i));
      const ExprId is_row = work_.add(DType::Bool, Operation{Operator::Equal, {time, row}});
      body = work_.add(type, Operation{Operator::IfThenElse, {is_row, values[i], body}});
    }
    return work_.add_stage(Compute{left.axes, {body}}, name + ".init", rows[0]->place);
  }

  void scan_call(const ScanCall& call) {
    Scan scan = {};
    std::vector<TensorId>* lists[] = {&scan.init, &scan.update, &scan.state};
    for (size_t i = 0; i < 3; ++i) {
      for (const std::string_view name : call.lists[i]) {
        const auto found = work_.tensors.find(name);
        if (found == work_.tensors.end() || !found->second.id) {
          work_.source.refuse(call.place, "unknown tensor {} in the scan", name);
        }
        lists[i]->push_back(*found->second.id);
      }
    }
    for (const std::string_view name : call.names) {
      target(name, call.place);
    }
    if (scan.init.size() != call.names.size() || scan.update.size() != call.names.size() ||
        scan.state.size() != call.names.size()) {
      work_.source.refuse(call.place,
                          "the scan has {} results, {} init, {} update and {} state; "
                          "their numbers must be the same",
                          call.names.size(), scan.init.size(), scan.update.size(),
                          scan.state.size());
    }
    finish_scan(std::move(scan), strings(call.names), std::string(call.axis), call.place);
  }

  void finish_scan(Scan scan, const std::vector<std::string>& outputs, std::string axis,
                   Place place) {
    const std::vector<ExprId> init = work_.definition.shape_of(scan.init[0]);
    const std::vector<ExprId> update = work_.definition.shape_of(scan.update[0]);
    if (init.empty() || update.empty()) {
      work_.source.refuse(place, "{} has no dimensions, but a scan needs one for time", outputs[0]);
    }
    const auto steps = work_.constant(init[0]);
    const auto all = work_.constant(update[0]);
    const ExprId extent =
        steps && all ? work_.integer(*all - *steps)
                     : work_.add(DType::Int64, Operation{Operator::Sub, {update[0], init[0]}});
    const std::string name = stage_name(outputs);
    if (axis.empty()) axis = outputs.size() == 1 ? name + ".idx" : outputs[0] + ".idx";
    scan.axis = work_.add_axis(AxisKind::Time, axis, init[0], extent);
    const StageId stage = work_.add_stage(std::move(scan), name, place);
    name_outputs(stage, outputs);
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      NamedTensor& tensor = work_.tensors.find(outputs[i])->second;
      tensor.id = TensorId{stage, i};
      check_declared(outputs[i], tensor, place);
    }
  }

  /// The state says what a scan's result is; its own declaration must agree.
  void check_declared(const std::string& name, const NamedTensor& tensor, Place place) {
    const Definition& definition = work_.definition;
    const std::vector<ExprId> shape = definition.shape_of(*tensor.id);
    const DType type = definition.type_of(*tensor.id);
    const bool same =
        std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end(),
                   [&](ExprId a, ExprId b) { return constant_difference(definition, a, b) == 0; });
    if (same && type == tensor.type) return;
    work_.source.refuse(place, "{} is declared {} {}, but the scan makes it {} {}", name,
                        tensor.type, shape_text(definition, work_.names, tensor.shape), type,
                        shape_text(definition, work_.names, shape));
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
    if (error.location().line == 0) source.locate(error, text.place);
    throw;
  }
}

}  // namespace kiln::language::syntax
