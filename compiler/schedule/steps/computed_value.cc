// Finds what a stage computes of an element before it uses it for anything else. Whatever else the
// expression depends on has to depend on the element's place alone: other elements would need
// another copy.
#include "compiler/schedule/steps/computed_value.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/equal.h"
#include "compiler/ir/mutator.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::schedule {
namespace {

/// Without casts that keep each value, and without the choice of a float32's bits.
ir::Expr without_widening(ir::Expr expr) {
  while (true) {
    const ir::Cast* cast = ir::as<ir::Cast>(expr);
    const ir::Call* call = ir::as<ir::Call>(expr);
    if (cast != nullptr) {
      const DType from = cast->value->type.element;
      const DType to = cast->type.element;
      const bool is_wider =
          is_float(from) == is_float(to) && size_of(to) > size_of(from) && from != DType::Bool;
      if (!is_wider) return expr;
      expr = cast->value;
    } else if (call != nullptr && call->op == language::Operator::Tf32) {
      expr = call->args[0];
    } else {
      return expr;
    }
  }
}

class FindValue {
 public:
  FindValue(const StageGraph& graph, const Stage& stage, const ir::TensorRead& element)
      : graph_(graph), element_(element) {
    for (const std::vector<AxisId>* axes : {&stage.data, &stage.reduce}) {
      for (const AxisId axis : *axes) {
        const ir::Expr value = graph.axes[axis].value;
        const bool is_index = std::ranges::find(element.indices, value) != element.indices.end();
        if (!is_index) others_.push_back(graph.axes[axis].value);
      }
    }
  }

  /// The largest ones in `expr`, without what stays with the reader.
  void collect(const ir::Expr& expr) {
    if (!reads_element(expr)) return;
    if (!is_of_element(expr)) {
      for (const ir::Expr& part : ir::operands_of(expr))
        collect(part);
      return;
    }
    const ir::Expr value = without_widening(expr);
    const auto is_same = [&](const ir::Expr& other) { return ir::equal_trees(other, value); };
    if (std::ranges::none_of(found, is_same)) found.push_back(value);
  }

  std::vector<ir::Expr> found;

 private:
  bool is_element(const ir::Expr& expr) const {
    return ir::as<ir::TensorRead>(expr) != nullptr && ir::equal_trees(expr, ir::Expr(&element_));
  }
  bool reads_element(const ir::Expr& expr) const {
    bool found = false;
    for_each_read(expr, [&](const ir::TensorRead& read) {
      found = found || ir::equal_trees(ir::Expr(&read), ir::Expr(&element_));
    });
    return found;
  }
  bool is_of_place(const ir::Expr& expr) const {
    return std::ranges::none_of(others_,
                                [&](const ir::VarRef& axis) { return ir::uses_var(expr, axis); });
  }
  bool is_of_element(const ir::Expr& expr) const {
    if (is_element(expr)) return true;
    if (ir::as<ir::Reduce>(expr) != nullptr) return false;
    if (const auto* read = ir::as<ir::TensorRead>(expr)) {
      return !graph_[read->stage].part_of && std::ranges::none_of(read->indices, has_read) &&
             is_of_place(expr);
    }
    if (ir::as<ir::Var>(expr) != nullptr) return is_of_place(expr);
    return std::ranges::all_of(ir::operands_of(expr),
                               [&](const ir::Expr& part) { return is_of_element(part); });
  }

  const StageGraph& graph_;
  const ir::TensorRead& element_;
  std::vector<ir::VarRef> others_;  // loops that are no index of the element
};

}  // namespace

std::optional<ComputedValue> find_computed_value(const StageGraph& graph, StageId part,
                                                 TensorId tensor) {
  std::vector<const ir::TensorRead*> reads;
  for (const ir::Expr& body : graph[part].bodies) {
    for_each_read(body, [&](const ir::TensorRead& read) {
      const bool is_own = TensorId{read.stage, read.output} == tensor;
      const auto is_same = [&](const ir::TensorRead* other) {
        return ir::equal_trees(ir::Expr(other), ir::Expr(&read));
      };
      if (is_own && std::ranges::none_of(reads, is_same)) reads.push_back(&read);
    });
  }
  if (reads.size() != 1) return std::nullopt;
  FindValue find(graph, graph[part], *reads[0]);
  for (const ir::Expr& body : graph[part].bodies)
    find.collect(body);
  if (find.found.size() != 1 || ir::as<ir::TensorRead>(find.found[0]) != nullptr)
    return std::nullopt;
  return ComputedValue{find.found[0], reads[0]};
}

}  // namespace kiln::schedule
