#pragma once

#include <map>
#include <vector>

#include "compiler/analysis/prove.h"
#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// The part of a dimension that a stage computes each time its loops run: min .. min + extent - 1.
/// `min` may use loops outside of the stage; `extent` uses sizes only.
struct Region {
  ir::Expr min;
  ir::Expr extent;
  bool is_whole = false;  // min is 0, extent that of the tensor
};

struct Loop {
  ir::VarRef var;
  ir::Expr extent;
  AxisId axis = 0;
  bool is_reduce = false;
  bool is_elided = false;  // one iteration: no loop, and the variable is 0
  bool is_shared = false;  // stands around the whole scan, with the same variable
};

/// What must hold for an iteration to do anything.
struct Guard {
  ir::Expr condition;
  size_t level = 0;  // how many loops of the nest must be open for its variables to be known
  bool is_reduce = false;
};

/// The loops of one stage, one a leaf, outermost first.
struct Nest {
  std::vector<Region> region;  // one a dimension
  std::vector<Loop> loops;
  ir::Substitution values;        // root axes, by their value variables, in terms of the loops
  std::vector<ir::Expr> offsets;  // one a dimension: the value less the region's min
  std::vector<Guard> guards;
  int rolling = -1;  // the dimension along which iterations of the loop around share memory

  /// The first loop of a reduction; the number of loops when there is none.
  size_t first_reduce() const;
};

/// Where a tensor lies. An element is at index - origin; a null origin is 0. In the dimension
/// `rolling`, if there is one, only the last few indices are kept: an element is at the index
/// modulo the buffer's extent. A buffer that exists twice has a dimension in front, `copy` says
/// where there.
struct Storage {
  ir::BufferRef buffer;
  std::vector<ir::Expr> origin;
  int rolling = -1;
  ir::Expr copy;
  std::vector<LayoutDimension> layout = {};  // of the buffer, where it is not the tensor's

  /// The indices of the buffer for the places of the tensor's dimensions.
  std::vector<ir::Expr> indices(std::vector<ir::Expr> places) const;

  /// The place of an index of dimension `d`.
  ir::Expr place(size_t d, const ir::Expr& index, const analysis::Facts& facts) const;
};

/// The nests of all live stages that have loops, and the storage of all live tensors.
struct NestPlan {
  std::vector<Nest> nests;  // one a stage
  std::map<TensorId, Storage> storage;
};

/// The nest of a compute stage or a scan (whose only axis is time) over a region. The first loops
/// are `shared`: the scan's own, with their variables.
///
/// Guards stand where a split may run past the axis, and where the region may leave the tensor.
Nest make_nest(const StageGraph& graph, StageId stage, std::vector<Region> region,
               const std::vector<Loop>& shared, const analysis::Facts& facts);

/// Puts a guard as far out as its variables are known.
void add_guard(Nest& nest, const ir::Expr& condition, bool is_reduce);

/// What is known of the sizes: dimensions of arguments are 0 or more.
analysis::Facts facts_of_sizes(const StageGraph& graph);

/// Position of an axis among the loops of the nest of its stage.
size_t loop_of_axis(const Nest& nest, AxisId axis);

/// The loops that stand around a stage, outermost first. Nests of its consumers must exist.
std::vector<const Loop*> loops_around(const StageGraph& graph, const NestPlan& plan, StageId stage);

}  // namespace kiln::schedule
