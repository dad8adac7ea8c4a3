// Scatter calls as stages: the axes from the ranges, the operands in order, and how it combines
// from the name.
//
//   S = scatter_add[r < m](B, I[r], U[r])  ->  S is B, and S[I[r]] = S[I[r]] + U[r] for each r
#include <algorithm>

#include "compiler/language/text/build_text.h"

namespace kiln::language::syntax {
namespace {

struct Function {
  std::string_view name;
  std::optional<Operator> combiner;
};
constexpr Function kFunctions[] = {{"scatter", std::nullopt},
                                   {"scatter_add", Operator::Add},
                                   {"scatter_min", Operator::Min},
                                   {"scatter_max", Operator::Max}};

std::optional<Operator> combiner_of(const Workspace& work, const ScatterCall& call) {
  for (const Function& function : kFunctions) {
    if (function.name == call.function) return function.combiner;
  }
  work.source.refuse(call.place,
                     "unknown function {}; a scatter is scatter_add, scatter_min, scatter_max or "
                     "scatter",
                     call.function.substr(0, 64));
}

/// r < m
void add_axis(Workspace& work, ExpressionBuilder& sizes, int id, LeftSide& left) {
  const Node& less = work.tree.nodes[static_cast<size_t>(id)];
  const bool is_range =
      less.kind == Node::Kind::Apply && less.op == Operator::Less &&
      work.tree.nodes[static_cast<size_t>(less.children[0])].kind == Node::Kind::Name;
  if (!is_range) work.source.refuse(less.place, "expected a range such as r < m");
  const Node& name = work.tree.nodes[static_cast<size_t>(less.children[0])];
  const bool is_axis =
      std::find(left.names.begin(), left.names.end(), name.text) != left.names.end();
  if (is_axis || work.sizes.contains(name.text)) {
    work.source.refuse(name.place, "{} is {} already; give the axis another name", name.text,
                       is_axis ? "an axis" : "a size");
  }
  const ExprId extent = sizes.index(less.children[1]);
  left.names.emplace_back(name.text);
  left.axes.push_back(work.add_axis(AxisKind::Data, name.text, work.integer(0), extent));
}

}  // namespace

StageId build_scatter(Workspace& work, const ScatterCall& call) {
  Scatter scatter;
  scatter.combiner = combiner_of(work, call);
  LeftSide left{.stage = std::string(call.name), .names = {}, .axes = {}};
  ExpressionBuilder sizes(work, {});
  for (const int range : call.ranges)
    add_axis(work, sizes, range, left);
  scatter.axes = left.axes;
  if (call.arguments.size() < 2) {
    work.source.refuse(call.place, "{} takes the base, an index for each dimension, and the update",
                       call.function);
  }
  const Node& base = work.tree.nodes[static_cast<size_t>(call.arguments[0])];
  if (base.kind != Node::Kind::Name) {
    work.source.refuse(base.place, "the base of a scatter is the name of a tensor");
  }
  scatter.base = sizes.tensor_named(call.arguments[0]);
  const DType type = work.definition.type_of(scatter.base);
  const size_t rank = work.definition.shape_of(scatter.base).size();
  if (call.arguments.size() != rank + 2) {
    work.source.refuse(call.place, "{} has {} dimension{}, but {} got {} {}", base.text, rank,
                       rank == 1 ? "" : "s", call.function, call.arguments.size() - 2,
                       call.arguments.size() == 3 ? "index" : "indices");
  }
  ExpressionBuilder builder(work, left);
  for (size_t i = 1; i + 1 < call.arguments.size(); ++i)
    scatter.indices.push_back(builder.index(call.arguments[i]));
  scatter.update = builder.body(call.arguments.back(), type);
  const DType actual = work.definition.expressions[scatter.update].type;
  if (actual != type) {
    work.source.refuse(work.tree.nodes[static_cast<size_t>(call.arguments.back())].place,
                       "{} is {}, but the update is {}; cast it, as in {}(...)", base.text, type,
                       actual, type);
  }
  return work.add_stage(std::move(scatter), std::string(call.name), call.place);
}

}  // namespace kiln::language::syntax
