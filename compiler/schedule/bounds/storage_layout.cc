// Strides and copies of a stage's memory.
//
//   storage_align(j, factor=32, offset=8), rows of 60  ->  stride 72: 72 % 32 == 8
//   double_buffer at loop i                           ->  two copies, i % 2
#include "compiler/schedule/bounds/storage_layout.h"

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/infer_bounds.h"

namespace kiln::schedule {

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

ir::Expr alternating_copy(const StageGraph& graph, const NestPlan& plan, StageId id) {
  const Stage& stage = graph[id];
  if (stage.memory.doubled_by < 0 || stage.attach.kind != Attach::Kind::At) return nullptr;
  const Nest& nest = plan.nests[stage.attach.stage];
  const Loop& loop = nest.loops[loop_of_axis(nest, stage.attach.axis)];
  const ir::LoopKind kind = graph.axes[loop.axis].loop_kind;
  const bool in_turn = kind == ir::LoopKind::Serial || kind == ir::LoopKind::Unrolled;
  if (loop.is_elided || loop.is_shared || !in_turn) return nullptr;
  return ir::floormod(loop.var, ir::index(2));
}

}  // namespace kiln::schedule
