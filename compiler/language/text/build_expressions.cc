// Expressions of a kernel file as expressions of the definition: names become ids, and literals
// take the type of what stands beside them.
//
//   x: float16;  x + 1  ->  add(x, float16(1))     i < 2  ->  less(i, int64(2))
//
// Types are found before a node is built (natural), from the leaves, and pushed down to literals
// (expected): bidirectional, as local type inference is (Pierce and Turner, 2000).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include "compiler/language/describe.h"
#include "compiler/language/suggest.h"
#include "compiler/language/text/build_text.h"
#include "runtime/core/small_float.h"

namespace kiln::language::syntax {
namespace {

bool is_number_name(std::string_view name) { return name == "nan" || name == "inf"; }

double to_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Only too large or too small a number fails here; the latter has a negative exponent.
  if (error == std::errc::result_out_of_range) {
    return text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos
               ? 0.0
               : std::numeric_limits<double>::infinity();
  }
  return value;
}

}  // namespace

ExprId ExpressionBuilder::body(int node, DType expected) {
  if (at(node).kind != Node::Kind::Reduce) return build(node, expected);
  return reduction(at(node), expected, true);
}

ExprId ExpressionBuilder::index(int node) {
  const ExprId expr = build(node, DType::Int64);
  const DType type = work_.definition.expressions[expr].type;
  if (type == DType::Int64) return expr;
  if (is_int(type)) return work_.add(DType::Int64, CastTo{expr});
  work_.source.refuse(at(node).place, "an index must be an integer, but this is {}", type);
}

ExprId ExpressionBuilder::build(int id, Expected expected) {
  const Node& node = at(id);
  switch (node.kind) {
    case Node::Kind::Integer:
    case Node::Kind::Float: return literal(node, false, expected);
    case Node::Kind::Name: return name(node, expected);
    case Node::Kind::Index: return read(node, node.children);
    case Node::Kind::Call: return call(node, expected);
    case Node::Kind::Reduce: return reduction(node, expected, false);
    case Node::Kind::Apply: break;
  }
  bool negative = false;
  if (const Node* number = as_literal(id, negative)) return literal(*number, negative, expected);
  return apply(node, node.op, expected);
}

const Node* ExpressionBuilder::as_literal(int id, bool& negative) const {
  const Node& node = at(id);
  if (node.kind == Node::Kind::Integer || node.kind == Node::Kind::Float) return &node;
  if (node.kind == Node::Kind::Name && is_number_name(node.text)) return &node;
  if (node.kind != Node::Kind::Apply || node.op != Operator::Negative) return nullptr;
  const Node& operand = at(node.children[0]);
  const bool is_number = operand.kind == Node::Kind::Integer || operand.kind == Node::Kind::Float ||
                         (operand.kind == Node::Kind::Name && is_number_name(operand.text));
  if (!is_number) return nullptr;
  negative = true;
  return &operand;
}

ExprId ExpressionBuilder::literal(const Node& node, bool negative, Expected expected) {
  const bool whole = node.kind == Node::Kind::Integer;
  const DType type = expected.value_or(whole ? DType::Int64 : DType::Float32);
  if (!is_float(type)) {
    if (!whole || type == DType::Bool) {
      work_.source.refuse(node.place, "{} is not {} {}{}", node.text,
                          name_of(type).starts_with("int") ? "an" : "a", type,
                          type == DType::Bool ? "; write true or false" : "");
    }
    return integer_literal(node, negative, type);
  }
  double value = node.text == "nan"   ? std::numeric_limits<double>::quiet_NaN()
                 : node.text == "inf" ? std::numeric_limits<double>::infinity()
                                      : to_double(node.text);
  if (!is_number_name(node.text) && (std::isinf(value) || is_past_range(type, value))) {
    work_.source.refuse(node.place, "{}{} does not fit {}{}", negative ? "-" : "",
                        node.text.substr(0, 64), type,
                        type == DType::Float8E4M3FN ? "" : "; infinity is written inf");
  }
  if (negative && node.text != "nan") value = -value;  // there is one nan
  return work_.add(type, FloatConstant{round_to(type, value)});
}

