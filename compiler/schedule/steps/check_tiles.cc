// The shapes that tensor intrinsics have, checked on the loops of the nest, where extents are
// known. 16 is the 32-bit lanes of an AVX-512 register; 28 of its 32 registers may hold sums, the
// others hold what is multiplied.
#include "compiler/schedule/steps/check_tiles.h"

#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/schedule/bounds/nest.h"

namespace kiln::schedule {
namespace {

using language::TensorIntrinsic;

constexpr int64_t kColumns = 16;
constexpr int64_t kMostVectors = 28;  // of 32 registers, those that sums may stay in

/// The loops from one inwards.
std::vector<Loop> loops_from(const Nest& nest, const Loop& first) {
  std::vector<Loop> loops;
  for (const Loop& loop : nest.loops) {
    const bool is_inside = !loops.empty() || loop.axis == first.axis;
    if (is_inside && !loop.is_elided) loops.push_back(loop);
  }
  return loops;
}

bool is_dot(const std::vector<Loop>& loops, int64_t group) {
  return loops.size() == 2 && !loops[0].is_reduce && loops[1].is_reduce &&
         ir::is_const(loops[0].extent, kColumns) && ir::is_const(loops[1].extent, group);
}

bool is_fma(const std::vector<Loop>& loops) {
  if (loops.empty() || loops.size() > 2) return false;
  const std::optional<int64_t> columns = ir::as_const_int(loops.back().extent);
  const std::optional<int64_t> rows =
      loops.size() == 2 ? ir::as_const_int(loops[0].extent) : std::optional<int64_t>(1);
  if (loops[0].is_reduce || loops.back().is_reduce || !columns || !rows) return false;
  if (*columns % kColumns != 0 || *columns < 1 || *rows < 1) return false;
  return *columns / kColumns <= kMostVectors && *rows <= kMostVectors / (*columns / kColumns);
}

bool fits(TensorIntrinsic intrinsic, const std::vector<Loop>& loops) {
  switch (intrinsic) {
    case TensorIntrinsic::DotU8S8: return is_dot(loops, 4);
    case TensorIntrinsic::DotBf16: return is_dot(loops, 2);
    case TensorIntrinsic::FmaF32: return is_fma(loops);
  }
  return false;
}

std::string_view shape_of(TensorIntrinsic intrinsic) {
  switch (intrinsic) {
    case TensorIntrinsic::DotU8S8: return "a loop of 16 and in it one of 4 over a reduction";
    case TensorIntrinsic::DotBf16: return "a loop of 16 and in it one of 2 over a reduction";
    case TensorIntrinsic::FmaF32:
      return "a loop of a multiple of 16, maybe in one of a few rows, up to 28 times 16 in all";
  }
  return "";
}

}  // namespace

void check_tile(const StageGraph& graph, const Nest& nest, StageId stage, const Loop& loop) {
  const Axis& axis = graph.axes[loop.axis];
  const std::string_view name = language::row_of(*axis.intrinsic).spelling;
  if (loop.is_elided) {
    fail(ErrorKind::Unsupported, "TENSORIZE",
         "cannot tensorize {} of {} with {}: it runs once, which is no loop; tensorize one inside "
         "of it",
         axis.name, graph[stage].name, name);
  }
  const std::vector<Loop> loops = loops_from(nest, loop);
  if (!fits(*axis.intrinsic, loops)) {
    std::string there;
    for (const Loop& each : loops) {
      there += fmt::format("{}{} of {}{}", there.empty() ? "" : ", ", graph.axes[each.axis].name,
                           each.extent, each.is_reduce ? " over a reduction" : "");
    }
    fail(ErrorKind::Unsupported, "TENSORIZE",
         "cannot tensorize {} of {} with {}: it is {}, but here there is {}", axis.name,
         graph[stage].name, name, shape_of(*axis.intrinsic), there.empty() ? "none" : there);
  }
  if (nest.first_reduce() < loop_of_axis(nest, loop.axis)) return;
  fail(ErrorKind::Unsupported, "TENSORIZE",
       "cannot tensorize {} of {} with {}: it adds to sums that have begun, but they begin inside "
       "of {}; reorder a loop over the reduction to stand outside of it",
       axis.name, graph[stage].name, name, axis.name);
}

}  // namespace kiln::schedule
