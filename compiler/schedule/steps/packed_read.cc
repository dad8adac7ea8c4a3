// A copy in the order of the loops that read it, as the packed panels of a matrix product (Goto and
// van de Geijn, Anatomy of High-Performance Matrix Multiplication):
//   B[k, j] read in loops i, j.outer, k, j.inner  ->  a copy over j.outer, k, j.inner, which these
//   loops read one element after the other
// The copy reads what the reader would, so it needs one read, that happens in every iteration, and
// dimensions whose extents depend on no other loop.
#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/schedule/bounds/axis_arithmetic.h"
#include "compiler/schedule/graph/places_of_tensor.h"
#include "compiler/schedule/graph/reads.h"
#include "compiler/schedule/steps/new_stage.h"

namespace kiln::schedule {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::Unsupported, "CACHE_READ", format, std::forward<Args>(args)...);
}

/// The one read of the tensor in the loops of a stage.
const ir::TensorRead& only_read(const StageGraph& graph, StageId reader, TensorId tensor) {
  const PlacesOfTensor found = places_of_tensor(graph, reader, tensor);
  const std::string name = graph.tensor_name(tensor);
  if (found.reads.empty()) {
    fail(ErrorKind::InvalidArgument, "CACHE_READ", "{} does not read {} in these loops",
         graph[reader].name, name);
  }
  if (found.reads.size() > 1) {
    refuse(
        "{} reads {} at {} places; a copy in the order of loops has one element for each "
        "iteration",
        graph[reader].name, name, found.reads.size());
  }
  if (found.in_start) {
    refuse("{} reads {} where its reduction starts, before the loops that a layout is the order of",
           graph[reader].name, name);
  }
  if (found.in_branch) {
    refuse(
        "{} reads {} only where a condition holds; a copy in the order of loops reads it in all "
        "iterations",
        graph[reader].name, name);
  }
  return *ir::as<ir::TensorRead>(found.reads[0]);
}

/// The loops of the reader as dimensions of the copy, and what it reads in their terms.
class Layout {
 public:
  Layout(StageGraph& graph, StageId reader, const std::vector<AxisId>& loops, Stage& copy,
         const NewStage& made)
      : graph_(graph),
        facts_(facts_of_sizes(graph)),
        name_(made.name),
        region_(region_of(graph, graph[reader])),
        axes_(graph, graph[reader], region_) {
    for (size_t i = 0; i < loops.size(); ++i) {
      const ir::Expr extent = analysis::simplify(axes_.extent(loops[i]), facts_);
      refuse_unknown_extent(loops[i], extent);
      copy.data.push_back(add_axis(graph, made.data[i], AxisKind::Data, ir::index(0), extent));
      copy.shapes[0].push_back(extent);
      dimensions_.emplace_back(graph.axes[copy.data.back()].value, extent);
      axes_.use_variable(loops[i], graph.axes[copy.data.back()].value);
    }
    std::vector<AxisId> all = graph[reader].loops.leaves;
    if (graph[reader].time_dimension >= 0) all.push_back(graph[reader].time_axis());
    for (const AxisId leaf : all) {
      if (std::ranges::find(loops, leaf) != loops.end()) continue;
      left_out_.emplace_back(leaf, ir::Var::make(graph.axes[leaf].name));
      axes_.use_variable(leaf, left_out_.back().second);
    }
    for (const std::vector<AxisId>* roots : {&graph[reader].data, &graph[reader].reduce}) {
      for (const AxisId root : *roots)
        values_[graph.axes[root].value] = axes_.value(root);
    }
  }

  std::vector<ir::Expr> places_of(const ir::TensorRead& read) {
    shape_ = graph_[read.stage].shapes[read.output];
    std::vector<ir::Expr>& places = places_;
    for (const ir::Expr& index : read.indices) {
      places.push_back(analysis::simplify(ir::substitute(index, values_), facts_));
      for (const auto& [leaf, var] : left_out_) {
        if (!ir::uses_var(places.back(), var)) continue;
        fail(ErrorKind::InvalidArgument, "CACHE_READ",
             "the layout of {} leaves out {}, on which its elements depend; name {} too", name_,
             graph_.axes[leaf].name, graph_.axes[leaf].name);
      }
    }
    return places;
  }

  /// What splits leave empty. Where a loop left out runs past its end, the copy is the same.
  std::vector<Condition> conditions(const Stage& reader) {
    std::vector<Condition> all = split_conditions(axes_, facts_);
    for (Condition& condition : conditions_in(reader.conditions, values_, false))
      all.push_back(std::move(condition));
    std::erase_if(all, [&](const Condition& condition) {
      return std::ranges::any_of(left_out_, [&](const auto& entry) {
        return ir::uses_var(condition.holds, entry.second);
      });
    });
    if (!is_inside(all)) require_iterations(all);
    for (Condition& condition : all)
      condition.is_reduce = false;
    return all;
  }