ExprId ExpressionBuilder::integer_literal(const Node& node, bool negative, DType type) {
  uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(node.text.data(), node.text.data() + node.text.size(), magnitude);
  const int value_bits = bits_of(type) - (is_signed_int(type) ? 1 : 0);
  const uint64_t largest = value_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << value_bits) - 1;
  const uint64_t limit = negative ? (is_signed_int(type) ? largest + 1 : 0) : largest;
  if (error != std::errc{} || magnitude > limit) {
    work_.source.refuse(node.place, "{}{} does not fit {}", negative ? "-" : "",
                        node.text.substr(0, 64), type);
  }
  const uint64_t bits = negative ? ~magnitude + 1 : magnitude;
  return work_.add(type, IntegerConstant{static_cast<int64_t>(bits)});
}

std::optional<AxisId> ExpressionBuilder::find_axis(std::string_view name) const {
  for (const auto& [reduced, axis] : reduced_) {
    if (reduced == name) return axis;
  }
  for (size_t i = 0; i < left_.names.size(); ++i) {
    if (left_.names[i] == name) return left_.axes[i];
  }
  return std::nullopt;
}

ExprId ExpressionBuilder::name(const Node& node, Expected expected) {
  if (const auto axis = find_axis(node.text)) return work_.add(DType::Int64, AxisUse{*axis});
  if (const auto value = find_parameter(node.text)) {
    return work_.add(parameter_types_[*value % parameter_types_.size()],
                     ReducerParameter{static_cast<uint32_t>(*value)});
  }
  if (node.text == "true" || node.text == "false") {
    return work_.add(DType::Bool, IntegerConstant{node.text == "true" ? 1 : 0});
  }
  if (is_number_name(node.text)) return literal(node, false, expected);
  const auto size = work_.sizes.find(node.text);
  if (size != work_.sizes.end()) return work_.add(DType::Int64, VariableUse{size->second});
  if (work_.tensors.contains(node.text)) return read(node, {});
  fail_unknown(node);
}

void ExpressionBuilder::fail_unknown(const Node& node) const {
  std::vector<std::string_view> known;
  for (const auto& [name, axis] : reduced_) {
    known.push_back(name);
  }
  known.insert(known.end(), left_.names.begin(), left_.names.end());
  for (const auto& [name, size] : work_.sizes) {
    known.push_back(name);
  }
  for (const auto& [name, tensor] : work_.tensors) {
    known.push_back(name);
  }
  for (const ReducerValue& value : parameters_)
    known.push_back(value.name);
  if (std::find(known.begin(), known.end(), node.text) != known.end()) {
    work_.source.refuse(node.place, "{} is a number, not a tensor, and has no elements", node.text);
  }
  const std::string_view near = nearest(node.text, known);
  if (near.empty() && left_.stage.empty() && parameters_.empty()) {
    const std::string_view name = node.text.substr(0, 64);
    work_.source.refuse(node.place,
                        "unknown size {}; one that no argument has is declared before, as size {}",
                        name, name);
  }
  work_.source.refuse(node.place, "unknown name {}{}", node.text.substr(0, 64),
                      near.empty() ? "" : fmt::format("; did you mean {}", near));
}

TensorId ExpressionBuilder::tensor(const Node& node, std::span<const int> indices) {
  const auto found = work_.tensors.find(node.text);
  if (found == work_.tensors.end()) fail_unknown(node);
  const auto state = work_.states.find(node.text);
  if (state != work_.states.end()) {
    // At the current step the name means what the block has computed for it already.
    const auto update = work_.updates.find(node.text);
    const size_t time = work_.time_dimension;
    const bool now = time < indices.size() && at(indices[time]).kind == Node::Kind::Name &&
                     std::find(left_.names.begin(), left_.names.end(), at(indices[time]).text) !=
                         left_.names.end();
    return now && update != work_.updates.end() ? update->second : state->second;
  }
  if (!found->second.id) {
    if (node.text == left_.stage && indices.size() == left_.names.size())
      fail_recurrence(node, indices);
    work_.source.refuse(node.place, "{} is read before it is computed", node.text);
  }
  return *found->second.id;
}

/// C[i] = C[i - 1] + ... outside of a scan: the text of the scan it is meant to be.
void ExpressionBuilder::fail_recurrence(const Node& node, std::span<const int> indices) const {
  const auto is_axis = [&](size_t d) {
    const Node& index = at(indices[d]);
    return index.kind == Node::Kind::Name && index.text == left_.names[d];
  };
  size_t time = 0;
  while (time < indices.size() && is_axis(time))
    ++time;
  if (time == indices.size()) {
    work_.source.refuse(node.place,
                        "{} reads itself, at the element it computes; give the value before "
                        "another name",
                        node.text);
  }
  const Node& index = at(indices[time]);
  const bool is_reverse = index.kind == Node::Kind::Apply && index.op == Operator::Add;
  const std::string first = is_reverse
                                ? text_of(work_.definition, work_.names,
                                          work_.tensors.find(node.text)->second.shape[time]) +
                                      " - 1"
                                : "0";
  std::vector<std::string> initial = left_.names;
  initial[time] = first;
  work_.source.refuse(node.place,
                      "{} reads itself; what follows from its earlier elements is a scan, as in "
                      "scan {}{} {{ {}[{}] = ...  {}[{}] = ... }}",
                      node.text, left_.names[time], is_reverse ? " reverse" : "", node.text,
                      fmt::join(initial, ", "), node.text, fmt::join(left_.names, ", "));
}

