// What a stage computes at a loop of its consumer: the box around all that is read of it while that
// loop stands still.
//
//   C[i, j] reads A[i, k], C's i in tiles of 64  ->  A at the tiles is 64 rows and all k
//
// A box that would depend on loops further in, or on data, becomes the whole dimension.
#include "compiler/schedule/bounds/required_region.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/ir/build.h"
#include "compiler/schedule/bounds/axis_arithmetic.h"
#include "compiler/schedule/bounds/scopes.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

using analysis::Facts;
using analysis::Interval;

/// Whether an expression uses variables of `vars` only.
class UsesOnly : public ir::Visitor {
 public:
  explicit UsesOnly(const std::vector<ir::VarRef>& vars) : vars_(vars) {}
  bool holds = true;

 private:
  using Visitor::visit;
  void visit(const ir::Var& var) override {
    holds = holds && std::find(vars_.begin(), vars_.end(), ir::VarRef(&var)) != vars_.end();
  }
  void visit(const ir::TensorRead&) override { holds = false; }
  const std::vector<ir::VarRef>& vars_;
};

bool uses_only(const ir::Expr& expr, const std::vector<ir::VarRef>& vars) {
  UsesOnly walk(vars);
  walk(expr);
  return walk.holds;
}

/// Grows `whole` so that it covers `part`; a null bound is unknown.
void unite(Interval& whole, const Interval& part, const Facts& facts) {
  if (!whole.min || !part.min) {
    whole = {};
    return;
  }
  // A proof keeps min and max out of the loop bounds, which every later pass would have to see
  // through.
  const auto pick = [&](const ir::Expr& a, const ir::Expr& b, bool smaller) {
    if (analysis::can_prove(ir::less_equal(a, b), facts)) return smaller ? a : b;
    if (analysis::can_prove(ir::less_equal(b, a), facts)) return smaller ? b : a;
    return smaller ? ir::min(a, b) : ir::max(a, b);
  };
  whole = {pick(whole.min, part.min, true), pick(whole.max, part.max, false)};
}

/// What one attached stage must compute each time.
class RequiredRegion {
 public:
  RequiredRegion(const StageGraph& graph, const NestPlan& plan, StageId stage, const Facts& sizes,
                 TargetKind target)
      : graph_(graph),
        plan_(plan),
        stage_(stage),
        is_filled_(is_filled_by_threads(graph, plan, stage, target)),
        facts_(sizes) {
    for (const Loop* loop : loops_around(graph, plan, stage)) {
      facts_.push_range(loop->var, ir::index(0), loop->extent);
      // Threads that fill a buffer together need the union of what each of them reads, all its
      // virtual threads.
      const ir::ThreadAxis thread = graph.axes[loop->axis].thread;
      const bool is_filling =
          is_of_warp(graph[stage]) ? thread == ir::ThreadAxis::ThreadX : is_thread_index(thread);
      if (is_filled_ && (is_filling || thread == ir::ThreadAxis::VThread)) continue;
      fixed_.insert(loop->var);
      around_.push_back({loop->var, ir::index(0), loop->extent});
    }
  }

  std::vector<Region> find() {
    const size_t dimensions = graph_[stage_].data.size();
    std::vector<std::optional<Interval>> bounds(dimensions);
    for (const StageId reader : readers_of(graph_, stage_)) {
      std::vector<Facts::Range> inner;
      const ir::Substitution values = values_in(reader, inner);
      add_ranges(reader, values, inner);
      for (const ir::Expr& body : expanded_bodies(graph_, reader)) {
        for_each_read(body, [&](const ir::TensorRead& read) {
          if (read.stage != stage_) return;
          for (size_t d = 0; d < dimensions; ++d) {
            add(bounds[d], ir::substitute(read.indices[d], values), inner);
          }
        });
      }
    }
    std::vector<Region> region;
    for (size_t d = 0; d < dimensions; ++d)
      region.push_back(region_of(bounds[d], d));
    return region;
  }

 private:
  /// Root axes of the reader that stand still or move in part, in terms of loops. The others stay
  /// variables with a range of their own, which gives tighter bounds; so do parts of a split, whose
  /// ranges are added to `ranges`: c.inner of c.outer*8 + c.inner is 0 .. 7 whatever loops it is
  /// made of.
  ir::Substitution values_in(StageId reader, std::vector<Facts::Range>& ranges) const {
    const Stage& stage = graph_[reader];
    const Nest& nest = plan_.nests[reader];
    ir::Substitution values;
    for (const auto& [root, value] : nest.values) {
      if (!moves_freely(reader, value) || overhangs(reader, root, value)) values[root] = value;
    }
    if (stage.kind != Stage::Kind::Compute) return values;
    AxisArithmetic axes(graph_, stage, nest.region);
    for (const Loop& loop : nest.loops)
      axes.use_variable(loop.axis, loop.var);
    for (const Relation& relation : stage.loops.relations) {
      const Split* split = std::get_if<Split>(&relation);
      if (split == nullptr) continue;
      for (const AxisId part : {split->outer, split->inner}) {
        const ir::Expr offset = axes.offset(part);
        const ir::Expr extent = axes.extent(part);
        const bool is_made_of_loops =
            ir::as<ir::Var>(offset) == nullptr && !has_read(extent) && moves_freely(reader, offset);
        if (!is_made_of_loops) continue;
        const ir::VarRef var = ir::Var::make(graph_.axes[part].name);
        axes.use_variable(part, var);
        ranges.push_back({var, ir::index(0), extent});
      }
    }
    for (const auto* roots : {&stage.data, &stage.reduce}) {
      for (const AxisId root : *roots) {
        const auto value = values.find(graph_.axes[root].value);
        if (value != values.end()) value->second = axes.value(root);
      }
    }
    return values;
  }

