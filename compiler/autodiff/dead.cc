// Leaves out what no parameter needs: adjoints that nothing asked for, parts of expressions that a
// later simplification has replaced. What stands in the kernel that was differentiated stays.
#include <algorithm>

#include "compiler/autodiff/differentiator.h"

namespace kiln::autodiff {
namespace {

using namespace language;

constexpr uint32_t kDead = 0xFFFFFFFF;

/// Which entries of the tables are needed, and where they go.
class Compaction {
 public:
  Compaction(const Kernel& from, const Kernel& original) : from_(from.definition) {
    begin(stages_, from_.stages.size(), original.definition.stages.size());
    begin(axes_, from_.axes.size(), original.definition.axes.size());
    begin(expressions_, from_.expressions.size(), original.definition.expressions.size());
    for (const TensorId parameter : from_.parameters)
      need_stage(parameter.stage);
    while (!open_.empty()) {
      const StageId id = open_.back();
      open_.pop_back();
      look_at(from_.stages[id]);
    }
    number(stages_);
    number(axes_);
    order_expressions(original.definition.expressions.size());
  }

  Kernel apply(const Kernel& kernel) const {
    Kernel to;
    const Definition& d = kernel.definition;
    to.names = kernel.names;
    to.names.stages.clear();
    to.names.stage_lines.clear();
    to.names.axes.clear();
    to.definition.variables = d.variables;
    to.definition.reducers = d.reducers;
    for (StageId id = 0; id < d.stages.size(); ++id) {
      if (stages_[id] == kDead) continue;
      to.definition.stages.push_back(
          std::visit([&](const auto& stage) -> Stage { return mapped(stage); }, d.stages[id]));
      to.names.stages.push_back(kernel.names.stages[id]);
      to.names.stage_lines.push_back(kernel.names.stage_lines[id]);
    }
    for (AxisId id = 0; id < d.axes.size(); ++id) {
      if (axes_[id] == kDead) continue;
      const Axis& axis = d.axes[id];
      to.definition.axes.push_back({axis.kind, mapped(axis.minimum), mapped(axis.extent)});
      to.names.axes.push_back(kernel.names.axes[id]);
    }
    for (const ExprId id : order_) {
      Expression expression = d.expressions[id];
      std::visit([&](auto& node) { renumber(node); }, expression.node);
      to.definition.expressions.push_back(std::move(expression));
    }
    to.definition.parameters = mapped(d.parameters);
    return to;
  }

  TensorId mapped(TensorId tensor) const { return {stages_[tensor.stage], tensor.output}; }
  std::vector<TensorId> mapped(const std::vector<TensorId>& tensors) const {
    std::vector<TensorId> result;
    for (const TensorId tensor : tensors)
      result.push_back(mapped(tensor));
    return result;
  }

 private:
  /// 0 is needed; the entries of the original are.
  static void begin(std::vector<uint32_t>& ids, size_t size, size_t kept) {
    ids.assign(size, kDead);
    std::fill_n(ids.begin(), kept, 0);
  }
  static void number(std::vector<uint32_t>& ids) {
    uint32_t next = 0;
    for (uint32_t& id : ids) {
      if (id != kDead) id = next++;
    }
  }

  /// Stage by stage: what reads a stage must stand behind its bodies, and what a body is made of
  /// before it. Those of the original stand so already.
  void order_expressions(size_t kept) {
    for (ExprId id = 0; id < kept; ++id)
      place(id);
    for (StageId id = 0; id < from_.stages.size(); ++id) {
      if (stages_[id] == kDead) continue;
      for (const AxisId axis : axes_of(from_.stages[id]))
        place_bounds(axis);
      if (const auto* placeholder = std::get_if<Placeholder>(&from_.stages[id])) {
        for (const ExprId extent : placeholder->shape)
          place(extent);
      }
      for (const ExprId body : bodies_of(from_.stages[id]))
        place(body);
    }
  }

  void place_bounds(AxisId axis) {
    place(from_.axes[axis].minimum);
    place(from_.axes[axis].extent);
  }

  void place(ExprId id) {
    if (!placed_.insert(id).second) return;
    const auto& node = from_.expressions[id].node;
    const auto place_all = [&](const std::vector<ExprId>& ids) {
      for (const ExprId part : ids)
        place(part);
    };
    if (const auto* use = std::get_if<AxisUse>(&node)) place_bounds(use->axis);
    if (const auto* cast = std::get_if<CastTo>(&node)) place(cast->operand);
    if (const auto* operation = std::get_if<Operation>(&node)) place_all(operation->operands);
    if (const auto* read = std::get_if<Read>(&node)) place_all(read->indices);
    if (const auto* reduction = std::get_if<Reduction>(&node)) {
      for (const AxisId axis : reduction->axes)
        place_bounds(axis);
      place_all(parts_of(*reduction));
    }
    expressions_[id] = static_cast<ExprId>(order_.size());
    order_.push_back(id);
  }

