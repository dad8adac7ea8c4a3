// Takes a definition apart into what is measured by itself: every compute is a part, and so is a
// scan with all that runs once a step, since a cell without its scan computes nothing.
//
//   state, update, init, total = scan(..)   ->  part total(X) -> (total)
//   E = exp(..), total = sum(E), Y = E / total   ->  parts E(X), total(E), Y(E, total)
//
// A part as a kernel keeps the variables of the whole by number, so that one list of sizes serves
// all; everything else is copied as far as it is used.
#include "compiler/language/parts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/language/evaluate/evaluate.h"
#include "compiler/language/tables/operator.h"

namespace kiln::language {
namespace {

/// Where axes begin, and how long they are.
std::vector<ExprId> bounds_of(const Definition& definition, const std::vector<AxisId>& axes) {
  std::vector<ExprId> bounds;
  for (const AxisId id : axes)
    bounds.insert(bounds.end(), {definition.axes[id].minimum, definition.axes[id].extent});
  return bounds;
}

/// What an expression is made of, operands first.
std::vector<ExprId> operands_of(const Definition& definition, const Expression& expression) {
  if (const auto* operation = std::get_if<Operation>(&expression.node)) return operation->operands;
  if (const auto* cast = std::get_if<CastTo>(&expression.node)) return {cast->operand};
  if (const auto* read = std::get_if<Read>(&expression.node)) return read->indices;
  std::vector<ExprId> operands;
  if (const auto* reduction = std::get_if<Reduction>(&expression.node)) {
    operands = parts_of(*reduction);
    const std::vector<ExprId> bounds = bounds_of(definition, reduction->axes);
    operands.insert(operands.end(), bounds.begin(), bounds.end());
  }
  return operands;
}

/// Calls `see` for each expression that these are made of, once, in the order of the text. By hand,
/// not by recursion: chains can be long.
template <typename See>
void for_each_expression(const Definition& definition, std::vector<ExprId> todo, const See& see) {
  std::set<ExprId> seen;
  std::ranges::reverse(todo);  // the last is looked at first
  while (!todo.empty()) {
    const ExprId expr = todo.back();
    todo.pop_back();
    if (!seen.insert(expr).second) continue;
    const Expression& expression = definition.expressions[expr];
    see(expression);
    const std::vector<ExprId> operands = operands_of(definition, expression);
    todo.insert(todo.end(), operands.rbegin(), operands.rend());
  }
}

/// Which stages belong together, as the smallest id of each group.
class Groups {
 public:
  explicit Groups(const Definition& definition) : definition_(definition) {
    for (StageId id = 0; id < definition.stages.size(); ++id)
      reads_.push_back(reads_of(definition, id));
    group_.resize(definition.stages.size());
    std::iota(group_.begin(), group_.end(), 0U);
    for (StageId id = 0; id < definition.stages.size(); ++id) {
      if (const auto* scan = std::get_if<Scan>(&definition.stages[id])) add(id, *scan);
    }
  }

  StageId of(StageId id) const {
    while (group_[id] != id)
      id = group_[id];
    return id;
  }
  const std::vector<TensorId>& reads(StageId id) const { return reads_[id]; }

 private:
  void add(StageId id, const Scan& scan) {
    std::set<StageId> states;
    for (const TensorId state : scan.state) {
      states.insert(state.stage);
      join(id, state.stage);
    }
    for (const TensorId init : scan.init) {
      if (std::holds_alternative<Compute>(definition_.stages[init.stage])) join(id, init.stage);
    }
    std::map<StageId, bool> known;
    for (const TensorId update : scan.update) {
      join_cells(id, update.stage, states, known);
      join(id, update.stage);
    }
  }

  /// Joins to the scan what depends on its state; whether the stage does.
  bool join_cells(StageId scan, StageId id, const std::set<StageId>& states,
                  std::map<StageId, bool>& known) {
    if (states.contains(id)) return true;
    const auto [found, is_new] = known.emplace(id, false);
    if (!is_new) return found->second;
    bool depends = false;
    for (const TensorId read : reads_[id])
      depends = join_cells(scan, read.stage, states, known) || depends;
    if (depends) join(scan, id);
    return known[id] = depends;
  }

