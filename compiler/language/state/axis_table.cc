#include "compiler/language/state/axis_table.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/language/check/time_dimensions.h"
#include "compiler/language/state/step_stages.h"

namespace kiln::language {
namespace {

/// Walks everything in the bodies of a stage, each expression once.
class BodyWalk {
 public:
  explicit BodyWalk(const Definition& definition)
      : definition_(definition), seen_(definition.expressions.size()) {}

  void operator()(const Stage& stage) {
    start();
    visit_all(bodies_of(stage));
  }
  /// The same for one reduction of a stage.
  void operator()(const Reduction& reduction) {
    start();
    visit_parts(reduction);
  }

  std::vector<StageId> stages_read;
  std::vector<AxisId> reduced_axes;
  std::vector<const Reduction*> reductions;

 private:
  void start() {
    stages_read.clear();
    reduced_axes.clear();
    reductions.clear();
    for (const ExprId expr : touched_)
      seen_[expr] = false;
    touched_.clear();
  }

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
      reductions.push_back(reduction);
      reduced_axes.insert(reduced_axes.end(), reduction->axes.begin(), reduction->axes.end());
      visit_parts(*reduction);
    }
  }

  void visit_parts(const Reduction& reduction) {
    for (const AxisId axis : reduction.axes) {
      visit(definition_.axes[axis].minimum);
      visit(definition_.axes[axis].extent);
    }
    visit_all(parts_of(reduction));
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

size_t place_of(const std::vector<AxisId>& leaves, AxisId axis) {
  return static_cast<size_t>(std::find(leaves.begin(), leaves.end(), axis) - leaves.begin());
}

/// The loops `parts` stand where `axis` stood. Steps that are not checked yet may name anything.
void replace_leaf(std::vector<AxisId>& leaves, AxisId axis, const std::vector<AxisId>& parts) {
  const size_t at = place_of(leaves, axis);
  if (at == leaves.size()) return;
  const auto after = leaves.erase(leaves.begin() + static_cast<std::ptrdiff_t>(at));
  leaves.insert(after, parts.begin(), parts.end());
}

/// The axes stand in this order, in the places they hold.
void put_in_order(std::vector<AxisId>& leaves, const std::vector<AxisId>& axes) {
  std::vector<size_t> places;
  for (const AxisId axis : axes)
    places.push_back(place_of(leaves, axis));
  std::sort(places.begin(), places.end());
  if (places.back() >= leaves.size()) return;
  for (size_t i = 0; i < axes.size(); ++i)
    leaves[places[i]] = axes[i];
}

void change_leaves(std::vector<AxisId>& leaves, const Step& step, const std::vector<AxisId>& made) {
  if (step.kind == StepKind::Split) {
    replace_leaf(leaves, step.axes[0], made);
  } else if (step.kind == StepKind::Tile) {
    replace_leaf(leaves, step.axes[0], {made[0], made[2]});
    replace_leaf(leaves, step.axes[1], {made[1], made[3]});
    put_in_order(leaves, made);
  } else {
    for (size_t i = 1; i < step.axes.size(); ++i)
      replace_leaf(leaves, step.axes[i], {});
    replace_leaf(leaves, step.axes[0], made);
  }
}

bool is_in(const std::vector<AxisId>& axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// The row of a stage of the definition, without its axes.
AxisTable::Stage stage_row(const Definition& definition, const SourceMap& names, StageId id) {
  using Kind = AxisTable::Stage::Kind;
  const Stage& stage = definition.stages[id];
  AxisTable::Stage row{.kind = std::holds_alternative<Placeholder>(stage) ? Kind::Placeholder
                               : std::holds_alternative<Compute>(stage)   ? Kind::Compute
                               : std::holds_alternative<Scatter>(stage)   ? Kind::Scatter
                                                                          : Kind::Scan,
                       .name = names.stages[id],
                       .tensors = {},
                       .ranks = {}};
  for (uint32_t output = 0; output < output_count(stage); ++output) {
    row.tensors.push_back(names.tensor_name(definition, {id, output}));
    row.ranks.push_back(static_cast<uint32_t>(definition.shape_of({id, output}).size()));
  }
  return row;
}

/// The axes of reductions that read a stage of the cell, which depends on the scan's state.
std::vector<AxisId> axes_at_time(BodyWalk& walk, const std::vector<int>& cells) {
  std::vector<AxisId> axes;
  for (const Reduction* reduction : std::vector(walk.reductions)) {
    walk(*reduction);
    const auto in_cell = [&](StageId read) { return cells[read] >= 0; };
    if (std::ranges::none_of(walk.stages_read, in_cell)) continue;
    axes.insert(axes.end(), reduction->axes.begin(), reduction->axes.end());
  }
  return axes;
}

void add_stages(AxisTable& table, const Definition& definition, const SourceMap& names) {
  const std::vector<int> cells = cells_of(definition);
  const std::vector<int> times = time_dimensions(definition);
  BodyWalk walk(definition);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    AxisTable::Stage row = stage_row(definition, names, id);
    row.cell_of = cells[id];
    row.time_dimension = times[id];
    if (const auto* compute = std::get_if<Compute>(&definition.stages[id])) {
      const Reduction* whole = definition.whole_reduction(*compute);
      row.is_reduction = whole != nullptr;
      row.data = row.leaves = compute->axes;
      walk(definition.stages[id]);
      for (const AxisId axis : walk.reduced_axes) {
        if (std::find(row.reduce.begin(), row.reduce.end(), axis) == row.reduce.end()) {
          row.reduce.push_back(axis);
        }
      }
      row.leaves.insert(row.leaves.end(), row.reduce.begin(), row.reduce.end());
      row.inner = row.reduce;
      if (whole != nullptr)
        std::erase_if(row.inner, [&](AxisId axis) { return is_in(whole->axes, axis); });
      if (cells[id] >= 0) row.at_time = axes_at_time(walk, cells);
    } else {
      row.leaves = axes_of(definition.stages[id]);
    }
    table.taken.emplace(row.name, 0);
    for (const std::string& tensor : row.tensors)
      table.taken.emplace(tensor, 0);
    table.stages.push_back(std::move(row));
  }
}

}  // namespace

std::vector<AxisId> AxisTable::leaves_of(StageId stage, AxisKind kind) const {
  std::vector<AxisId> result;
  for (const AxisId axis : stages[stage].leaves) {
    if (rows[axis].kind == kind) result.push_back(axis);
  }
  return result;
}

AxisTable axis_table(const Definition& definition, const SourceMap& names) {
  AxisTable table;
  const std::vector<int> owners = owners_of_axes(definition);
  for (AxisId axis = 0; axis < definition.axes.size(); ++axis) {
    table.rows.push_back({names.axes[axis], static_cast<StageId>(std::max(owners[axis], 0)),
                          definition.axes[axis].kind, -1, -1});
  }
  add_stages(table, definition, names);
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
  if (defines_stage(step.kind)) return define_stage(table, step, position);
  if (step.kind == StepKind::Reorder) put_in_order(table.stages[step.stage].leaves, step.axes);
  if (!consumes_axes(step.kind)) return;
  std::vector<std::string> operands;
  for (const AxisId axis : step.axes) {
    operands.push_back(table.rows[axis].name);
    table.rows[axis].consumed_by = position;
  }
  const std::vector<std::string> names = defined_axis_names(step.kind, operands);
  const bool each_from_its_own = step.kind == StepKind::Tile;
  std::vector<AxisId> made;
  for (size_t i = 0; i < names.size(); ++i) {
    // tile(x, y) defines x.outer, y.outer, x.inner, y.inner.
    const AxisKind kind =
        each_from_its_own ? table.rows[step.axes[i % 2]].kind : kind_of_all(table, step.axes);
    made.push_back(static_cast<AxisId>(table.rows.size()));
    table.rows.push_back({names[i], step.stage, kind, position, -1});
  }
  change_leaves(table.stages[step.stage].leaves, step, made);
}

std::vector<int> owners_of_axes(const Definition& definition) {
  std::vector<int> owners(definition.axes.size(), -1);
  BodyWalk walk(definition);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    const int stage = static_cast<int>(id);
    for (const AxisId axis : axes_of(definition.stages[id])) {
      owners[axis] = stage;
    }
    walk(definition.stages[id]);
    for (const AxisId axis : walk.reduced_axes) {
      owners[axis] = stage;
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
    if (!std::holds_alternative<Compute>(definition.stages[id])) continue;
    walk(definition.stages[id]);
    for (const StageId read : walk.stages_read) {
      if (cells[read] >= 0) cells[id] = cells[read];
    }
  }
  return cells;
}

namespace {

/// With `full`, each axis after its stage, except that of time, whose name has it.
std::string call_text(const Step& step, const AxisTable& table, bool full) {
  const auto text_of_axis = [&](AxisId axis, StageId stage, bool with_stage) {
    const AxisTable::Row& axis_row = table.rows[axis];
    if (!with_stage || (full && axis_row.kind == AxisKind::Time)) return axis_row.name;
    return fmt::format("{}.{}", table.name_of(stage), axis_row.name);
  };
  const StepRow& row = row_of(step.kind);
  std::vector<std::string> arguments;
  if (row.axes == 0) {
    const AxisTable::Stage& stage = table.stages[step.stage];
    const bool is_tensor = row.uses(step_fields::Output) && step.output < stage.tensors.size();
    arguments.push_back(is_tensor ? stage.tensors[step.output] : stage.name);
  }
  const bool is_layout = row.uses(step_fields::Layout);
  for (const AxisId axis : step.axes) {
    if (!is_layout) arguments.push_back(text_of_axis(axis, table.rows[axis].stage, full));
  }
  for (const int64_t factor : step.factors) {
    arguments.push_back(fmt::format("{}{}", row.factors == 1 ? "factor=" : "", factor));
  }
  if (step.parts) arguments.push_back(fmt::format("parts={}", *step.parts));
  if (!step.tag.empty()) arguments.push_back(step.tag);
  arguments.insert(arguments.end(), step.tags.begin(), step.tags.end());
  for (const StageId reader : step.readers)
    arguments.push_back(table.name_of(reader));
  for (const AxisId axis : step.axes) {
    if (is_layout) arguments.push_back(text_of_axis(axis, table.rows[axis].stage, true));
  }
  if (row.uses(step_fields::At)) {
    arguments.push_back(text_of_axis(step.at_axis, step.at_stage, true));
  }
  if (step.value != 0) arguments.push_back(fmt::format("{}={}", row.value, step.value));
  return fmt::format("{}({})", row.spelling, fmt::join(arguments, ", "));
}

}  // namespace

std::string text_of(const Step& step, const AxisTable& table) {
  return call_text(step, table, false);
}

std::string kernel_file_text(const Step& step, const AxisTable& table) {
  return call_text(step, table, true);
}

std::vector<std::string> kernel_file_text(const Schedule& schedule, const Definition& definition,
                                          const SourceMap& names) {
  std::vector<std::string> steps;
  AxisTable table = axis_table(definition, names);
  for (const Step& step : schedule.steps) {
    steps.push_back(kernel_file_text(step, table));
    apply(table, step, static_cast<int>(steps.size()) - 1);
  }
  return steps;
}

}  // namespace kiln::language
