// What every template asks of a stage: extents that are known, lanes that a register and a line
// have, whether a reduction may be combined in another order.
#include "compiler/autoschedule/recognise/chooser.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/analysis/prove.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/ir/build.h"
#include "compiler/ir/mutator.h"

namespace kiln::autoschedule {
namespace {

// From four double registers on, one masked vector at the end of a line is little of it.
constexpr int64_t kFewVectors = 4;

/// Such functions are the operators that are not exact.
class FindFunctions : public ir::Visitor {
 public:
  FindFunctions(const StageGraph& graph, StageId stage) : graph_(graph) { enter(stage); }
  bool found = false;

 private:
  using Visitor::visit;

  void enter(StageId stage) {
    if (!entered_.insert(stage).second) return;
    for (const ir::Expr& body : graph_[stage].bodies)
      (*this)(body);
  }

  void visit(const ir::Call& call) override {
    found = found || language::row_of(call.op).accuracy != "exact";
    Visitor::visit(call);
  }

  void visit(const ir::TensorRead& read) override {
    if (graph_[read.stage].attach.kind == schedule::Attach::Kind::Inline) enter(read.stage);
    Visitor::visit(read);
  }

  const StageGraph& graph_;
  std::unordered_set<StageId> entered_;
};

}  // namespace

std::optional<int64_t> constant_extent(const StageGraph& graph, AxisId axis) {
  return ir::as_const_int(analysis::simplify(graph.axes[axis].extent));
}

bool has_functions(const StageGraph& graph, StageId stage) {
  return FindFunctions(graph, stage).found;
}

int64_t register_lanes(const Chooser& chooser, StageId id) {
  int64_t widest = 1;
  for (const DType type : chooser.graph[id].types)
    widest = std::max<int64_t>(widest, size_of(type));
  return std::max<int64_t>(chooser.machine.vectors.bytes / widest, 1);
}

bool may_reassociate(const Chooser& chooser, StageId stage) {
  for (const ir::Expr& body : chooser.graph[stage].bodies) {
    const ir::Reduce* reduce = ir::as<ir::Reduce>(body);
    if (reduce != nullptr && reduce->how.reducer) return false;
  }
  if (!chooser.options.strict) return true;
  const std::vector<DType>& types = chooser.graph[stage].types;
  return std::none_of(types.begin(), types.end(), [](DType type) { return is_float(type); });
}

std::optional<int64_t> vector_factor(const StageGraph& graph, StageId stage, AxisId axis,
                                     int64_t bytes) {
  return vector_factor(graph, stage, std::vector<AxisId>{axis}, bytes);
}

std::optional<int64_t> vector_factor(const StageGraph& graph, StageId stage,
                                     const std::vector<AxisId>& line, int64_t bytes) {
  int64_t widest = 1;
  for (const DType type : graph[stage].types) {
    widest = std::max<int64_t>(widest, size_of(type));
  }
  int64_t factor = bytes / widest;
  const std::optional<int64_t> extent = constant_extent_of(graph, line);
  while (factor >= 4 && extent && factor > *extent)
    factor /= 2;
  if (factor < 4) return std::nullopt;
  return factor;
}

std::optional<int64_t> line_factor(const StageGraph& graph, StageId id,
                                   const std::vector<AxisId>& line) {
  const std::optional<int64_t> two = vector_factor(graph, id, line, kVectorBytes);
  const std::optional<int64_t> one = vector_factor(graph, id, line, kVectorBytes / 2);
  const std::optional<int64_t> extent = constant_extent_of(graph, line);
  const bool is_short = extent && two && *extent < kFewVectors * *two;
  return is_short && *extent % *two > *one ? one : two;
}

std::optional<int64_t> element_factor(const Chooser& chooser, StageId id,
                                      const std::vector<AxisId>& line) {
  const std::optional<int64_t> lanes = line_factor(chooser.graph, id, line);
  const int64_t more = register_lanes(chooser, id) * chooser.machine.chained_vectors;
  if (!lanes || more <= *lanes || !has_functions(chooser.graph, id)) return lanes;
  const std::optional<int64_t> extent = constant_extent_of(chooser.graph, line);
  const bool fits = !extent || *extent >= kFewVectors * more || *extent % more == 0;
  return fits ? more : *lanes;
}

}  // namespace kiln::autoschedule
