// The tables of a kernel before any step: whose each axis is, the loops that a stage begins with
// (its data axes, then those that it reduces over), and its place in the cell of a scan.
//   C[i] = sum[k < l](A[i, k])  ->  C: loops i, k; data i; reduce k
#include <algorithm>

#include "compiler/language/check/time_dimensions.h"
#include "compiler/language/state/state_tables.h"

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

bool is_in(const std::vector<AxisId>& axes, AxisId axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// The row of a stage of the definition, without its axes.
StageRow stage_row(const Definition& definition, const SourceMap& names, StageId id) {
  using Kind = StageRow::Kind;
  const Stage& stage = definition.stages[id];
  StageRow row{.kind = std::holds_alternative<Placeholder>(stage) ? Kind::Placeholder
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

void add_stages(StateTables& tables, const Definition& definition, const SourceMap& names) {
  const std::vector<int> cells = cells_of(definition);
  const std::vector<int> times = time_dimensions(definition);
  BodyWalk walk(definition);
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    StageRow row = stage_row(definition, names, id);
    row.cell_of = cells[id];
    row.time_dimension = times[id];
    if (const auto* compute = std::get_if<Compute>(&definition.stages[id])) {
      const Reduction* whole = definition.whole_reduction(*compute);
      row.is_reduction = whole != nullptr;
      row.data = row.loops.leaves = compute->axes;
      walk(definition.stages[id]);
      for (const AxisId axis : walk.reduced_axes) {
        if (std::find(row.reduce.begin(), row.reduce.end(), axis) == row.reduce.end()) {
          row.reduce.push_back(axis);
        }
      }
      row.loops.leaves.insert(row.loops.leaves.end(), row.reduce.begin(), row.reduce.end());
      row.inner = row.reduce;
      if (whole != nullptr)
        std::erase_if(row.inner, [&](AxisId axis) { return is_in(whole->axes, axis); });
      if (cells[id] >= 0) row.at_time = axes_at_time(walk, cells);
    } else {
      row.loops.leaves = axes_of(definition.stages[id]);
      if (row.kind == StageRow::Kind::Scan) row.time = row.loops.leaves[0];
    }
    tables.taken.emplace(row.name, 0);
    for (const std::string& tensor : row.tensors)
      tables.taken.emplace(tensor, 0);
    tables.stages.push_back(std::move(row));
  }
}

/// Outputs of the kernel, and what scans take their states from.
void mark_roles(StateTables& tables, const Definition& definition) {
  for (const TensorId parameter : definition.parameters)
    tables.stages[parameter.stage].is_output = true;
  // Of several scans, the first.
  for (size_t id = definition.stages.size(); id-- > 0;) {
    const auto* scan = std::get_if<Scan>(&definition.stages[id]);
    if (scan == nullptr) continue;
    for (const TensorId update : scan->update)
      tables.stages[update.stage].update_of = static_cast<int>(id);
    for (const TensorId init : scan->init)
      tables.stages[init.stage].init_of = static_cast<int>(id);
  }
}

}  // namespace

StateTables tables_of(const Definition& definition, const SourceMap& names) {
  StateTables tables;
  const std::vector<int> owners = owners_of_axes(definition);
  for (AxisId axis = 0; axis < definition.axes.size(); ++axis) {
    tables.axes.push_back({.name = names.axes[axis],
                           .stage = static_cast<StageId>(std::max(owners[axis], 0)),
                           .kind = definition.axes[axis].kind,
                           .is_used = owners[axis] >= 0});
  }
  add_stages(tables, definition, names);
  mark_roles(tables, definition);
  return tables;
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

}  // namespace kiln::language