  void need_stage(StageId id) {
    if (!seen_.insert(id).second) return;
    stages_[id] = 0;
    open_.push_back(id);
  }
  void need_axis(AxisId id) {
    if (axes_[id] != kDead) return;
    axes_[id] = 0;
    need(from_.axes[id].minimum);
    need(from_.axes[id].extent);
  }
  void need(ExprId root) {
    std::vector<ExprId> open = {root};
    while (!open.empty()) {
      const ExprId id = open.back();
      open.pop_back();
      if (!looked_.insert(id).second) continue;
      expressions_[id] = 0;
      const auto& node = from_.expressions[id].node;
      if (const auto* use = std::get_if<AxisUse>(&node)) need_axis(use->axis);
      if (const auto* cast = std::get_if<CastTo>(&node)) open.push_back(cast->operand);
      if (const auto* operation = std::get_if<Operation>(&node))
        open.insert(open.end(), operation->operands.begin(), operation->operands.end());
      if (const auto* read = std::get_if<Read>(&node)) {
        need_stage(read->tensor.stage);
        open.insert(open.end(), read->indices.begin(), read->indices.end());
      }
      if (const auto* reduction = std::get_if<Reduction>(&node)) {
        for (const AxisId axis : reduction->axes)
          need_axis(axis);
        const std::vector<ExprId> parts = parts_of(*reduction);
        open.insert(open.end(), parts.begin(), parts.end());
      }
    }
  }

  void look_at(const Stage& stage) {
    for (const AxisId axis : axes_of(stage))
      need_axis(axis);
    for (const ExprId body : bodies_of(stage))
      need(body);
    if (const auto* placeholder = std::get_if<Placeholder>(&stage)) {
      for (const ExprId extent : placeholder->shape)
        need(extent);
    }
    if (const auto* scatter = std::get_if<Scatter>(&stage)) need_stage(scatter->base.stage);
    if (const auto* scan = std::get_if<Scan>(&stage)) {
      for (const auto* list : {&scan->init, &scan->update, &scan->state}) {
        for (const TensorId tensor : *list)
          need_stage(tensor.stage);
      }
    }
  }

  ExprId mapped(ExprId id) const { return expressions_[id]; }
  std::vector<uint32_t> all(const std::vector<uint32_t>& ids,
                            const std::vector<uint32_t>& table) const {
    std::vector<uint32_t> result;
    for (const uint32_t id : ids)
      result.push_back(table[id]);
    return result;
  }

  Placeholder mapped(const Placeholder& stage) const {
    return {stage.type, all(stage.shape, expressions_)};
  }
  Compute mapped(const Compute& stage) const {
    return {all(stage.axes, axes_), all(stage.bodies, expressions_)};
  }
  Scan mapped(const Scan& stage) const {
    return {axes_[stage.axis],    mapped(stage.init), mapped(stage.update), mapped(stage.state),
            mapped(stage.inputs), stage.dimension,    stage.reverse};
  }
  Scatter mapped(const Scatter& stage) const {
    return {all(stage.axes, axes_), mapped(stage.base), all(stage.indices, expressions_),
            mapped(stage.update), stage.combiner};
  }

  template <typename Leaf>
  void renumber(Leaf&) const {}
  void renumber(AxisUse& node) const { node.axis = axes_[node.axis]; }
  void renumber(Operation& node) const { node.operands = all(node.operands, expressions_); }
  void renumber(CastTo& node) const { node.operand = mapped(node.operand); }
  void renumber(Read& node) const {
    node.tensor = mapped(node.tensor);
    node.indices = all(node.indices, expressions_);
  }
  void renumber(Reduction& node) const {
    node.axes = all(node.axes, axes_);
    node.sources = all(node.sources, expressions_);
    if (node.condition) node.condition = mapped(*node.condition);
    node.init = all(node.init, expressions_);
  }

  const Definition& from_;
  // By old position: the new one.
  std::vector<uint32_t> stages_;
  std::vector<uint32_t> axes_;
  std::vector<uint32_t> expressions_;
  std::vector<ExprId> order_;  // of the expressions, by new position
  std::set<ExprId> placed_;
  std::set<StageId> seen_;
  std::set<ExprId> looked_;
  std::vector<StageId> open_;
};

}  // namespace

Gradient without_dead(const Gradient& gradient, const Kernel& original) {
  const Compaction compaction(gradient.kernel, original);
  return {compaction.apply(gradient.kernel), compaction.mapped(gradient.heads),
          compaction.mapped(gradient.gradients)};
}

}  // namespace kiln::autodiff
