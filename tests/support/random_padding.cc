// Draws products that are padded inside, in the ways in which people write the condition, and the
// step cache_padded for them.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tests/support/schedule_drawer.h"
#include "tests/support/stage_kinds.h"

namespace kiln::testing {
namespace {

using language::Definition;
using language::ExprId;
using language::Operator;
using language::StageId;
using language::TensorId;

/// Calls `f` for each node below an expression of a definition.
void for_each_node(const Definition& definition, ExprId id, const std::function<void(ExprId)>& f) {
  f(id);
  const auto& node = definition.expressions[id].node;
  const auto all = [&](const std::vector<ExprId>& list) {
    for (const ExprId expr : list)
      for_each_node(definition, expr, f);
  };
  if (const auto* operation = std::get_if<language::Operation>(&node)) all(operation->operands);
  if (const auto* cast = std::get_if<language::CastTo>(&node)) all({cast->operand});
  if (const auto* reduction = std::get_if<language::Reduction>(&node))
    all(language::parts_of(*reduction));
}

/// The tensors that a stage chooses between an element of and something else.
std::vector<TensorId> chosen_tensors(const Definition& definition, StageId stage) {
  std::vector<TensorId> tensors;
  if (stage >= definition.stages.size()) return tensors;
  const auto* compute = std::get_if<language::Compute>(&definition.stages[stage]);
  if (compute == nullptr) return tensors;
  const auto collect = [&](ExprId id) {
    const auto* choice = std::get_if<language::Operation>(&definition.expressions[id].node);
    if (choice == nullptr || choice->op != Operator::IfThenElse) return;
    for (size_t i = 1; i < 3; ++i) {
      const auto& branch = definition.expressions[choice->operands[i]].node;
      if (const auto* read = std::get_if<language::Read>(&branch)) tensors.push_back(read->tensor);
    }
  };
  for (const ExprId body : compute->bodies)
    for_each_node(definition, body, collect);
  return tensors;
}

}  // namespace

bool add_padded_product(KernelWriter& writer, const DrawnTensor& source) {
  if (source.rank() == 0 || source.rank() > 2 || source.type() == DType::Bool) return false;
  Random& random = writer.random;
  const int dimension = random.below(static_cast<int>(source.rank()));
  const DrawnExtent window{.offset = random.between(1, 3)};
  const DrawnExtent filters{.offset = random.between(1, 6)};
  const auto fixed = [](DrawnExtent extent) {
    extent.value = extent.offset;
    return extent;
  };
  std::vector<std::string> axes = KernelWriter::axes_of(source.rank() + 1);
  std::vector<DrawnExtent> shape = source.shape;
  shape.push_back(fixed(filters));
  std::vector<std::string> indices(axes.begin(), axes.end() - 1);
  std::string& moved = indices[static_cast<size_t>(dimension)];
  const std::string dilated = random.chance(0.3) ? "r * 2" : "r";
  moved = fmt::format("{} + {} - {}", moved, dilated, random.between(0, 2));
  const std::string end = source.shape[static_cast<size_t>(dimension)].text();
  const std::string inside = random.chance(0.7)
                                 ? fmt::format("0 <= {0} && {0} < {1}", moved, end)
                                 : fmt::format("!({0} < 0 || {1} <= {0})", moved, end);
  const Term element = KernelWriter::read(source, indices);
  const Term other = writer.literal(source.type());
  const Term chosen{fmt::format("if_then_else({}, {}, {})", inside, element.text, other.text),
                    larger(element, other).values};
  const DrawnTensor weights = writer.add_own_input({fixed(filters), fixed(window)}, source.type());
  const Term weight = KernelWriter::read(weights, {axes.back(), "r"});
  const bool is_first = random.chance(0.5);
  const Term each = summand(is_first ? chosen : weight, is_first ? weight : chosen, window.offset);
  writer.add_compute(shape, axes,
                     {fmt::format("sum[r < {}]({})", window.offset, each.text),
                      sum_of(each.values, window.offset)});
  return true;
}

template <>
void draw<StepKind::CachePadded>(ScheduleDrawer& drawer, DrawnStage& stage) {
  std::vector<TensorId> choices = chosen_tensors(drawer.definition, stage.stage);
  const std::vector<StageId> inputs = drawer.inputs_of(stage.stage);
  std::erase_if(choices, [&](TensorId tensor) {
    return std::ranges::find(inputs, tensor.stage) == inputs.end();
  });
  if (choices.empty()) return;
  const TensorId tensor = drawer.random.pick(choices);
  const std::vector<StageId> readers = {stage.stage};
  // `stage` does not outlive the next line, which adds a stage.
  const StageId copy = add_stage(drawer, {.kind = language::StepKind::CachePadded,
                                          .stage = tensor.stage,
                                          .output = tensor.output,
                                          .readers = readers});
  drawer.redirect(tensor.stage, readers, copy);
}

}  // namespace kiln::testing
