// Draws tensorize for stages that are products of the right types, first bringing their loops into
// the order that the intrinsic wants, by splits and reorders.
#include "tests/support/schedule_drawer.h"

namespace kiln::testing {
namespace {

using language::Definition;
using language::ExprId;
using language::Step;
using language::StepKind;

/// The type of the elements that a factor is read from.
std::optional<DType> type_read(const Definition& definition, ExprId id) {
  const auto* cast = std::get_if<language::CastTo>(&definition.expressions[id].node);
  const language::Expression& read = definition.expressions[cast != nullptr ? cast->operand : id];
  const bool is_read = std::holds_alternative<language::Read>(read.node);
  return is_read ? std::optional(read.type) : std::nullopt;
}

/// The intrinsic for a sum of products of such types; empty when there is none.
std::string intrinsic_for(const Definition& definition, language::StageId id) {
  if (id >= definition.stages.size()) return "";
  const auto* compute = std::get_if<language::Compute>(&definition.stages[id]);
  if (compute == nullptr || compute->bodies.size() != 1) return "";
  const auto* sum =
      std::get_if<language::Reduction>(&definition.expressions[compute->bodies[0]].node);
  if (sum == nullptr || sum->combiner != language::Combiner::Sum || sum->condition) return "";
  const auto* product =
      std::get_if<language::Operation>(&definition.expressions[sum->sources[0]].node);
  if (product == nullptr || product->op != language::Operator::Mul) return "";
  const auto a = type_read(definition, product->operands[0]);
  const auto b = type_read(definition, product->operands[1]);
  const bool is_dot = sum->axes.size() == 2;
  if (is_dot && a == DType::UInt8 && b == DType::Int8) return "x86.dot.u8s8s32";
  if (is_dot && a == DType::BFloat16 && b == DType::BFloat16) return "x86.dot.bf16f32";
  if (sum->axes.size() == 1 && a == DType::Float32 && b == DType::Float32) return "x86.fma.f32";
  return "";
}

size_t place_of(const DrawnStage& stage, language::AxisId axis) {
  size_t place = 0;
  while (stage.leaves[place].axis != axis)
    ++place;
  return place;
}

/// Puts the loop over the reduction where the tile's outermost loop stood.
void reduce_outside(ScheduleDrawer& drawer, DrawnStage& stage, const std::vector<size_t>& order,
                    size_t first) {
  Step step{.kind = StepKind::Reorder, .stage = stage.stage};
  const std::vector<Leaf> before = stage.leaves;
  for (size_t i = 0; i < order.size(); ++i) {
    stage.leaves[first + i] = before[order[i]];
    step.axes.push_back(before[order[i]].axis);
  }
  drawer.add(step);
}

}  // namespace

template <>
void draw<StepKind::Tensorize>(ScheduleDrawer& drawer, DrawnStage& stage) {
  const std::string intrinsic = intrinsic_for(drawer.definition, stage.stage);
  const bool is_dot = intrinsic.starts_with("x86.dot");
  if (intrinsic.empty() || stage.placed || stage.leaves.size() != (is_dot ? 4 : 3)) return;
  if (drawer.is_touched(stage.stage)) return;
  const std::optional<int64_t> columns = stage.leaves[1].extent;
  if (!columns || *columns % 16 != 0 || *columns > 32) return;
  const language::AxisId column = stage.leaves[1].axis;
  language::AxisId tile = column;
  if (!is_dot && drawer.random.chance(0.5)) {
    draw<StepKind::Split>(drawer, stage);
    // Some other axis may have been split.
    const std::vector<Leaf>& leaves = stage.leaves;
    if (leaves.size() != 4 || leaves[2].axis != column || !leaves[1].extent) return;
    if (*leaves[1].extent * (*columns / 16) > 28) return;
    tile = leaves[1].axis;
    reduce_outside(drawer, stage, {3, 1, 2}, 1);
  } else {
    reduce_outside(drawer, stage, {2, 1}, 1);
  }
  drawer.add({.kind = StepKind::Tensorize, .stage = stage.stage, .axes = {tile}, .tag = intrinsic});
  for (size_t i = place_of(stage, tile); i < stage.leaves.size(); ++i)
    stage.leaves[i].taken = true;
}

}  // namespace kiln::testing
