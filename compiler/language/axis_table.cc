#include "compiler/language/axis_table.h"

#include <algorithm>

#include <fmt/format.h>

namespace kiln::language {
namespace {

/// Walks everything in the bodies of a stage, each expression once.
class BodyWalk {
 public:
  explicit BodyWalk(const Definition& definition)
      : definition_(definition), seen_(definition.expressions.size()) {}

  void operator()(const Compute& compute) {
    stages_read.clear();
    reduced_axes.clear();
    for (const ExprId body : compute.bodies) {
      visit(body);
    }
    for (const ExprId expr : touched_) {
      seen_[expr] = false;
    }
    touched_.clear();
  }

  std::vector<StageId> stages_read;
  std::vector<AxisId> reduced_axes;

 private:
  void visit(ExprId expr) {
    if (seen_[expr]) return;
    seen_[expr] = true;
    touched_.push_back(expr);
    const auto& node = definition_.expressions[expr].node;
    if (const auto* read = std::get_if<Read>(&node)) {
      stages_read.push_back(read->tensor.stage);
      visit_all(read->indices);
    } else if (const auto* operation = std::get_if<Operation>(&node)) {
      visit_all(operation->operands);
    } else if (const auto* cast = std::get_if<CastTo>(&node)) {
      visit(cast->operand);
    } else if (const auto* reduction = std::get_if<Reduction>(&node)) {
      reduced_axes.insert(reduced_axes.end(), reduction->axes.begin(), reduction->axes.end());
      visit(reduction->source);
    }
  }

  void visit_all(const std::vector<ExprId>& list) {
    for (const ExprId expr : list) {
      visit(expr);
    }
  }

  const Definition& definition_;
  std::vector<bool> seen_;
  std::vector<ExprId> touched_;
};

AxisKind kind_of_all(const AxisTable& table, const std::vector<uint32_t>& axes) {
  AxisKind kind = AxisKind::Data;
  for (const AxisId axis : axes) {
    const AxisKind part = table.rows[axis].kind;
    if (part == AxisKind::Time || (part == AxisKind::Reduce && kind == AxisKind::Data)) kind = part;
  }
  return kind;
}

}  // namespace

AxisTable axis_table(const Definition& definition, const SourceMap& names) {
  AxisTable table;
  const std::vector<int> owners = owners_of_axes(definition);
  for (AxisId axis = 0; axis < definition.axes.size(); ++axis) {
    table.rows.push_back({names.axes[axis], static_cast<StageId>(std::max(owners[axis], 0)),
                          definition.axes[axis].kind, -1, -1});
  }
  return table;
}

AxisTable axis_table(const Definition& definition, const SourceMap& names,
                     const Schedule& schedule) {
  AxisTable table = axis_table(definition, names);
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    apply(table, schedule.steps[i], static_cast<int>(i));
  }
  return table;
}

void apply(AxisTable& table, const Step& step, int position) {
  if (!consumes_axes(step.kind)) return;
  std::vector<std::string> operands;
  for (const AxisId axis : step.axes) {
    operands.push_back(table.rows[axis].name);
    table.rows[axis].consumed_by = position;
  }
  const std::vector<std::string> names = defined_axis_names(step.kind, operands);
  const bool each_from_its_own = step.kind == StepKind::Tile;
  for (size_t i = 0; i < names.size(); ++i) {
    // tile(x, y) defines x.outer, y.outer, x.inner, y.inner.
    const AxisKind kind =
        each_from_its_own ? table.rows[step.axes[i % 2]].kind : kind_of_all(table, step.axes);
    table.rows.push_back({names[i], step.stage, kind, position, -1});
  }
}

std::vector<int> owners_of_axes(const Definition& definition) {
  std::vector<int> owners(definition.axes.size(), -1);
  BodyWalk walk(definition);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    const int stage = static_cast<int>(id);
    if (const auto* compute = std::get_if<Compute>(&definition.stages[id])) {
      for (const AxisId axis : compute->axes) {
        owners[axis] = stage;
      }
      walk(*compute);
      for (const AxisId axis : walk.reduced_axes) {
        owners[axis] = stage;
      }
    } else if (const auto* scan = std::get_if<Scan>(&definition.stages[id])) {
      owners[scan->axis] = stage;
    }
  }
  return owners;
}

std::vector<int> cells_of(const Definition& definition) {
  std::vector<int> cells(definition.stages.size(), -1);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    const auto* scan = std::get_if<Scan>(&definition.stages[id]);
    if (scan == nullptr) continue;
    for (size_t i = 0; i < scan->state.size(); ++i) {
      cells[scan->state[i].stage] = static_cast<int>(id);
      cells[scan->update[i].stage] = static_cast<int>(id);
    }
  }
  BodyWalk walk(definition);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    const auto* compute = std::get_if<Compute>(&definition.stages[id]);
    if (compute == nullptr) continue;
    walk(*compute);
    for (const StageId read : walk.stages_read) {
      if (cells[read] >= 0) cells[id] = cells[read];
    }
  }
  return cells;
}

std::string text_of(const Step& step, const AxisTable& table, const SourceMap& names) {
  const StepRow& row = row_of(step.kind);
  std::string text = fmt::format("{}(", row.spelling);
  std::string_view separator;
  const auto add = [&](std::string_view part) {
    text += separator;
    text += part;
    separator = ", ";
  };
  if (row.axes == 0) add(names.stages[step.stage]);
  for (const AxisId axis : step.axes) {
    add(table.rows[axis].name);
  }
  for (const int64_t factor : step.factors) {
    add(fmt::format("{}{}", step.kind == StepKind::Split ? "factor=" : "", factor));
  }
  if (step.parts) add(fmt::format("parts={}", *step.parts));
  if (!step.tag.empty()) add(step.tag);
  if (row.uses == StepUses::At) {
    add(fmt::format("{}.{}", names.stages[step.at_stage], table.rows[step.at_axis].name));
  }
  return text + ")";
}

std::string kernel_file_text(const Step& step, const AxisTable& table, const SourceMap& names) {
  const auto text_of_axis = [&](AxisId axis) {
    const AxisTable::Row& row = table.rows[axis];
    if (row.kind == AxisKind::Time) return row.name;
    return fmt::format("{}.{}", names.stages[row.stage], row.name);
  };
  const StepRow& row = row_of(step.kind);
  std::vector<std::string> arguments;
  if (row.axes == 0) arguments.push_back(names.stages[step.stage]);
  for (const AxisId axis : step.axes)
    arguments.push_back(text_of_axis(axis));
  for (const int64_t factor : step.factors) {
    arguments.push_back(fmt::format("{}{}", step.kind == StepKind::Split ? "factor=" : "", factor));
  }
  if (step.parts) arguments.push_back(fmt::format("parts={}", *step.parts));
  if (!step.tag.empty()) arguments.push_back(step.tag);
  if (row.uses == StepUses::At) arguments.push_back(text_of_axis(step.at_axis));
  return fmt::format("{}({})", row.spelling, fmt::join(arguments, ", "));
}

std::vector<std::string> kernel_file_text(const Schedule& schedule, const Definition& definition,
                                          const SourceMap& names) {
  std::vector<std::string> steps;
  AxisTable table = axis_table(definition, names);
  for (const Step& step : schedule.steps) {
    steps.push_back(kernel_file_text(step, table, names));
    apply(table, step, static_cast<int>(steps.size()) - 1);
  }
  return steps;
}

}  // namespace kiln::language
