// A filter of one place is no window: what it reads is the image, which copies without threads
// reach.
#include "compiler/tile/without_ones.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/tile/index_nodes.h"

namespace kiln::tile {

using namespace language;

namespace {

class OnesRemover {
 public:
  explicit OnesRemover(Definition& definition) : definition_(definition) {}

  void run() {
    for (Expression& expression : definition_.expressions) {
      if (auto* reduction = std::get_if<Reduction>(&expression.node)) remove_axes(*reduction);
    }
    fold();
    for (const TensorId parameter : definition_.parameters) {
      if (std::holds_alternative<Placeholder>(definition_.stages[parameter.stage]))
        remove_dimensions(parameter);
    }
  }

 private:
  std::optional<int64_t> number_of(ExprId expr) const { return written_number(definition_, expr); }
  bool is_one_place(language::AxisId axis) const {
    const language::Axis& of = definition_.axes[axis];
    return of.kind == AxisKind::Reduce && number_of(of.extent) == 1 && number_of(of.minimum) == 0;
  }

  /// As the places of a filter are, but not its channels.
  bool is_part_of_an_index(language::AxisId axis) const {
    return std::ranges::any_of(definition_.expressions, [&](const Expression& expression) {
      const auto* operation = std::get_if<Operation>(&expression.node);
      return operation != nullptr && std::ranges::any_of(operation->operands, [&](ExprId operand) {
               return is_use_of(definition_, operand, axis);
             });
    });
  }

  /// A use of an axis that is gone is 0.
  void remove_axes(Reduction& reduction) {
    for (size_t i = reduction.axes.size(); i-- > 0 && reduction.axes.size() > 1;) {
      const language::AxisId axis = reduction.axes[i];
      if (!is_one_place(axis) || !is_part_of_an_index(axis)) continue;
      for (Expression& expression : definition_.expressions) {
        const auto* use = std::get_if<AxisUse>(&expression.node);
        if (use != nullptr && use->axis == axis) expression.node = IntegerConstant{0};
      }
      reduction.axes.erase(reduction.axes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// y*1 + 0 -> y. Operands come before what is made of them.
  void fold() {
    for (Expression& expression : definition_.expressions) {
      const auto* operation = std::get_if<Operation>(&expression.node);
      if (operation == nullptr || operation->operands.size() != 2 ||
          expression.type != DType::Int64)
        continue;
      const bool is_sum = operation->op == Operator::Add;
      if (!is_sum && operation->op != Operator::Mul) continue;
      const auto [first, second] = std::pair(operation->operands[0], operation->operands[1]);
      const int64_t neutral = is_sum ? 0 : 1;
      if (number_of(first) != neutral && number_of(second) != neutral) continue;
      const ExprId left = number_of(second) == neutral ? first : second;
      auto node = definition_.expressions[left].node;
      expression.node = std::move(node);
    }
  }

  bool is_zero(ExprId expr) const { return number_of(expr) == 0; }

  void remove_dimensions(TensorId tensor) {
    auto& shape = std::get<Placeholder>(definition_.stages[tensor.stage]).shape;
    for (size_t d = shape.size(); d-- > 0 && shape.size() > 1;) {
      const auto stays = [&](const Expression& expression) {
        const auto* read = std::get_if<Read>(&expression.node);
        return read != nullptr && read->tensor == tensor && !is_zero(read->indices[d]);
      };
      if (number_of(shape[d]) != 1 || std::ranges::any_of(definition_.expressions, stays)) continue;
      const auto at = static_cast<std::ptrdiff_t>(d);
      shape.erase(shape.begin() + at);
      for (Expression& expression : definition_.expressions) {
        auto* read = std::get_if<Read>(&expression.node);
        if (read != nullptr && read->tensor == tensor)
          read->indices.erase(read->indices.begin() + at);
      }
    }
  }

  Definition& definition_;
};

}  // namespace

Kernel without_ones(Kernel kernel) {
  OnesRemover(kernel.definition).run();
  return kernel;
}

}  // namespace kiln::tile
