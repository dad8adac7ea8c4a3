// Rebuilds a kernel from its arguments on, numbering what it meets in that order; equal expressions
// are one (hash consing).
//
//   two clients, other ids, names and unused stages  ->  the same bytes, the same id, one artifact
//
// Rewrites that change no bit are done on the way, as a reducer `a + b` from 0 that is sum.
#include "compiler/language/wire/canonical.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include <fmt/format.h>
#include <xxhash.h>

#include "compiler/language/check/linear.h"
#include "compiler/language/evaluate/scalar.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/wire/decode.h"
#include "runtime/core/error.h"

namespace kiln::language {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

/// The combiner of the table that a reducer is, if it is one: `a + b` from 0.
std::optional<Combiner> combiner_like(const Definition& definition, ReducerId id) {
  const Reducer& reducer = definition.reducers[id];
  if (reducer.types.size() != 1) return std::nullopt;
  const auto* result = std::get_if<Operation>(&definition.expressions[reducer.results[0]].node);
  if (result == nullptr || result->operands.size() != 2) return std::nullopt;
  std::vector<uint32_t> positions;
  for (const ExprId operand : result->operands) {
    const auto* parameter = std::get_if<ReducerParameter>(&definition.expressions[operand].node);
    if (parameter != nullptr) positions.push_back(parameter->position);
  }
  if (positions.size() != 2 || positions[0] == positions[1]) return std::nullopt;
  // Which of two nans or zeros remains depends on the order of the operands.
  const bool any_order = !is_float(reducer.types[0]);
  if (positions[0] > positions[1] && !any_order) return std::nullopt;
  for (const CombinerRow& row : combiner_table()) {
    if (row.op != result->op) continue;
    const Scalar identity = identity_of(row.combiner, reducer.types[0]);
    const auto& given = definition.expressions[reducer.identities[0]].node;
    const auto* integer = std::get_if<IntegerConstant>(&given);
    const auto* floating = std::get_if<FloatConstant>(&given);
    const bool same = (integer != nullptr && integer->value == identity.integer) ||
                      (floating != nullptr && std::bit_cast<uint64_t>(floating->value) ==
                                                  std::bit_cast<uint64_t>(identity.floating));
    if (same) return row.combiner;
  }
  return std::nullopt;
}

/// Rebuilds a kernel from its arguments on, in the order in which things are first met.
class Canonicalizer {
 public:
  explicit Canonicalizer(const Kernel& kernel)
      : from_(kernel.definition),
        names_(kernel.names),
        variables_(from_.variables.size(), kNone),
        axes_(from_.axes.size(), kNone),
        expressions_(from_.expressions.size(), kNone),
        reducers_(from_.reducers.size(), kNone),
        stages_(from_.stages.size(), kNone) {
    to_.names.kernel = names_.kernel;
    to_.names.files = names_.files;
  }

  void run() {
    for (const TensorId parameter : from_.parameters) {
      add_with_dependencies(parameter.stage);
      to_.definition.parameters.push_back(mapped(parameter));
    }
    mark_dimensions();
  }

  Kernel take() { return std::move(to_); }

  Schedule run(const Schedule& schedule) {
    Schedule result;
    std::vector<uint32_t> axes = axes_;
    std::vector<uint32_t> stages = stages_;
    auto next_axis = static_cast<uint32_t>(to_.definition.axes.size());
    auto next_stage = static_cast<uint32_t>(to_.definition.stages.size());
    ScheduleState state(from_, names_);
    for (const Step& step : schedule.steps) {
      const bool has_place = row_of(step.kind).uses(step_fields::At);
      const auto is_kept = [&](StageId stage) { return stages[stage] != kNone; };
      // A step of what no argument needs would name a stage that is gone.
      const bool reached = is_kept(step.stage) && (!has_place || is_kept(step.at_stage)) &&
                           (step.readers.empty() || std::ranges::any_of(step.readers, is_kept));
      state.apply(step);
      while (axes.size() < state.axes().size())
        axes.push_back(reached ? next_axis++ : kNone);
      while (stages.size() < state.stages().size())
        stages.push_back(reached ? next_stage++ : kNone);
      if (!reached) continue;
      Step mapped = step;
      mapped.stage = stages[step.stage];
      for (AxisId& axis : mapped.axes) {
        axis = axes[axis];
      }
      mapped.at_stage = has_place ? stages[step.at_stage] : 0;
      mapped.at_axis = has_place ? axes[step.at_axis] : 0;
      mapped.readers.clear();
      for (const StageId reader : step.readers) {
        if (stages[reader] != kNone) mapped.readers.push_back(stages[reader]);
      }
      result.steps.push_back(std::move(mapped));
    }
    return result;
  }

