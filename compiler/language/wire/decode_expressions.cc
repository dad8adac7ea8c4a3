// Decodes expressions in their order, each from earlier ones, so a definition has no cycles and one
// sweep gives every type. An error says in which stage the expression stands first.
//
//   operation add [3, 5]  ->  Operation{Add, {3, 5}} of the type of both
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/language/suggest.h"
#include "compiler/language/wire/decode_parts.h"
#include "runtime/core/small_float.h"

namespace kiln::language {
namespace {

template <typename Table>
std::vector<std::string_view> spellings(const Table& table) {
  std::vector<std::string_view> result;
  for (const auto& row : table) {
    result.push_back(row.spelling);
  }
  return result;
}

/// Whether an integer can be a constant of the type. uint64 keeps its bits in an int64.
bool fits(DType type, int64_t value) {
  if (type == DType::Bool) return value == 0 || value == 1;
  if (bits_of(type) == 64) return true;
  const int64_t values = int64_t{1} << bits_of(type);
  if (is_unsigned_int(type)) return value >= 0 && value < values;
  return value >= -values / 2 && value < values / 2;
}

// Sums of a few of them stay below the end of int64: spelled out, shared parts grow exponentially.
constexpr int64_t kMostNodes = std::numeric_limits<int64_t>::max() / 64;

class ExpressionDecoder {
 public:
  ExpressionDecoder(const v1::Definition& wire, Checked& checked)
      : wire_(wire), checked_(checked), definition_(checked.kernel.definition) {}

  void decode() {
    for (int i = 0; i < wire_.expressions_size(); ++i) {
      id_ = static_cast<ExprId>(i);
      facts_ = {};
      try {
        definition_.expressions.push_back(decode(wire_.expressions(i)));
        finish();
      } catch (Error& error) {
        say_where(error);
        throw;
      }
      checked_.facts.expressions.push_back(facts_);
    }
  }

 private:
  Expression decode(const v1::Expression& wire) {
    switch (wire.kind_case()) {
      case v1::Expression::kInteger: return integer(wire.integer());
      case v1::Expression::kFloating: return floating(wire.floating());
      case v1::Expression::kVariable:
        in_range("size", wire.variable(), definition_.variables.size());
        return {DType::Int64, VariableUse{wire.variable()}};
      case v1::Expression::kAxis:
        in_range("axis", wire.axis(), definition_.axes.size());
        facts_.last_axis = wire.axis();
        return {DType::Int64, AxisUse{wire.axis()}};
      case v1::Expression::kOperation: return operation(wire.operation());
      case v1::Expression::kCast: return cast(wire.cast());
      case v1::Expression::kRead: return read(wire.read());
      case v1::Expression::kReduction: return reduction(wire.reduction());
      case v1::Expression::kParameter: return parameter(wire.parameter());
      case v1::Expression::KIND_NOT_SET: break;
    }
    malformed("expression {} is empty", id_);
  }

  Expression integer(const v1::IntegerConstant& wire) {
    const DType type = type_of(wire.type());
    if (is_float(type)) malformed("an integer constant cannot be {}", type);
    if (!fits(type, wire.value())) {
      fail(ErrorKind::InvalidArgument, "CONSTANT_RANGE", "{} does not fit {}", wire.value(), type);
    }
    return {type, IntegerConstant{wire.value()}};
  }

  Expression floating(const v1::FloatConstant& wire) {
    const DType type = type_of(wire.type());
    if (!is_float(type)) malformed("a floating constant cannot be {}", type);
    // There is one nan: the text form shows no sign of it, and ids must not depend on one.
    const double value =
        std::isnan(wire.value()) ? std::numeric_limits<double>::quiet_NaN() : wire.value();
    if (is_past_range(type, value))
      fail(ErrorKind::InvalidArgument, "CONSTANT_RANGE", "{} does not fit {}", value, type);
    return {type, FloatConstant{round_to(type, value)}};
  }