  /// Whether the loops of a root axis, one tile of threads, cover a little more than all of it.
  bool overhangs(StageId reader, const ir::VarRef& root, const ir::Expr& value) const {
    if (!is_filled_) return false;
    const Stage& stage = graph_[reader];
    const auto axis = std::ranges::find_if(
        stage.data, [&](AxisId data) { return graph_.axes[data].value == root; });
    if (axis == stage.data.end()) return false;
    std::vector<Facts::Range> ranges;
    for (const Loop& loop : plan_.nests[reader].loops)
      ranges.push_back({loop.var, ir::index(0), loop.extent});
    const Interval covered = analysis::bounds_of(value, ranges, facts_);
    if (!covered.min || !covered.max) return false;
    const auto dimension = static_cast<size_t>(axis - stage.data.begin());
    return is_nearly_whole(plan_.nests[reader].region[dimension].extent,
                           analysis::simplify(covered.max - covered.min + 1, facts_));
  }

  bool moves_freely(StageId reader, const ir::Expr& value) const {
    bool uses_own_loop = false;
    for (const Loop& loop : plan_.nests[reader].loops) {
      if (!ir::uses_var(value, loop.var)) continue;
      if (fixed_.contains(loop.var)) return false;
      uses_own_loop = true;
    }
    return uses_own_loop;
  }

  /// Those of what moves inside: loops, and root axes that are no loops' values.
  void add_ranges(StageId reader, const ir::Substitution& values,
                  std::vector<Facts::Range>& ranges) const {
    // What data says is not known here: its type alone would make a box of two thousand million.
    const auto add_range = [&](const ir::VarRef& var, const ir::Expr& minimum,
                               const ir::Expr& extent) {
      if (!has_read(minimum) && !has_read(extent))
        ranges.push_back({var, minimum, minimum + extent});
    };
    const auto add_loop = [&](const Loop& loop) {
      if (!fixed_.contains(loop.var)) add_range(loop.var, ir::index(0), loop.extent);
    };
    for (const Loop* loop : loops_around(graph_, plan_, reader))
      add_loop(*loop);
    const Nest& nest = plan_.nests[reader];
    for (const Loop& loop : nest.loops)
      add_loop(loop);
    const Stage& stage = graph_[reader];
    for (size_t d = 0; d < stage.data.size(); ++d) {
      const ir::VarRef& root = graph_.axes[stage.data[d]].value;
      if (!moves_freely(reader, nest.values.at(root))) continue;
      add_range(root, nest.region[d].min, nest.region[d].extent);
    }
    for (const AxisId axis : stage.reduce) {
      const ir::VarRef& root = graph_.axes[axis].value;
      if (!moves_freely(reader, nest.values.at(root))) continue;
      add_range(root, ir::substitute(graph_.axes[axis].minimum, values),
                ir::substitute(graph_.axes[axis].extent, values));
    }
  }

  void add(std::optional<Interval>& bounds, const ir::Expr& index,
           const std::vector<Facts::Range>& inner) {
    const Interval part = has_read(index) ? Interval{} : analysis::bounds_of(index, inner, facts_);
    const Interval known = part.min && part.max ? part : Interval{};
    if (!bounds) {
      bounds = known;
    } else {
      unite(*bounds, known, facts_);
    }
  }

  Region region_of(const std::optional<Interval>& bounds, size_t dimension) {
    const ir::Expr& shape = graph_[stage_].shapes[0][dimension];
    const Region whole{ir::index(0), shape, true};
    if (!bounds || !bounds->min) return whole;
    std::vector<ir::VarRef> known = graph_.sizes;
    known.insert(known.end(), fixed_.begin(), fixed_.end());
    const ir::Expr min = analysis::simplify(bounds->min, facts_);
    if (!uses_only(min, known)) return whole;

    // Memory and loops want an extent of sizes alone: the most that any iteration around needs.
    ir::Expr extent = analysis::simplify(bounds->max - min + 1, facts_);
    if (!uses_only(extent, graph_.sizes)) {
      const Interval widest = analysis::bounds_of(extent, around_, facts_);
      if (!widest.max || !uses_only(widest.max, graph_.sizes)) return whole;
      extent = analysis::simplify(widest.max, facts_);
    }
    if (!analysis::can_prove(ir::less_equal(ir::index(0), extent), facts_)) return whole;
    if (analysis::can_prove(ir::less_equal(shape, extent), facts_) &&
        !is_nearly_whole(shape, extent))
      return whole;
    return {min, extent, false};
  }

  /// A tile of threads that is a little larger than all there is: its threads fill all of it, so
  /// that no guard stands among the products (fill_tiles).
  bool is_nearly_whole(const ir::Expr& shape, const ir::Expr& extent) const {
    const std::optional<int64_t> tile = ir::as_const_int(extent);
    const std::optional<int64_t> there = ir::as_const_int(shape);
    return is_filled_ && tile && there && *there < *tile && *tile < 2 * *there;
  }

  const StageGraph& graph_;
  const NestPlan& plan_;
  const StageId stage_;
  const bool is_filled_;  // by threads
  Facts facts_;
  std::unordered_set<ir::VarRef> fixed_;
  std::vector<Facts::Range> around_;
};

}  // namespace

std::vector<Region> region_needed(const StageGraph& graph, const NestPlan& plan, StageId stage,
                                  const Facts& sizes, TargetKind target) {
  return RequiredRegion(graph, plan, stage, sizes, target).find();
}

}  // namespace kiln::schedule