 private:
  /// By hand, not by recursion: chains of stages can be long.
  void add_with_dependencies(StageId root) {
    std::vector<StageId> open = {root};
    while (!open.empty()) {
      const StageId stage = open.back();
      const std::vector<StageId> missing = missing_dependencies(stage);
      if (missing.empty()) {
        open.pop_back();
        if (stages_[stage] == kNone) add(stage);
      } else {
        open.insert(open.end(), missing.rbegin(), missing.rend());
      }
    }
  }

  /// What the stage reads that has no number yet, in the order of its expressions.
  std::vector<StageId> missing_dependencies(StageId id) {
    std::vector<StageId> found;
    if (stages_[id] != kNone) return found;
    const auto need = [&](StageId stage) {
      const bool listed = std::find(found.begin(), found.end(), stage) != found.end();
      if (stages_[stage] == kNone && !listed) found.push_back(stage);
    };
    if (const auto* scan = std::get_if<Scan>(&from_.stages[id])) {
      for (const auto* list : {&scan->init, &scan->state, &scan->update}) {
        for (const TensorId tensor : *list) {
          need(tensor.stage);
        }
      }
    } else {
      const auto cached = reads_.find(id);
      if (cached == reads_.end()) {
        if (const auto* scatter = std::get_if<Scatter>(&from_.stages[id])) {
          reads_[id].push_back(scatter->base.stage);
        }
        for (const ExprId body : bodies_of(from_.stages[id])) {
          collect_reads(body, reads_[id]);
        }
        for (const ExprId expr : touched_) {
          seen_[expr] = false;
        }
        touched_.clear();
      }
      for (const StageId stage : reads_[id]) {
        need(stage);
      }
    }
    return found;
  }

  void collect_reads(ExprId expr, std::vector<StageId>& reads) {
    if (seen_.empty()) seen_.resize(from_.expressions.size());
    if (seen_[expr]) return;
    seen_[expr] = true;
    touched_.push_back(expr);
    const auto& node = from_.expressions[expr].node;
    if (const auto* read = std::get_if<Read>(&node)) {
      if (std::find(reads.begin(), reads.end(), read->tensor.stage) == reads.end()) {
        reads.push_back(read->tensor.stage);
      }
      for (const ExprId index : read->indices) {
        collect_reads(index, reads);
      }
    } else if (const auto* operation = std::get_if<Operation>(&node)) {
      for (const ExprId operand : operation->operands) {
        collect_reads(operand, reads);
      }
    } else if (const auto* cast = std::get_if<CastTo>(&node)) {
      collect_reads(cast->operand, reads);
    } else if (const auto* reduction = std::get_if<Reduction>(&node)) {
      for (const AxisId axis : reduction->axes) {
        collect_reads(from_.axes[axis].minimum, reads);
        collect_reads(from_.axes[axis].extent, reads);
      }
      for (const ExprId part : parts_of(*reduction))
        collect_reads(part, reads);
    }
  }

  void add(StageId id) {
    Stage stage =
        std::visit([&](const auto& kind) -> Stage { return rebuilt(kind); }, from_.stages[id]);
    stages_[id] = static_cast<StageId>(to_.definition.stages.size());
    to_.definition.stages.push_back(std::move(stage));
    to_.names.stages.push_back(names_.stages[id]);
    to_.names.stage_lines.push_back(names_.stage_lines[id]);
    for (uint32_t output = 0; output < output_count(from_.stages[id]); ++output) {
      const auto name = names_.tensors.find({id, output});
      if (name != names_.tensors.end()) to_.names.tensors[{stages_[id], output}] = name->second;
    }
  }

  Placeholder rebuilt(const Placeholder& placeholder) {
    return {placeholder.type, mapped(placeholder.shape)};
  }