  void join(StageId a, StageId b) {
    const StageId first = std::min(of(a), of(b));
    const StageId second = std::max(of(a), of(b));
    group_[second] = first;
  }

  const Definition& definition_;
  std::vector<std::vector<TensorId>> reads_;
  std::vector<StageId> group_;
};

bool is_placeholder(const Definition& definition, StageId id) {
  return std::holds_alternative<Placeholder>(definition.stages[id]);
}

/// Copies of what a part uses, with the numbers of the new definition.
class Copies {
 public:
  Copies(const Kernel& whole, const Part& part) : whole_(whole) {
    copy_.definition.variables = whole.definition.variables;
    copy_.names.variables = whole.names.variables;
    copy_.names.kernel = part.name;
    copy_.names.files = whole.names.files;
    for (const TensorId input : part.inputs) {
      tensors_[input] = {static_cast<StageId>(copy_.definition.stages.size()), 0};
      add_placeholder(input);
    }
    for (const StageId id : part.stages) {
      const auto made = static_cast<StageId>(copy_.definition.stages.size());
      for (uint32_t output = 0; output < output_count(whole.definition.stages[id]); ++output) {
        const TensorId old{id, output};
        tensors_[old] = {made, output};
        const auto name = whole.names.tensors.find(old);
        if (name != whole.names.tensors.end()) copy_.names.tensors[{made, output}] = name->second;
      }
      // In its place before its expressions are copied: scans name stages behind them.
      copy_.definition.stages.emplace_back();
      add_name(whole.names.stages[id], id);
    }
    for (const StageId id : part.stages)
      copy_.definition.stages[tensors_.at({id, 0}).stage] = stage(whole.definition.stages[id]);
    for (const auto* tensors : {&part.inputs, &part.outputs}) {
      for (const TensorId tensor : *tensors)
        copy_.definition.parameters.push_back(tensors_.at(tensor));
    }
  }

  Kernel take() { return std::move(copy_); }

 private:
  void add_name(std::string name, StageId old) {
    const auto& lines = whole_.names.stage_lines;
    copy_.names.stages.push_back(std::move(name));
    copy_.names.stage_lines.push_back(old < lines.size() ? lines[old] : SourceMap::Line{});
  }

  void add_placeholder(TensorId tensor) {
    Placeholder placeholder{whole_.definition.type_of(tensor), {}};
    for (const ExprId extent : whole_.definition.shape_of(tensor))
      placeholder.shape.push_back(expression(extent));
    copy_.definition.stages.emplace_back(std::move(placeholder));
    add_name(whole_.names.tensor_name(whole_.definition, tensor), tensor.stage);
  }

  Stage stage(const Stage& old) {
    if (const auto* compute = std::get_if<Compute>(&old))
      return Compute{axes(compute->axes), expressions(compute->bodies)};
    if (const auto* scan = std::get_if<Scan>(&old)) {
      Scan made = *scan;
      made.axis = axis(scan->axis);
      for (auto* list : {&made.init, &made.update, &made.state, &made.inputs}) {
        for (TensorId& tensor : *list)
          tensor = tensors_.at(tensor);
      }
      return made;
    }
    if (const auto* scatter = std::get_if<Scatter>(&old)) {
      Scatter made = *scatter;
      made.axes = axes(scatter->axes);
      made.base = tensors_.at(scatter->base);
      made.indices = expressions(scatter->indices);
      made.update = expression(scatter->update);
      return made;
    }
    Placeholder made = std::get<Placeholder>(old);
    made.shape = expressions(made.shape);
    return made;
  }

  std::vector<AxisId> axes(const std::vector<AxisId>& old) {
    std::vector<AxisId> made;
    for (const AxisId id : old)
      made.push_back(axis(id));
    return made;
  }