/// A tensor at indices; their types are checked as indices' are.
ExprId ExpressionBuilder::read(const Node& node, std::span<const int> indices) {
  const TensorId id = tensor(node, indices);
  const size_t rank = work_.tensors.find(node.text)->second.shape.size();
  if (indices.size() != rank) {
    work_.source.refuse(node.place, "{} has {} dimension{}, but is read with {} {}", node.text,
                        rank, rank == 1 ? "" : "s", indices.size(),
                        indices.size() == 1 ? "index" : "indices");
  }
  Read read = {id, {}};
  for (const int expr : indices) {
    read.indices.push_back(index(expr));
  }
  return work_.add(work_.tensors.find(node.text)->second.type, std::move(read));
}

ExprId ExpressionBuilder::call(const Node& node, Expected expected) {
  if (const auto type = find_dtype(node.text)) return cast(node, *type);
  if (const auto op = find_operator(node.text)) return apply(node, *op, expected);
  if (find_combiner(node.text)) {
    work_.source.refuse(node.place, "{} reduces over axes: write {}[k < n](...)", node.text,
                        node.text);
  }
  std::vector<std::string_view> known;
  for (const OperatorRow& row : operator_table()) {
    known.push_back(row.spelling);
  }
  const std::string_view near = nearest(node.text, known);
  work_.source.refuse(node.place, "unknown function {}{}", node.text.substr(0, 64),
                      work_.tensors.contains(node.text)
                          ? fmt::format("; {} is a tensor: write {}[...]", node.text, node.text)
                      : near.empty() ? "; docs/language.md lists the functions"
                                     : fmt::format("; did you mean {}", near));
}

/// float16(0.5) is a literal of that type, rounded once; of anything else it is a cast.
ExprId ExpressionBuilder::cast(const Node& node, DType type) {
  if (node.children.size() != 1) {
    work_.source.refuse(node.place, "{} takes 1 operand, but got {}", type, node.children.size());
  }
  bool negative = false;
  if (const Node* number = as_literal(node.children[0], negative)) {
    return literal(*number, negative, type);
  }
  const ExprId operand = build(node.children[0], std::nullopt);
  return work_.add(type, CastTo{operand});
}

ExprId ExpressionBuilder::apply(const Node& node, Operator op, Expected expected) {
  const OperatorRow& row = row_of(op);
  if (static_cast<int>(node.children.size()) != row.arity) {
    work_.source.refuse(node.place, "{} takes {} operand{}, but got {}", row.spelling, row.arity,
                        row.arity == 1 ? "" : "s", node.children.size());
  }
  const Expected shared = operand_type(op, node.children, expected);
  Operation operation = {op, {}};
  std::vector<DType> types;
  for (size_t i = 0; i < node.children.size(); ++i) {
    const bool condition = row.type_rule == TypeRule::Choose && i == 0;
    operation.operands.push_back(build(node.children[i], condition ? DType::Bool : shared));
    types.push_back(work_.definition.expressions[operation.operands[i]].type);
  }
  // The table's own sentence would name types; the way out is another operator.
  if (op == Operator::Div && std::all_of(types.begin(), types.end(), is_int)) {
    work_.source.refuse(node.place,
                        "/ divides floating numbers; write // to round down or truncdiv to round "
                        "to zero, or cast");
  }
  try {
    return work_.add(result_type(op, types), std::move(operation));
  } catch (Error& error) {
    work_.source.locate(error, node.place);
    throw;
  }
}

ExpressionBuilder::Expected ExpressionBuilder::operand_type(Operator op,
                                                            std::span<const int> operands,
                                                            Expected expected) {
  const TypeRule rule = row_of(op).type_rule;
  if (rule == TypeRule::Logic) return DType::Bool;
  for (size_t i = rule == TypeRule::Choose ? 1 : 0; i < operands.size(); ++i) {
    if (const Expected type = natural(operands[i])) return type;
  }
  if (!result_is_operand_type(rule)) return std::nullopt;
  return expected;
}

