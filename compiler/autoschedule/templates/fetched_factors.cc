// What contractions have in common whose factors a block of a GPU fetches to shared memory.
#include "compiler/autoschedule/templates/fetched_factors.h"

#include <algorithm>

#include "compiler/autoschedule/recognise/chooser.h"
#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/recognise/prologue.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

/// What a copy can be made of: a tensor with memory of its own.
bool may_be_fetched(const StageGraph& graph, const ir::TensorRead& read) {
  const Stage& source = graph[read.stage];
  return source.attach.kind == schedule::Attach::Kind::Root && source.kind != Stage::Kind::Scan &&
         !source.is_touched;
}

}  // namespace

std::optional<Contraction> fetched_contraction(const StageGraph& graph, StageId id,
                                               FactorForm form) {
  const Stage& stage = graph[id];
  const bool is_plain = stage.kind == Stage::Kind::Compute && stage.time_dimension < 0 &&
                        computes_all(stage) && reductions_inside(graph, id).empty();
  if (!is_plain) return std::nullopt;
  const auto contraction = find_contraction(graph, id, form);
  if (!contraction || !ir::as<ir::Reduce>(stage.bodies[0])->init.empty()) return std::nullopt;
  const ir::TensorRead& rows = *contraction->row_factor;
  const ir::TensorRead& columns = *contraction->column_factor;
  // One tensor has one copy, which would have to hold the parts of both.
  const bool serves =
      rows.stage != columns.stage && may_be_fetched(graph, rows) && may_be_fetched(graph, columns);
  return serves ? contraction : std::nullopt;
}

void store_neighbours(const StageGraph& graph, StepWriter& steps, StageId stored, AxisId loop,
                      int64_t neighbours) {
  const Stage& stage = graph[stored];
  const bool is_whole = neighbours > 1 &&
                        constant_extent(graph, stage.data.back()).value_or(1) % neighbours == 0 &&
                        neighbours * size_of(stage.types[0]) <= kVectorBytesOfThread;
  if (is_whole) {
    steps.vectorize(stored, loop);
  } else {
    steps.unroll(stored, loop);
  }
}

bool have_plain_extents(const StageGraph& graph, const std::vector<AxisId>& axes) {
  return std::ranges::all_of(axes, [&](AxisId axis) {
    const ir::Expr& extent = graph.axes[axis].extent;
    return ir::as_const_int(extent) || ir::as<ir::Var>(extent) != nullptr;
  });
}

std::optional<StageId> padding_of_factors(const StageGraph& graph, StageId stage,
                                          const Contraction& contraction) {
  std::optional<StageId> padding;
  for (const ir::TensorRead* read : {contraction.row_factor, contraction.column_factor})
    if (is_padding_for(graph, read->stage, stage)) padding = read->stage;
  return padding;
}

std::vector<StageId> prologues_of_factors(const StageGraph& graph, StageId stage,
                                          const Contraction& contraction) {
  std::vector<StageId> prologues;
  for (const ir::TensorRead* read : {contraction.row_factor, contraction.column_factor})
    if (is_prologue(graph, read->stage, stage) && !is_padding_for(graph, read->stage, stage))
      prologues.push_back(read->stage);
  return prologues;
}

}  // namespace kiln::autoschedule