  Compute rebuilt(const Compute& compute) {
    Compute result;
    for (const AxisId axis : compute.axes) {
      result.axes.push_back(mapped_axis(axis));
    }
    result.bodies = mapped(compute.bodies);
    return result;
  }

  /// The bounds of the time axis follow from the lists, however the client wrote them; the inputs
  /// follow from what is read.
  Scan rebuilt(const Scan& scan) {
    const int64_t steps = *constant_value(from_, from_.shape_of(scan.init[0])[scan.dimension]);
    const ExprId all = from_.shape_of(scan.update[0])[scan.dimension];
    const ExprId minimum = interned({DType::Int64, IntegerConstant{steps}});
    ExprId extent = 0;
    if (const auto total = constant_value(from_, all)) {
      extent = interned({DType::Int64, IntegerConstant{*total - steps}});
    } else {
      extent = interned({DType::Int64, Operation{Operator::Sub, {mapped(all), minimum}}});
    }
    Scan result;
    result.axis = new_axis(scan.axis, {AxisKind::Time, minimum, extent});
    result.init = mapped(scan.init);
    result.update = mapped(scan.update);
    result.state = mapped(scan.state);
    result.dimension = scan.dimension;
    result.reverse = scan.reverse;
    return result;
  }

  Scatter rebuilt(const Scatter& scatter) {
    Scatter result;
    for (const AxisId axis : scatter.axes) {
      result.axes.push_back(mapped_axis(axis));
    }
    result.base = mapped(scatter.base);
    result.indices = mapped(scatter.indices);
    result.update = mapped(scatter.update);
    result.combiner = scatter.combiner;
    return result;
  }

  AxisId mapped_axis(AxisId id) {
    if (axes_[id] != kNone) return axes_[id];
    const Axis& axis = from_.axes[id];
    const ExprId minimum = mapped(axis.minimum);
    const ExprId extent = mapped(axis.extent);
    return new_axis(id, {axis.kind, minimum, extent});
  }

  AxisId new_axis(AxisId id, const Axis& axis) {
    axes_[id] = static_cast<AxisId>(to_.definition.axes.size());
    to_.definition.axes.push_back(axis);
    to_.names.axes.push_back(names_.axes[id]);
    return axes_[id];
  }

  TensorId mapped(TensorId tensor) const { return {stages_[tensor.stage], tensor.output}; }
  std::vector<TensorId> mapped(const std::vector<TensorId>& tensors) const {
    std::vector<TensorId> result;
    for (const TensorId tensor : tensors) {
      result.push_back(mapped(tensor));
    }
    return result;
  }
  std::vector<ExprId> mapped(const std::vector<ExprId>& expressions) {
    std::vector<ExprId> result;
    for (const ExprId expr : expressions) {
      result.push_back(mapped(expr));
    }
    return result;
  }

  ExprId mapped(ExprId id) {
    if (expressions_[id] != kNone) return expressions_[id];
    const Expression& expression = from_.expressions[id];
    Expression result = {expression.type, std::visit(
                                              [&](const auto& node) -> decltype(Expression::node) {
                                                return rebuilt_node(node);
                                              },
                                              expression.node)};
    return expressions_[id] = interned(std::move(result));
  }

  IntegerConstant rebuilt_node(const IntegerConstant& constant) { return constant; }
  FloatConstant rebuilt_node(const FloatConstant& constant) { return constant; }
  VariableUse rebuilt_node(const VariableUse& use) {
    VariableId& id = variables_[use.variable];
    if (id == kNone) {
      id = static_cast<VariableId>(to_.definition.variables.size());
      to_.definition.variables.push_back(from_.variables[use.variable]);
      to_.names.variables.push_back(names_.variables[use.variable]);
    }
    return {id};
  }
  AxisUse rebuilt_node(const AxisUse& use) { return {mapped_axis(use.axis)}; }
  Operation rebuilt_node(const Operation& operation) {
    return {operation.op, mapped(operation.operands)};
  }
  CastTo rebuilt_node(const CastTo& cast) { return {mapped(cast.operand)}; }
  Read rebuilt_node(const Read& read) { return {mapped(read.tensor), mapped(read.indices)}; }
  ReducerParameter rebuilt_node(const ReducerParameter& parameter) { return parameter; }
  Reduction rebuilt_node(const Reduction& reduction) {
    Reduction result = {.combiner = combiner_of(from_, reduction), .output = reduction.output};
    if (!result.combiner) result.reducer = mapped_reducer(reduction.reducer);
    for (const AxisId axis : reduction.axes) {
      result.axes.push_back(mapped_axis(axis));
    }
    result.sources = mapped(reduction.sources);
    if (reduction.condition) result.condition = mapped(*reduction.condition);
    result.init = mapped(reduction.init);
    return result;
  }