  Expression operation(const v1::Operation& wire) {
    const auto op = find_operator(wire.operator_());
    if (!op) {
      const std::string shown = wire.operator_().substr(0, 64);
      const auto known = spellings(operator_table());
      const std::string_view near = nearest(shown, known);
      fail(ErrorKind::InvalidArgument, "UNKNOWN_OPERATOR", "unknown operator {}{}", shown,
           near.empty() ? "" : fmt::format("; did you mean {}", near));
    }
    const OperatorRow& row = row_of(*op);
    if (wire.operands_size() != row.arity) {
      malformed("{} takes {} operand{}, but got {}", row.spelling, row.arity,
                row.arity == 1 ? "" : "s", wire.operands_size());
    }
    Operation operation = {*op, {}};
    std::vector<DType> types;
    for (const uint32_t operand : wire.operands()) {
      use(operand);
      operation.operands.push_back(operand);
      types.push_back(definition_.expressions[operand].type);
    }
    const DType type = result_type(*op, types);
    return {type, std::move(operation)};
  }

  Expression cast(const v1::Cast& wire) {
    const DType type = type_of(wire.type());
    use(wire.operand());
    return {type, CastTo{wire.operand()}};
  }

  Expression read(const v1::Read& wire) {
    const TensorId tensor = {wire.tensor().stage(), wire.tensor().output()};
    in_range("stage", tensor.stage, definition_.stages.size());
    in_range(fmt::format("output of {}", checked_.stage(tensor.stage)), tensor.output,
             output_count(definition_.stages[tensor.stage]));
    // Its type must be known, and a cycle is impossible this way. That of a scatter is its base's.
    TensorId typed = tensor;
    while (const auto* scatter = std::get_if<Scatter>(&definition_.stages[typed.stage])) {
      if (scatter->update >= id_) {
        malformed("expression {} reads {} before its update stands", id_, checked_.tensor(tensor));
      }
      typed = scatter->base;
    }
    if (const auto* compute = std::get_if<Compute>(&definition_.stages[typed.stage])) {
      if (compute->bodies[typed.output] >= id_) {
        malformed("expression {} reads {} before its body stands", id_, checked_.tensor(tensor));
      }
    }
    check_indices(tensor, wire);
    facts_.has_read = true;
    Read read = {tensor, {wire.indices().begin(), wire.indices().end()}};
    return {definition_.type_of(tensor), std::move(read)};
  }

  void check_indices(TensorId tensor, const v1::Read& wire) {
    const int rank = static_cast<int>(definition_.shape_of(tensor).size());
    const std::string name = checked_.tensor(tensor);
    if (wire.indices_size() != rank) {
      fail(ErrorKind::InvalidArgument, "READ_RANK", "{} has {} dimension{}, but is read with {} {}",
           name, rank, rank == 1 ? "" : "s", wire.indices_size(),
           wire.indices_size() == 1 ? "index" : "indices");
    }
    for (int i = 0; i < rank; ++i) {
      use(wire.indices(i));
      const DType type = definition_.expressions[wire.indices(i)].type;
      if (type != DType::Int64) {
        fail(ErrorKind::InvalidArgument, "INDEX_TYPE",
             "index {} of {} is {}, but must be int64; cast it", i, name, type);
      }
    }
  }

  Expression parameter(const v1::ReducerParameter& wire) {
    facts_.has_parameter = true;
    return {type_of(wire.type()), ReducerParameter{wire.position()}};
  }

  Expression reduction(const v1::Reduction& wire) {
    Reduction reduction = combination(wire);
    const std::string name(checked_.reducer(reduction));
    for (const uint32_t source : wire.sources()) {
      use(source);
      reduction.sources.push_back(source);
    }
    add_axes(wire, name, reduction);
    if (wire.has_condition()) {
      use(wire.condition());
      reduction.condition = wire.condition();
    }
    for (const uint32_t init : wire.init()) {
      use(init);
      reduction.init.push_back(init);
    }
    facts_.has_reduction = true;
    const DType type = check_values(reduction, name);
    return {type, std::move(reduction)};
  }

