// The inverse of join: stages of one kernel as kernels that hand values to each other, so that a
// plan can fuse them as it sees fit, and what others have computed already is not computed again.
//
//   kernel(x) { h = exp(x)  y = h * h }, h known   ->   kernel(h) { y = h * h }
#include "compiler/program/split.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/language/wire/canonical.h"

namespace kiln::program {
namespace {

using namespace language;

class Splitter {
 public:
  Splitter(const Kernel& whole, const std::function<bool(TensorId)>& is_known)
      : whole_(whole), definition_(whole.definition), is_known_(is_known) {}

  std::vector<Piece> run(const std::vector<TensorId>& wanted) {
    for (const TensorId tensor : wanted)
      need(tensor);
    const bool has_scan = std::ranges::any_of(
        needed_, [&](StageId id) { return std::holds_alternative<Scan>(definition_.stages[id]); });
    if (has_scan) return {piece(needed_, wanted)};
    std::vector<Piece> pieces;
    for (const StageId id : needed_) {
      std::vector<TensorId> made;
      for (uint32_t output = 0; output < output_count(definition_.stages[id]); ++output)
        made.push_back({id, output});
      pieces.push_back(piece({id}, made));
    }
    return pieces;
  }

 private:
  bool is_given(TensorId tensor) const {
    return std::ranges::find(definition_.parameters, tensor) != definition_.parameters.end() &&
           std::holds_alternative<Placeholder>(definition_.stages[tensor.stage]);
  }

  /// The stage of a tensor and all that it needs. By hand, not by recursion: chains can be long.
  void need(TensorId tensor) {
    std::vector<TensorId> open = {tensor};
    while (!open.empty()) {
      const TensorId at = open.back();
      open.pop_back();
      if (is_known_(at) || is_given(at) || !needed_.insert(at.stage).second) continue;
      const std::set<TensorId> read = reads(at.stage);
      open.insert(open.end(), read.begin(), read.end());
    }
  }

  std::set<TensorId> reads(StageId id) const {
    std::set<TensorId> found;
    const Stage& stage = definition_.stages[id];
    if (const auto* scan = std::get_if<Scan>(&stage)) {
      for (const auto* list : {&scan->init, &scan->update, &scan->state, &scan->inputs})
        found.insert(list->begin(), list->end());
    }
    if (const auto* scatter = std::get_if<Scatter>(&stage)) found.insert(scatter->base);
    std::vector<ExprId> open = bodies_of(stage);
    for (const AxisId axis : axes_of(stage))
      open.insert(open.end(), {definition_.axes[axis].minimum, definition_.axes[axis].extent});
    std::set<ExprId> seen;
    while (!open.empty()) {
      const ExprId at = open.back();
      open.pop_back();
      if (seen.insert(at).second) visit(at, open, found);
    }
    return found;
  }

  void visit(ExprId id, std::vector<ExprId>& open, std::set<TensorId>& found) const {
    const auto& node = definition_.expressions[id].node;
    const auto add = [&](const std::vector<ExprId>& ids) {
      open.insert(open.end(), ids.begin(), ids.end());
    };
    if (const auto* read = std::get_if<Read>(&node)) {
      found.insert(read->tensor);
      add(read->indices);
    } else if (const auto* operation = std::get_if<Operation>(&node)) {
      add(operation->operands);
    } else if (const auto* cast = std::get_if<CastTo>(&node)) {
      open.push_back(cast->operand);
    } else if (const auto* reduction = std::get_if<Reduction>(&node)) {
      add(parts_of(*reduction));
      for (const AxisId axis : reduction->axes)
        add({definition_.axes[axis].minimum, definition_.axes[axis].extent});
    }
  }

  /// The stages, with a placeholder for each tensor of another one that they read.
  Piece piece(const std::set<StageId>& stages, const std::vector<TensorId>& made) const {
    Piece piece{.kernel = whole_, .reads = {}, .makes = made};
    Definition& to = piece.kernel.definition;
    SourceMap& names = piece.kernel.names;
    std::map<TensorId, TensorId> placeholders;
    to.parameters.clear();
    for (const StageId id : stages) {
      for (const TensorId tensor : reads(id)) {
        if (stages.count(tensor.stage) != 0 || placeholders.count(tensor) != 0) continue;
        const TensorId placeholder = {static_cast<StageId>(to.stages.size()), 0};
        to.stages.emplace_back(
            Placeholder{definition_.type_of(tensor), definition_.shape_of(tensor)});
        names.stages.push_back(whole_.names.tensor_name(definition_, tensor));
        names.stage_lines.resize(to.stages.size());
        placeholders[tensor] = placeholder;
        piece.reads.push_back(tensor);
        to.parameters.push_back(placeholder);
      }
    }
    replace(to, stages, placeholders);
    to.parameters.insert(to.parameters.end(), made.begin(), made.end());
    names.kernel = whole_.names.tensor_name(definition_, made[0]);
    piece.kernel = canonicalize(piece.kernel, {}).kernel;
    return piece;
  }

  static void replace(Definition& to, const std::set<StageId>& stages,
                      const std::map<TensorId, TensorId>& placeholders) {
    const auto take = [&](TensorId& tensor) {
      const auto placeholder = placeholders.find(tensor);
      if (placeholder != placeholders.end()) tensor = placeholder->second;
    };
    for (Expression& expression : to.expressions) {
      if (auto* read = std::get_if<Read>(&expression.node)) take(read->tensor);
    }
    for (const StageId id : stages) {
      if (auto* scatter = std::get_if<Scatter>(&to.stages[id])) take(scatter->base);
      auto* scan = std::get_if<Scan>(&to.stages[id]);
      if (scan == nullptr) continue;
      for (auto* list : {&scan->init, &scan->update, &scan->state, &scan->inputs})
        std::ranges::for_each(*list, take);
    }
  }

  const Kernel& whole_;
  const Definition& definition_;
  const std::function<bool(TensorId)>& is_known_;
  std::set<StageId> needed_;
};

}  // namespace

std::vector<Piece> split(const Kernel& kernel, const std::vector<TensorId>& wanted,
                         const std::function<bool(TensorId)>& is_known) {
  return Splitter(kernel, is_known).run(wanted);
}

}  // namespace kiln::program
