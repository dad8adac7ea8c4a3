// Strides and copies of a stage's memory.
//
//   storage_align(j, factor=32, offset=8), rows of 60  ->  stride 72: 72 % 32 == 8
//   double_buffer at loop i                           ->  two copies, i % 2
//   software_pipeline(i, stages=3) of a copy          ->  three copies, i % 3
#include "compiler/schedule/bounds/storage_layout.h"

#include <algorithm>
#include <tuple>

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {

namespace {

// What arrives later still fills shared memory meanwhile.
constexpr int64_t kMostLateCopies = 4;

/// What a copy reads; null where it is no copy. Zeros around an image are stored instead, at once.
const ir::TensorRead* copied(const ir::Expr& body) {
  const ir::Call* choice = ir::as<ir::Call>(body);
  if (choice == nullptr || choice->op != language::Operator::IfThenElse ||
      has_read(choice->args[0]))
    return ir::as<ir::TensorRead>(body);
  const auto& [inside, around] = std::tie(choice->args[1], choice->args[2]);
  if (has_read(inside) == has_read(around)) return nullptr;
  return ir::as<ir::TensorRead>(has_read(inside) ? inside : around);
}

}  // namespace

std::vector<ir::Expr> aligned_strides(const Stage& stage, const std::vector<ir::Expr>& shape,
                                      const analysis::Facts& sizes) {
  std::vector<ir::Expr> strides(shape.size());
  bool is_compact = true;
  ir::Expr stride = ir::index(1);
  for (size_t d = shape.size(); d-- > 0;) {
    for (const Alignment& alignment : stage.memory.alignments) {
      if (alignment.dimension != d) continue;
      const ir::Expr missing = analysis::simplify(
          ir::floormod(ir::index(alignment.offset) - stride, ir::index(alignment.factor)), sizes);
      if (ir::is_const(missing, 0)) continue;
      KILN_CHECK(d + 1 < shape.size());  // the step sees to it
      stride = analysis::simplify(stride + missing, sizes);
      is_compact = false;
    }
    strides[d] = stride;
    stride = analysis::simplify(stride * shape[d], sizes);
  }
  return is_compact ? std::vector<ir::Expr>() : strides;
}

std::vector<ir::Expr> extents_in_layout(const Stage& stage, const std::vector<ir::Expr>& shape,
                                        const analysis::Facts& sizes) {
  if (stage.memory.layout.empty()) return shape;
  std::vector<ir::Expr> extents;
  for (const LayoutDimension& part : stage.memory.layout) {
    const ir::Expr whole = ir::ceildiv(shape[part.dimension], ir::index(part.step));
    extents.push_back(part.count == 0 ? analysis::simplify(whole, sizes) : ir::index(part.count));
  }
  return extents;
}

int64_t late_copies(const StageGraph& graph, StageId id, TargetKind target) {
  const Stage& stage = graph[id];
  if (!traits_of(target).has_threads || stage.attach.kind != Attach::Kind::At) return 0;
  const auto pipeline = std::ranges::find_if(graph.pipelines, [&](const Pipeline& each) {
    return each.stage == stage.attach.stage && each.axis == stage.attach.axis;
  });
  // With two stages the next part waits in registers, in no more memory.
  if (pipeline == graph.pipelines.end() || pipeline->stages < 3) return 0;
  const bool is_own = stage.memory.scope == "shared" && stage.memory.rolled_by < 0 &&
                      stage.memory.layout.empty() &&
                      std::ranges::none_of(stage.conditions, has_read, &Condition::holds);
  if (!is_own || stage.bodies.size() != 1) return 0;
  const ir::Expr body = expanded_bodies(graph, id).back();
  const ir::TensorRead* read = copied(body);
  if (read == nullptr || std::ranges::any_of(read->indices, has_read)) return 0;
  if (graph[read->stage].attach.kind != Attach::Kind::Root) return 0;
  const int64_t bytes = size_of(stage.types[0]);
  const AxisId last = stage.loops.leaves.back();
  if (graph.axes[last].loop_kind == ir::LoopKind::Vectorized) {
    const ir::VarRef& along = graph.axes[stage.data.back()].value;
    if (read->indices.empty() || !ir::uses_var(read->indices.back(), along)) return 0;
  } else if (bytes < 4) {
    return 0;
  }
  return std::min(pipeline->stages, kMostLateCopies);
}

MemoryInTurn memory_in_turn(const StageGraph& graph, const NestPlan& plan, StageId id,
                            TargetKind target) {
  const Stage& stage = graph[id];
  const int64_t late = late_copies(graph, id, target);
  const bool is_doubled = stage.memory.doubled_by >= 0 && stage.attach.kind == Attach::Kind::At;
  if (late == 0 && !is_doubled) return {};
  const Nest& nest = plan.nests[stage.attach.stage];
  const Loop& loop = nest.loops[loop_of_axis(nest, stage.attach.axis)];
  const ir::LoopKind kind = graph.axes[loop.axis].loop_kind;
  const bool in_turn = kind == ir::LoopKind::Serial || kind == ir::LoopKind::Unrolled;
  if (loop.is_elided || loop.is_shared || !in_turn) return {};
  const int64_t copies = std::max<int64_t>(late, 2);
  return {ir::floormod(loop.var, ir::index(copies)), copies};
}

}  // namespace kiln::schedule