  /// How it combines, and which of the results it gives.
  Reduction combination(const v1::Reduction& wire) {
    Reduction reduction;
    reduction.output = wire.output();
    if (!wire.combiner().empty()) {
      reduction.combiner = find_combiner(wire.combiner());
      if (!reduction.combiner) {
        const std::string shown = wire.combiner().substr(0, 64);
        fail(ErrorKind::InvalidArgument, "UNKNOWN_COMBINER", "unknown reducer {}{}", shown,
             suggestion(shown, spellings(combiner_table())));
      }
    } else {
      in_range("reducer", wire.reducer(), definition_.reducers.size());
      reduction.reducer = wire.reducer();
      const Reducer& reducer = definition_.reducers[reduction.reducer];
      for (const auto* list : {&reducer.results, &reducer.identities}) {
        for (const ExprId expr : *list) {
          if (expr >= id_) {
            malformed("expression {} reduces by {} before its results stand", id_,
                      checked_.reducer(reduction));
          }
          facts_.nodes =
              std::min(facts_.nodes + checked_.facts.expressions[expr].nodes, kMostNodes);
        }
      }
    }
    in_range(fmt::format("result of {}", checked_.reducer(reduction)), reduction.output,
             definition_.values_of(reduction));
    return reduction;
  }

  void add_axes(const v1::Reduction& wire, const std::string& name, Reduction& reduction) {
    if (wire.axes().empty()) {
      fail(ErrorKind::InvalidArgument, "REDUCTION_AXES", "{} reduces over no axis", name);
    }
    check_limit(name, "axes", wire.axes_size(), checked_.limits.dimensions);
    for (const uint32_t axis : wire.axes()) {
      in_range("axis", axis, definition_.axes.size());
      if (definition_.axes[axis].kind != AxisKind::Reduce) fail_reduced_axis(name, axis);
      if (std::find(reduction.axes.begin(), reduction.axes.end(), axis) != reduction.axes.end()) {
        fail(ErrorKind::InvalidArgument, "REDUCTION_AXES", "{} reduces over {} twice", name,
             checked_.axis(axis));
      }
      reduction.axes.push_back(axis);
    }
  }

  /// The type of the result; sources and init are what the reducer takes.
  DType check_values(const Reduction& reduction, const std::string& name) {
    const size_t values = definition_.values_of(reduction);
    if (reduction.sources.size() != values) {
      fail(ErrorKind::InvalidArgument, "REDUCTION_SOURCES", "{} combines {} value{}, but got {}",
           name, values, values == 1 ? "" : "s", reduction.sources.size());
    }
    if (!reduction.init.empty() && reduction.init.size() != values) {
      fail(ErrorKind::InvalidArgument, "REDUCTION_INIT",
           "{} combines {} value{}, but its init gives {}", name, values, values == 1 ? "" : "s",
           reduction.init.size());
    }
    if (reduction.condition && type_at(*reduction.condition) != DType::Bool) {
      fail(ErrorKind::InvalidArgument, "REDUCTION_CONDITION",
           "the condition of {} is {}, but must be bool; compare it with something", name,
           type_at(*reduction.condition));
    }
    std::vector<DType> types;
    if (reduction.combiner) {
      const DType both[] = {type_at(reduction.sources[0]), type_at(reduction.sources[0])};
      types = {result_type(row_of(*reduction.combiner).op, both)};
    } else {
      types = definition_.reducers[reduction.reducer].types;
      for (size_t i = 0; i < values; ++i)
        check_value(reduction.sources[i], types[i], fmt::format("value {} of {}", i, name));
    }
    for (size_t i = 0; i < reduction.init.size(); ++i)
      check_value(reduction.init[i], types[i], fmt::format("the init of value {} of {}", i, name));
    return types[reduction.output];
  }

  void check_value(ExprId expr, DType wanted, const std::string& what) {
    if (type_at(expr) == wanted) return;
    fail(ErrorKind::InvalidArgument, "REDUCTION_TYPE", "{} is {}, but must be {}; cast it", what,
         type_at(expr), wanted);
  }

  DType type_at(ExprId expr) const { return definition_.expressions[expr].type; }