  /// The indices of the copy, in terms of the reader's own axes.
  std::vector<ir::Expr> indices_in(const Stage& reader, const std::vector<AxisId>& loops) {
    std::unordered_map<AxisId, ir::Expr> roots;
    for (const std::vector<AxisId>* list : {&reader.data, &reader.reduce}) {
      for (const AxisId root : *list)
        roots[root] = ir::Expr(graph_.axes[root].value) - graph_.axes[root].minimum;
    }
    const std::unordered_map<AxisId, ir::Expr> offsets = axes_.loops_of(roots);
    std::vector<ir::Expr> indices;
    indices.reserve(loops.size());
    for (const AxisId loop : loops)
      indices.push_back(analysis::simplify(offsets.at(loop), facts_));
    return indices;
  }

 private:
  static std::vector<Region> region_of(const StageGraph& graph, const Stage& reader) {
    std::vector<Region> region;
    for (const AxisId axis : reader.data)
      region.push_back({graph.axes[axis].minimum, graph.axes[axis].extent, true});
    return region;
  }

  bool depends_on_loops(const ir::Expr& extent) const {
    const auto uses = [&](const auto& loop) { return ir::uses_var(extent, loop.second); };
    return std::ranges::any_of(left_out_, uses) ||
           std::ranges::any_of(graph_.axes, [&](const Axis& axis) {
             return axis.value && ir::uses_var(extent, axis.value);
           });
  }

  /// Whether all that the copy reads is seen to lie inside of the tensor.
  bool is_inside(const std::vector<Condition>& conditions) const {
    analysis::Facts facts = facts_;
    for (const auto& [value, extent] : dimensions_)
      facts.push_range(value, ir::index(0), extent);
    for (const Condition& condition : conditions)
      facts.push_condition(condition.holds);
    for (size_t d = 0; d < places_.size(); ++d) {
      if (!analysis::can_prove(ir::less_equal(ir::index(0), places_[d]), facts)) return false;
      if (!analysis::can_prove(ir::less(places_[d], shape_[d]), facts)) return false;
    }
    return true;
  }

  /// A loop left out that has no iterations reads nothing, so neither may the copy.
  void require_iterations(std::vector<Condition>& all) {
    for (const auto& [leaf, var] : left_out_) {
      const ir::Expr extent = analysis::simplify(axes_.extent(leaf), facts_);
      if (depends_on_loops(extent) || has_read(extent)) {
        refuse("the layout of {} leaves out {}, whose extent depends on {}", name_,
               graph_.axes[leaf].name, has_read(extent) ? "data" : "other loops");
      }
      const ir::Expr some = ir::less(ir::index(0), extent);
      if (!analysis::can_prove(some, facts_)) all.push_back({some, false});
    }
  }

  void refuse_unknown_extent(AxisId loop, const ir::Expr& extent) const {
    if (!depends_on_loops(extent) && !has_read(extent)) return;
    refuse("{} cannot be a dimension of {}: its extent depends on {}", graph_.axes[loop].name,
           name_, has_read(extent) ? "data" : "other loops");
  }

  StageGraph& graph_;
  const analysis::Facts facts_;
  const std::string name_;
  const std::vector<Region> region_;
  AxisArithmetic axes_;
  std::vector<std::pair<AxisId, ir::VarRef>> left_out_;
  std::vector<std::pair<ir::VarRef, ir::Expr>> dimensions_;  // of the copy, with their extents
  std::vector<ir::Expr> places_;                             // what it reads
  std::vector<ir::Expr> shape_;                              // of the tensor
  ir::Substitution values_;
};

}  // namespace

void make_packed_copy(const StepContext& context) {
  const NewStage& made = context.made;
  StageGraph& graph = context.graph;
  const TensorId tensor{context.stage, context.step.output};
  const StageId reader = graph.axes[context.axes[0]].stage;
  const ir::Expr read = &only_read(graph, reader, tensor);
  const ir::TensorRead& element = *ir::as<ir::TensorRead>(read);

  Stage copy = stage_for(graph, tensor.stage, made);
  copy.is_live = graph[reader].is_live;
  copy.memory.scope = context.step.tag;
  copy.types = {graph[tensor.stage].types[tensor.output]};
  copy.shapes = {{}};
  Layout layout(graph, reader, context.axes, copy, made);
  copy.bodies = {
      ir::TensorRead::make(read->type, tensor.stage, tensor.output, layout.places_of(element))};
  copy.conditions = layout.conditions(graph[reader]);
  const std::vector<ir::Expr> indices = layout.indices_in(graph[reader], context.axes);
  context.defined = copy.data;
  // What the reader's indices read comes before the reader, but not always right after the tensor.
  const bool is_indirect = std::ranges::any_of(element.indices, has_read);
  const StageId id =
      enter_stage(graph, std::move(copy), is_indirect ? reader : tensor.stage, is_indirect);

  Stage& stage = graph.stages[reader];
  for (ir::Expr& body : stage.bodies) {
    body = replace_reads(body, [&](const ir::TensorRead& other) -> ir::Expr {
      if (TensorId{other.stage, other.output} != tensor) return &other;
      return ir::TensorRead::make(other.type, id, 0, indices);
    });
  }
  stage.is_touched = true;
}

}  // namespace kiln::schedule
