#include <algorithm>

#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

/// Adds an axis of the stage's own, named by the step table.
AxisId define(const StepContext& context, const std::string& name, AxisKind kind) {
  const auto id = static_cast<AxisId>(context.graph.axes.size());
  context.graph.axes.push_back(Axis{.name = name, .kind = kind, .stage = context.stage});
  context.defined.push_back(id);
  return id;
}

std::vector<std::string> defined_names(const StepContext& context) {
  std::vector<std::string> operands;
  for (size_t i = 0; i < context.axes.size(); ++i)
    operands.push_back(context.axis(i).name);
  return language::defined_axis_names(context.step.kind, operands);
}

/// What a loop says about how it runs would be lost with it.
void refuse_annotated(const StepContext& context) {
  for (size_t i = 0; i < context.axes.size(); ++i) {
    const Axis& axis = context.axis(i);
    if (axis.annotated_by < 0) continue;
    fail(ErrorKind::InvalidArgument, "ANNOTATED_AXIS",
         "step {} has said how {} runs; {} it before that", axis.annotated_by + 1, axis.name,
         language::row_of(context.step.kind).spelling);
  }
}

void require_positive(const StepContext& context, std::string_view name, int64_t value) {
  if (value >= 1) return;
  fail(ErrorKind::InvalidArgument, "SPLIT_FACTOR", "{}: the {} must be at least 1",
       describe(context.graph, context.step, context.axes), name);
}

size_t position_of(const Stage& stage, AxisId axis) {
  const auto at = std::find(stage.leaves.begin(), stage.leaves.end(), axis);
  KILN_CHECK(at != stage.leaves.end());
  return static_cast<size_t>(at - stage.leaves.begin());
}

void replace_leaf(Stage& stage, AxisId leaf, const std::vector<AxisId>& by) {
  const auto at = stage.leaves.erase(stage.leaves.begin() +
                                     static_cast<std::ptrdiff_t>(position_of(stage, leaf)));
  stage.leaves.insert(at, by.begin(), by.end());
}

/// Puts leaves in this order, in the places they hold.
void put_in_order(Stage& stage, const std::vector<AxisId>& axes) {
  std::vector<size_t> places;
  for (const AxisId axis : axes)
    places.push_back(position_of(stage, axis));
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < axes.size(); ++i)
    stage.leaves[places[i]] = axes[i];
}

/// The root axes that an axis is made of.
void collect_roots(const Stage& stage, AxisId axis, std::vector<AxisId>& roots) {
  for (const Relation& relation : stage.relations) {
    if (const Split* split = std::get_if<Split>(&relation)) {
      if (split->outer == axis || split->inner == axis) {
        return collect_roots(stage, split->parent, roots);
      }
    } else if (std::get<Fuse>(relation).fused == axis) {
      for (const AxisId part : std::get<Fuse>(relation).parts)
        collect_roots(stage, part, roots);
      return;
    }
  }
  roots.push_back(axis);
}

void refuse_dependent_extents(const StepContext& context) {
  std::vector<AxisId> roots;
  for (const AxisId axis : context.axes)
    collect_roots(context.record(), axis, roots);
  for (const AxisId inner : roots) {
    for (const AxisId outer : roots) {
      const Axis& a = context.graph.axes[outer];
      const Axis& b = context.graph.axes[inner];
      if (!ir::uses_var(b.extent, a.value) && !ir::uses_var(b.minimum, a.value)) continue;
      fail(ErrorKind::Unsupported, "DEPENDENT_EXTENT",
           "cannot fuse {}: the extent of {} depends on {}",
           names_of_axes(context.graph, context.axes), b.name, a.name);
    }
  }
}

}  // namespace

void apply_split(const StepContext& context) {
  const language::Step& step = context.step;
  KILN_CHECK(step.parts.has_value() == step.factors.empty());
  if (step.parts) {
    require_positive(context, "number of parts", *step.parts);
  } else {
    require_positive(context, "factor", step.factors[0]);
  }
  refuse_annotated(context);
  const std::vector<std::string> names = defined_names(context);
  const AxisKind kind = context.axis(0).kind;
  Split split{.parent = context.axes[0],
              .outer = define(context, names[0], kind),
              .inner = define(context, names[1], kind),
              .parts = step.parts};
  if (!step.parts) split.factor = step.factors[0];
  replace_leaf(context.record(), split.parent, {split.outer, split.inner});
  context.record().relations.push_back(split);
}

void apply_tile(const StepContext& context) {
  const std::vector<int64_t>& factors = context.step.factors;
  KILN_CHECK(factors.size() == 2 && context.axes[0] != context.axes[1]);
  require_positive(context, "first factor", factors[0]);
  require_positive(context, "second factor", factors[1]);
  refuse_annotated(context);
  const std::vector<std::string> names = defined_names(context);
  const AxisKind x_kind = context.axis(0).kind;
  const AxisKind y_kind = context.axis(1).kind;
  Stage& stage = context.record();
  const AxisId x_outer = define(context, names[0], x_kind);
  const AxisId y_outer = define(context, names[1], y_kind);
  const AxisId x_inner = define(context, names[2], x_kind);
  const AxisId y_inner = define(context, names[3], y_kind);
  stage.relations.push_back(Split{context.axes[0], x_outer, x_inner, factors[0], std::nullopt});
  stage.relations.push_back(Split{context.axes[1], y_outer, y_inner, factors[1], std::nullopt});
  replace_leaf(stage, context.axes[0], {x_outer, x_inner});
  replace_leaf(stage, context.axes[1], {y_outer, y_inner});
  put_in_order(stage, {x_outer, y_outer, x_inner, y_inner});
}

void apply_fuse(const StepContext& context) {
  const std::vector<AxisId>& axes = context.axes;
  Stage& stage = context.record();
  const std::string list = names_of_axes(context.graph, axes);
  KILN_CHECK(!axes.empty());
  for (size_t i = 1; i < axes.size(); ++i) {
    const size_t before = position_of(stage, axes[i - 1]);
    const std::string_view outer = context.axis(i - 1).name;
    const std::string_view inner = context.axis(i).name;
    if (position_of(stage, axes[i]) != before + 1) {
      fail(ErrorKind::InvalidArgument, "NOT_NEIGHBOURS",
           "fuse({}): {} and {} are not neighbours in the loop order {}", list, outer, inner,
           names_of_axes(context.graph, stage.leaves));
    }
    if (context.axis(i).kind != context.axis(i - 1).kind) {
      fail(ErrorKind::InvalidArgument, "FUSE_KINDS",
           "fuse({}): one of {} and {} is a reduction axis and the other is not", list, outer,
           inner);
    }
  }
  refuse_annotated(context);
  refuse_dependent_extents(context);
  const AxisId fused = define(context, defined_names(context)[0], context.axis(0).kind);
  for (size_t i = 1; i < axes.size(); ++i)
    replace_leaf(stage, axes[i], {});
  replace_leaf(stage, axes[0], {fused});
  stage.relations.push_back(Fuse{axes, fused});
}

void apply_reorder(const StepContext& context) {
  const std::vector<AxisId>& axes = context.axes;
  Stage& stage = context.record();
  std::vector<AxisId> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    fail(ErrorKind::InvalidArgument, "REORDER_TWICE", "reorder({}) names an axis twice",
         names_of_axes(context.graph, axes));
  }
  put_in_order(stage, axes);
}

}  // namespace kiln::schedule