  [[noreturn]] void fail_reduced_axis(std::string_view reducer, AxisId axis) {
    if (definition_.axes[axis].kind == AxisKind::Time) {
      fail(ErrorKind::InvalidArgument, "REDUCTION_AXES",
           "{}: {} is the time axis of a scan; make an axis for it with reduce_axis", reducer,
           checked_.axis(axis));
    }
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      const auto* compute = std::get_if<Compute>(&definition_.stages[id]);
      if (compute == nullptr) continue;
      if (std::find(compute->axes.begin(), compute->axes.end(), axis) == compute->axes.end())
        continue;
      fail(ErrorKind::InvalidArgument, "REDUCTION_AXES",
           "{}: {} is a data axis of {}; make one with reduce_axis", reducer, checked_.axis(axis),
           checked_.stage(id));
    }
    fail(ErrorKind::InvalidArgument, "REDUCTION_AXES",
         "{}: {} is a data axis; make one with reduce_axis", reducer, checked_.axis(axis));
  }

  DType type_of(int number) {
    const auto type = dtype_from_number(number);
    if (!type) malformed("expression {} has the unknown type {}", id_, number);
    return *type;
  }

  /// An operand: it must stand earlier, and what holds for it holds for this expression.
  void use(uint32_t operand) {
    if (operand >= id_) {
      malformed("expression {} refers to expression {}, but only earlier ones exist", id_, operand);
    }
    const Facts::Expr& part = checked_.facts.expressions[operand];
    // Found while decoding, so that no later walk has to, and every recursion is bounded.
    facts_.depth = std::max(facts_.depth, part.depth + 1);
    facts_.nodes = std::min(facts_.nodes + part.nodes, kMostNodes);
    facts_.last_axis = std::max(facts_.last_axis, part.last_axis);
    facts_.has_read = facts_.has_read || part.has_read;
    facts_.has_reduction = facts_.has_reduction || part.has_reduction;
    facts_.has_parameter = facts_.has_parameter || part.has_parameter;
  }

  void finish() { check_limit("an expression", "levels", facts_.depth, checked_.limits.depth); }

  void in_range(std::string_view what, uint32_t id, size_t count) {
    if (id >= count) {
      malformed("expression {} refers to {} {}, but there are {}", id_, what, id, count);
    }
  }

  /// Finds the first stage whose body has the expression at fault in it.
  void say_where(Error& error) {
    // The checked tables end at the error, so what stands behind it is looked at on the wire.
    std::vector<bool> above(static_cast<size_t>(wire_.expressions_size()));
    above[id_] = true;
    for (int i = static_cast<int>(id_) + 1; i < wire_.expressions_size(); ++i) {
      const v1::Expression& wire = wire_.expressions(i);
      const auto marked = [&](uint32_t id) { return id < above.size() && above[id]; };
      above[i] =
          std::any_of(wire.operation().operands().begin(), wire.operation().operands().end(),
                      marked) ||
          std::any_of(wire.read().indices().begin(), wire.read().indices().end(), marked) ||
          (wire.has_cast() && marked(wire.cast().operand())) ||
          std::any_of(wire.reduction().sources().begin(), wire.reduction().sources().end(),
                      marked) ||
          std::any_of(wire.reduction().init().begin(), wire.reduction().init().end(), marked) ||
          (wire.reduction().has_condition() && marked(wire.reduction().condition()));
    }
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      for (const ExprId body : bodies_of(definition_.stages[id])) {
        if (!above[body]) continue;
        error.add_note(fmt::format("in stage {}", checked_.stage(id)));
        error.set_location(checked_.location(id));
        return;
      }
    }
  }

  template <typename... Args>
  [[noreturn]] void malformed(fmt::format_string<Args...> format, Args&&... args) {
    fail(ErrorKind::InvalidArgument, "MALFORMED", format, std::forward<Args>(args)...);
  }

  const v1::Definition& wire_;
  Checked& checked_;
  Definition& definition_;
  ExprId id_ = 0;
  Facts::Expr facts_;
};

}  // namespace

void decode_expressions(const v1::Definition& wire, Checked& checked) {
  ExpressionDecoder(wire, checked).decode();
}

}  // namespace kiln::language
