// Writes prefetches: of the box that a stage reads in one iteration of an axis, taken some
// iterations later, one instruction for each line of the cache.
//
//   prefetch(A, i, 1), A[i, 0..63]  ->  for p in 0..4 { prefetch A[min(i + 1, n - 1), p*16] }
#include "compiler/schedule/emit/prefetch.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

using analysis::Facts;
using analysis::Interval;

constexpr int64_t kLineBytes = 64;
// Lines of a row that are written out.
constexpr int64_t kMostUnrolled = 16;

/// The parts of the tensor that the stage reads while the loops outside of `axis`, and that one,
/// stand still: one box a read.
class Reads {
 public:
  Reads(const StageGraph& graph, const NestPlan& plan, const Prefetch& prefetch, const Facts& facts)
      : graph_(graph), prefetch_(prefetch), nest_(plan.nests[prefetch.reader]), facts_(facts) {
    const size_t level = loop_of_axis(nest_, prefetch.axis);
    for (size_t i = level + 1; i < nest_.loops.size(); ++i)
      inner_.push_back({nest_.loops[i].var, ir::index(0), nest_.loops[i].extent});
  }

  std::vector<std::vector<Interval>> boxes() {
    std::vector<std::vector<Interval>> result;
    for (const ir::Expr& body : expanded_bodies(graph_, prefetch_.reader)) {
      for_each_read(body, [&](const ir::TensorRead& read) {
        if (TensorId{read.stage, read.output} != prefetch_.tensor) return;
        std::vector<Interval> box;
        for (const ir::Expr& index : read.indices)
          box.push_back(range_of(index));
        result.push_back(std::move(box));
      });
    }
    return result;
  }

 private:
  Interval range_of(const ir::Expr& index) {
    const ir::Expr in_loops = ir::substitute(index, nest_.values);
    // Data may also say how far a loop runs.
    const bool is_data =
        has_read(in_loops) || std::ranges::any_of(inner_, [&](const Facts::Range& loop) {
          return ir::uses_var(in_loops, loop.var) && has_read(loop.upper);
        });
    const Interval range = is_data ? Interval{} : analysis::bounds_of(in_loops, inner_, facts_);
    if (range.min && range.max) return range;
    fail(ErrorKind::Unsupported, "PREFETCH",
         "cannot prefetch {} in {}: which part of it {} reads {}",
         graph_.tensor_name(prefetch_.tensor), graph_.axes[prefetch_.axis].name,
         graph_[prefetch_.reader].name,
         is_data ? "depends on data" : "has no bounds that are known");
  }

  const StageGraph& graph_;
  const Prefetch& prefetch_;
  const Nest& nest_;
  const Facts& facts_;
  std::vector<Facts::Range> inner_;
};

/// Fetches what the buffer behind `storage` has of one box of the tensor: it may hold the part that
/// one iteration of a loop around it reads.
ir::Stmt fetch(const Storage& storage, const std::vector<Interval>& box,
               const ir::Substitution& later, const Facts& facts) {
  const std::vector<ir::Expr>& shape = storage.buffer->shape;
  const size_t first = shape.size() - box.size();
  const size_t rank = box.size();
  const int64_t line = kLineBytes / size_of(storage.buffer->type);
  std::vector<ir::VarRef> vars;
  std::vector<ir::Expr> extents;
  std::vector<ir::Expr> places;
  for (size_t d = 0; d < rank; ++d) {
    const bool is_row = d + 1 == rank;
    const ir::Expr least = ir::substitute(box[d].min, later);
    const ir::Expr count = analysis::simplify(box[d].max - box[d].min + 1, facts);
    vars.push_back(ir::Var::make(fmt::format("{}.p{}", storage.buffer->name, d)));
    extents.push_back(is_row ? analysis::simplify(ir::ceildiv(count, ir::index(line)), facts)
                             : count);
    const ir::Expr index = least + ir::Expr(vars[d]) * (is_row ? line : 1);
    // Past the end the last one once more: a branch would hold up a loop of a tile's sums by half.
    const ir::Expr last = shape[first + d] - 1;
    const ir::Expr place = ir::min(storage.place(d, index, facts), last);
    places.push_back(analysis::simplify(ir::max(place, ir::index(0)), facts));
  }
  ir::Stmt result = ir::Prefetch::make(storage.buffer, storage.indices(std::move(places)));
  for (size_t d = rank; d-- > 0;) {
    const std::optional<int64_t> count = ir::as_const_int(extents[d]);
    const bool is_row = d + 1 == rank && count && *count <= kMostUnrolled;
    result =
        ir::For::make(vars[d], extents[d], is_row ? ir::LoopKind::Unrolled : ir::LoopKind::Serial,
                      std::move(result));
  }
  return result;
}

}  // namespace

ir::Stmt prefetches_at(const StageGraph& graph, const NestPlan& plan, StageId stage, AxisId axis,
                       const analysis::Facts& facts) {
  std::vector<ir::Stmt> all;
  for (const Prefetch& prefetch : graph.prefetches) {
    if (prefetch.reader != stage || prefetch.axis != axis) continue;
    const ir::VarRef& var = plan.nests[stage].loops[loop_of_axis(plan.nests[stage], axis)].var;
    const ir::Substitution later = {{var, ir::Expr(var) + prefetch.ahead}};
    const auto storage = plan.storage.find(prefetch.tensor);
    if (storage == plan.storage.end()) continue;  // reading it is refused
    for (const std::vector<Interval>& box : Reads(graph, plan, prefetch, facts).boxes()) {
      ir::Stmt stmt = fetch(storage->second, box, later, facts);
      const bool is_known = std::ranges::any_of(
          all, [&](const ir::Stmt& other) { return ir::equal_trees(other, stmt); });
      if (!is_known) all.push_back(std::move(stmt));
    }
  }
  return ir::Block::make(std::move(all));
}

}  // namespace kiln::schedule