ExpressionBuilder::Expected ExpressionBuilder::natural(int node) {
  const auto known = natural_.find(node);
  if (known != natural_.end()) return known->second;
  return natural_[node] = natural_of(at(node));
}

ExpressionBuilder::Expected ExpressionBuilder::natural_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::Integer:
    case Node::Kind::Float: return std::nullopt;
    case Node::Kind::Name:
      if (find_axis(node.text)) return DType::Int64;
      if (const auto value = find_parameter(node.text)) {
        return parameter_types_[*value % parameter_types_.size()];
      }
      if (node.text == "true" || node.text == "false") return DType::Bool;
      if (work_.sizes.contains(node.text)) return DType::Int64;
      [[fallthrough]];
    case Node::Kind::Index: {
      const auto tensor = work_.tensors.find(node.text);
      return tensor == work_.tensors.end() ? std::nullopt : Expected(tensor->second.type);
    }
    case Node::Kind::Reduce:
      if (const auto own = find_reducer(work_, node.text)) {
        const std::vector<DType>& types = work_.definition.reducers[own->id].types;
        return types[std::min<size_t>(own->output.value_or(0), types.size() - 1)];
      }
      return natural(node.children[node.ranges]);
    case Node::Kind::Call:
      if (const auto type = find_dtype(node.text)) return type;
      break;
    case Node::Kind::Apply: break;
  }
  const auto op = node.kind == Node::Kind::Apply ? node.op : find_operator(node.text);
  if (!op) return std::nullopt;
  const TypeRule rule = row_of(*op).type_rule;
  if (rule == TypeRule::Compare || rule == TypeRule::FloatTest) return DType::Bool;
  if (rule == TypeRule::FromBits) return type_of_bits(*op);
  if (rule == TypeRule::Bits) {
    return bits_type(node.children.empty() ? DType::Float32
                                           : natural(node.children[0]).value_or(DType::Float32));
  }
  return operand_type(*op, node.children, std::nullopt);
}

std::vector<ExprId> ExpressionBuilder::tuple(int id) {
  const Node& node = at(id);
  Reduction reduction = reduction_by(node);
  add_values(node, std::nullopt, true, reduction);
  std::vector<ExprId> results;
  const std::vector<DType> types = work_.definition.reducers[reduction.reducer].types;
  for (; reduction.output < types.size(); ++reduction.output)
    results.push_back(work_.add(types[reduction.output], reduction));
  return results;
}

ExprId ExpressionBuilder::reduction(const Node& node, Expected expected, bool is_whole) {
  Reduction reduction = reduction_by(node);
  const size_t values = work_.definition.values_of(reduction);
  if (values > 1 && !find_reducer(work_, node.text)->output) {
    work_.source.refuse(node.place,
                        "{} gives {} values; name as many tensors on the left, or take one of "
                        "them, as in {}.v0[...]",
                        node.text, values, node.text);
  }
  add_values(node, expected, is_whole, reduction);
  if (!reduction.combiner) {
    const DType type = work_.definition.reducers[reduction.reducer].types[reduction.output];
    return work_.add(type, std::move(reduction));
  }
  const DType type = work_.definition.expressions[reduction.sources[0]].type;
  try {
    const DType types[] = {type, type};
    const DType result = result_type(row_of(*reduction.combiner).op, types);
    return work_.add(result, std::move(reduction));
  } catch (Error& error) {
    work_.source.locate(error, node.place);
    throw;
  }
}

/// The reducer that a name means, and which result of it.
Reduction ExpressionBuilder::reduction_by(const Node& node) {
  Reduction reduction;
  if (const auto own = find_reducer(work_, node.text)) {
    reduction.reducer = own->id;
    reduction.output = own->output.value_or(0);
    const size_t values = work_.definition.values_of(reduction);
    if (reduction.output < values) return reduction;
    work_.source.refuse(node.place, "{} asks for value {}, but there {} {}", node.text,
                        reduction.output, values == 1 ? "is" : "are", values);
  }
  reduction.combiner = find_combiner(node.text);
  if (reduction.combiner) return reduction;
  std::vector<std::string_view> known;
  for (const CombinerRow& row : combiner_table())
    known.push_back(row.spelling);
  for (const auto& [name, id] : work_.reducers)
    known.push_back(name);
  work_.source.refuse(node.place, "unknown reducer {}{}", node.text.substr(0, 64),
                      suggestion(node.text, known));
}