  AxisId axis(AxisId old) {
    if (const auto found = axes_.find(old); found != axes_.end()) return found->second;
    Axis made = whole_.definition.axes[old];
    made.minimum = expression(made.minimum);
    made.extent = expression(made.extent);
    const auto id = static_cast<AxisId>(copy_.definition.axes.size());
    copy_.definition.axes.push_back(made);
    copy_.names.axes.push_back(whole_.names.axes[old]);
    return axes_[old] = id;
  }

  std::vector<ExprId> expressions(const std::vector<ExprId>& old) {
    std::vector<ExprId> made;
    for (const ExprId id : old)
      made.push_back(expression(id));
    return made;
  }

  ExprId expression(ExprId old) {
    if (const auto found = expressions_.find(old); found != expressions_.end())
      return found->second;
    Expression made = whole_.definition.expressions[old];
    if (auto* use = std::get_if<AxisUse>(&made.node)) {
      use->axis = axis(use->axis);
    } else if (auto* operation = std::get_if<Operation>(&made.node)) {
      operation->operands = expressions(operation->operands);
    } else if (auto* cast = std::get_if<CastTo>(&made.node)) {
      cast->operand = expression(cast->operand);
    } else if (auto* read = std::get_if<Read>(&made.node)) {
      read->tensor = tensors_.at(read->tensor);
      read->indices = expressions(read->indices);
    } else if (auto* reduction = std::get_if<Reduction>(&made.node)) {
      reduction->axes = axes(reduction->axes);
      reduction->sources = expressions(reduction->sources);
      reduction->init = expressions(reduction->init);
      if (reduction->condition) reduction->condition = expression(*reduction->condition);
      if (!reduction->combiner) reduction->reducer = reducer(reduction->reducer);
    }
    const auto id = static_cast<ExprId>(copy_.definition.expressions.size());
    copy_.definition.expressions.push_back(std::move(made));
    return expressions_[old] = id;
  }

  ReducerId reducer(ReducerId old) {
    if (const auto found = reducers_.find(old); found != reducers_.end()) return found->second;
    Reducer made = whole_.definition.reducers[old];
    made.identities = expressions(made.identities);
    made.results = expressions(made.results);
    const auto id = static_cast<ReducerId>(copy_.definition.reducers.size());
    copy_.definition.reducers.push_back(std::move(made));
    copy_.names.reducers.push_back(whole_.names.reducers[old]);
    return reducers_[old] = id;
  }

  const Kernel& whole_;
  Kernel copy_;
  std::map<TensorId, TensorId> tensors_;
  std::map<AxisId, AxisId> axes_;
  std::map<ExprId, ExprId> expressions_;
  std::map<ReducerId, ReducerId> reducers_;
};

/// Whether it costs an instruction of arithmetic: choices, comparisons and bits are free here.
bool is_arithmetic(Operator op) {
  switch (row_of(op).type_rule) {
    case TypeRule::Same:
    case TypeRule::SameInt:
    case TypeRule::SameFloat: return true;
    default: return false;
  }
}

/// Operations of one element, and of each of the reductions in it.
class CountOperations {
 public:
  CountOperations(const Definition& definition, std::span<const int64_t> sizes)
      : definition_(definition), sizes_(sizes) {}

  double operator()(ExprId id) {
    if (!seen_.insert(id).second) return 0;  // shared: computed once
    const Expression& expression = definition_.expressions[id];
    double sum = 0;
    if (const auto* operation = std::get_if<Operation>(&expression.node)) {
      sum = is_arithmetic(operation->op) ? 1 : 0;
      for (const ExprId operand : operation->operands)
        sum += (*this)(operand);
    } else if (const auto* cast = std::get_if<CastTo>(&expression.node)) {
      sum = (*this)(cast->operand);
    } else if (const auto* reduction = std::get_if<Reduction>(&expression.node)) {
      sum = static_cast<double>(reduction->sources.size());  // combining
      for (const ExprId source : reduction->sources)
        sum += (*this)(source);
      for (const AxisId axis : reduction->axes)
        sum *= static_cast<double>(extent_of(axis));
    }
    return sum;
  }