  ReducerId mapped_reducer(ReducerId id) {
    if (reducers_[id] != kNone) return reducers_[id];
    const Reducer& reducer = from_.reducers[id];
    Definition single;
    single.reducers.push_back({reducer.types, mapped(reducer.identities), mapped(reducer.results)});
    const auto next = static_cast<ReducerId>(to_.definition.reducers.size());
    const auto [entry, fresh] =
        interned_reducers_.try_emplace(encode(single).reducers(0).SerializeAsString(), next);
    if (fresh) {
      to_.definition.reducers.push_back(std::move(single.reducers[0]));
      to_.names.reducers.push_back(names_.reducers[id]);
    }
    return reducers_[id] = entry->second;
  }

  /// The number of an equal expression, or a new one. Equal bytes on the wire are equal
  /// expressions.
  ExprId interned(Expression expression) {
    Definition single;
    single.expressions.push_back(expression);
    const auto next = static_cast<ExprId>(to_.definition.expressions.size());
    const auto [entry, fresh] =
        interned_.try_emplace(encode(single).expressions(0).SerializeAsString(), next);
    if (fresh) to_.definition.expressions.push_back(std::move(expression));
    return entry->second;
  }

  /// A size that is a dimension of an argument is 0 or more, whether the client said so or not.
  void mark_dimensions() {
    Definition& definition = to_.definition;
    for (const TensorId parameter : definition.parameters) {
      for (const ExprId extent : definition.shape_of(parameter)) {
        const auto* use = std::get_if<VariableUse>(&definition.expressions[extent].node);
        if (use != nullptr) definition.variables[use->variable].nonnegative = true;
      }
    }
  }

  const Definition& from_;
  const SourceMap& names_;
  Kernel to_;
  // Old position -> new one.
  std::vector<uint32_t> variables_;
  std::vector<uint32_t> axes_;
  std::vector<uint32_t> expressions_;
  std::vector<uint32_t> reducers_;
  std::vector<uint32_t> stages_;
  std::unordered_map<std::string, ExprId> interned_;
  std::unordered_map<std::string, ReducerId> interned_reducers_;
  std::unordered_map<StageId, std::vector<StageId>> reads_;
  std::vector<bool> seen_;
  std::vector<ExprId> touched_;
};

/// Names for a definition that has none.
Kernel nameless(const Definition& definition) {
  Kernel kernel = {definition, {}};
  kernel.names.variables.resize(definition.variables.size());
  kernel.names.axes.resize(definition.axes.size());
  kernel.names.stages.resize(definition.stages.size());
  kernel.names.stage_lines.resize(definition.stages.size());
  kernel.names.reducers.resize(definition.reducers.size());
  return kernel;
}

}  // namespace

std::optional<Combiner> combiner_of(const Definition& definition, const Reduction& reduction) {
  return reduction.combiner ? reduction.combiner : combiner_like(definition, reduction.reducer);
}

CanonicalKernel canonicalize(const Kernel& kernel, const Schedule& schedule) {
  Canonicalizer canonicalizer(kernel);
  canonicalizer.run();
  Schedule steps = canonicalizer.run(schedule);
  return {canonicalizer.take(), std::move(steps)};
}

std::string canonical_form(const Definition& definition) {
  const Kernel kernel = canonicalize(nameless(definition), {}).kernel;
  return encode(kernel.definition).SerializeAsString();
}

std::string canonical_form(const Definition& definition, const Schedule& schedule) {
  Schedule canonical = canonicalize(nameless(definition), schedule).schedule;
  for (Step& step : canonical.steps) {
    step.file = step.line = 0;
  }
  return encode(canonical).SerializeAsString();
}

std::string id_of(std::string_view canonical) {
  const XXH128_hash_t hash = XXH3_128bits(canonical.data(), canonical.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace kiln::language