void ExpressionBuilder::add_values(const Node& node, Expected expected, bool is_whole,
                                   Reduction& reduction) {
  if (node.ranges == 0) {
    work_.source.refuse(node.place, "{} reduces over no axis; write {}[k < n](...)", node.text,
                        node.text);
  }
  const std::span<const int> children = node.children;
  for (const int range : children.first(node.ranges))
    reduction.axes.push_back(this->range(range, is_whole));
  std::vector<DType> types;
  if (!reduction.combiner) types = work_.definition.reducers[reduction.reducer].types;
  const auto wanted = [&](size_t value) -> Expected {
    if (value < types.size()) return types[value];
    const bool logic =
        reduction.combiner && row_of(row_of(*reduction.combiner).op).type_rule == TypeRule::Logic;
    return logic ? DType::Bool : expected;
  };
  size_t next = node.ranges;
  for (size_t i = 0; i < node.sources; ++i)
    reduction.sources.push_back(build(children[next++], wanted(i)));
  if (node.has_condition) reduction.condition = build(children[next++], DType::Bool);
  // Axes are known in sources and condition, not in init.
  reduced_.resize(reduced_.size() - reduction.axes.size());
  if (types.empty()) types = {work_.definition.expressions[reduction.sources[0]].type};
  for (size_t i = 0; next < children.size(); ++i)
    reduction.init.push_back(build(children[next++], wanted(i)));
}

ExprId ExpressionBuilder::of_reducer(int node, DType expected,
                                     std::span<const ReducerValue> parameters,
                                     std::span<const DType> types) {
  parameters_ = parameters;
  parameter_types_ = types;
  return build(node, expected);
}

std::optional<size_t> ExpressionBuilder::find_parameter(std::string_view name) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return i;
  }
  return std::nullopt;
}

/// k < n, or 1 <= k < n
AxisId ExpressionBuilder::range(int id, bool of_whole_body) {
  const Node& less = at(id);
  int lower = -1;
  const Node* name = nullptr;
  if (less.kind == Node::Kind::Apply && less.op == Operator::Less) {
    name = &at(less.children[0]);
    if (name->kind == Node::Kind::Apply && name->op == Operator::LessEqual) {
      lower = name->children[0];
      name = &at(name->children[1]);
    }
  }
  if (name == nullptr || name->kind != Node::Kind::Name) {
    work_.source.refuse(less.place, "expected a range such as k < n or 1 <= k < n");
  }
  if (find_axis(name->text) || work_.sizes.contains(name->text)) {
    work_.source.refuse(name->place, "{} is {} already; give the axis another name", name->text,
                        find_axis(name->text) ? "an axis" : "a size");
  }
  const ExprId minimum = lower < 0 ? work_.integer(0) : index(lower);
  const ExprId extent =
      lower < 0 ? index(less.children[1]) : extent_of(less.children[1], lower, minimum);
  const std::string text(name->text);
  // The outputs of one stage reduce over the same axes.
  const auto before = of_whole_body ? whole_.find(text) : whole_.end();
  const AxisId axis = before != whole_.end()
                          ? before->second
                          : work_.add_axis(AxisKind::Reduce, text, minimum, extent);
  if (of_whole_body) whole_.emplace(text, axis);
  reduced_.emplace_back(text, axis);
  return axis;
}

/// upper - lower. Where the text says lower + x, it is x.
ExprId ExpressionBuilder::extent_of(int upper, int lower, ExprId minimum) {
  const Node& end = at(upper);
  if (end.kind == Node::Kind::Apply && end.op == Operator::Add &&
      same_text(end.children[0], lower)) {
    return index(end.children[1]);
  }
  const ExprId last = index(upper);
  const auto first_value = work_.constant(minimum);
  const auto last_value = work_.constant(last);
  int64_t extent = 0;
  if (first_value && last_value && !__builtin_sub_overflow(*last_value, *first_value, &extent)) {
    return work_.integer(extent);
  }
  return work_.add(DType::Int64, Operation{Operator::Sub, {last, minimum}});
}

bool ExpressionBuilder::same_text(int a, int b) const {
  const Node& x = at(a);
  const Node& y = at(b);
  return x.kind == y.kind && x.text == y.text && x.op == y.op &&
         std::equal(x.children.begin(), x.children.end(), y.children.begin(), y.children.end(),
                    [this](int p, int q) { return same_text(p, q); });
}

}  // namespace kiln::language::syntax