  int64_t extent_of(AxisId axis) const {
    const ExprId extent = definition_.axes[axis].extent;
    bool is_known = true;
    for_each_expression(definition_, {extent}, [&](const Expression& expression) {
      is_known = is_known && !std::holds_alternative<Read>(expression.node) &&
                 !std::holds_alternative<AxisUse>(expression.node);
    });
    return is_known ? evaluate_size(definition_, extent, sizes_) : 1;
  }

 private:
  const Definition& definition_;
  std::span<const int64_t> sizes_;
  std::set<ExprId> seen_;
};

double bytes_of(const Definition& definition, TensorId tensor, std::span<const int64_t> sizes) {
  auto bytes = static_cast<double>(size_of(definition.type_of(tensor)));
  for (const ExprId extent : definition.shape_of(tensor))
    bytes *= static_cast<double>(evaluate_size(definition, extent, sizes));
  return bytes;
}

}  // namespace

std::vector<TensorId> reads_of(const Definition& definition, StageId id) {
  const Stage& stage = definition.stages[id];
  std::vector<TensorId> reads;
  if (const auto* scan = std::get_if<Scan>(&stage)) {
    for (const auto* tensors : {&scan->init, &scan->update, &scan->state, &scan->inputs})
      reads.insert(reads.end(), tensors->begin(), tensors->end());
    return reads;
  }
  if (const auto* scatter = std::get_if<Scatter>(&stage)) reads.push_back(scatter->base);
  std::vector<ExprId> expressions = bodies_of(stage);
  const std::vector<ExprId> bounds = bounds_of(definition, axes_of(stage));
  expressions.insert(expressions.end(), bounds.begin(), bounds.end());
  for_each_expression(definition, std::move(expressions), [&](const Expression& expression) {
    if (const auto* read = std::get_if<Read>(&expression.node)) reads.push_back(read->tensor);
  });
  return reads;
}

std::vector<Part> parts_of(const Definition& definition, const SourceMap& names) {
  const Groups groups(definition);
  std::map<StageId, std::vector<StageId>> members;
  for (StageId id = 0; id < definition.stages.size(); ++id)
    members[groups.of(id)].push_back(id);
  std::set<TensorId> used(definition.parameters.begin(), definition.parameters.end());
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    for (const TensorId read : groups.reads(id)) {
      if (groups.of(read.stage) != groups.of(id)) used.insert(read);
    }
  }
  std::vector<Part> parts;
  for (const auto& [first, stages] : members) {
    if (stages.size() == 1 && is_placeholder(definition, first)) continue;
    // A scan stands behind its cells, so the last is what the part is called.
    Part part{names.stages[stages.back()], stages, {}, {}};
    std::set<TensorId> inputs;
    for (const StageId id : stages) {
      for (const TensorId read : groups.reads(id)) {
        if (groups.of(read.stage) != first && inputs.insert(read).second)
          part.inputs.push_back(read);
      }
      for (uint32_t output = 0; output < output_count(definition.stages[id]); ++output) {
        if (used.contains({id, output}) && !is_placeholder(definition, id))
          part.outputs.push_back({id, output});
      }
    }
    if (!part.outputs.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

Kernel kernel_of(const Kernel& whole, const Part& part) { return Copies(whole, part).take(); }

Work work_of(const Definition& definition, const Part& part, std::span<const int64_t> sizes) {
  Work work;
  for (const StageId id : part.stages) {
    CountOperations count(definition, sizes);
    double each = 0;
    for (const ExprId body : bodies_of(definition.stages[id]))
      each += count(body);
    if (std::holds_alternative<Scan>(definition.stages[id])) continue;
    for (const AxisId axis : axes_of(definition.stages[id]))
      each *= static_cast<double>(count.extent_of(axis));
    work.operations += each;
  }
  for (const TensorId input : part.inputs)
    work.bytes_read += bytes_of(definition, input, sizes);
  for (const TensorId output : part.outputs)
    work.bytes_written += bytes_of(definition, output, sizes);
  return work;
}

}  // namespace kiln::language
