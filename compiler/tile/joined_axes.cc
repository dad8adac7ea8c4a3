// A block then has places of one long axis rather than some of each of two short ones, so that more
// of what it copies lies side by side.
//
// Two dimensions of the output are followed to all tensors that they are read in. Wherever one of
// them stands, the other has to stand behind it, each as an axis and nothing more.
#include "compiler/tile/joined_axes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/tile/index_nodes.h"

namespace kiln::tile {

using namespace language;

namespace {

/// Where the first of two dimensions is in a tensor, by its stage.
using Places = std::map<StageId, size_t>;

class AxisJoiner {
 public:
  explicit AxisJoiner(Definition& definition) : definition_(definition) {}

  void run() {
    for (const TensorId parameter : definition_.parameters) {
      if (definition_.is_output(parameter)) join_all(parameter.stage);
    }
  }

 private:
  void join_all(StageId output) {
    const auto* compute = std::get_if<Compute>(&definition_.stages[output]);
    if (compute == nullptr) return;
    for (size_t d = compute->axes.size(); d-- > 1;) {
      places_.clear();
      reads_.clear();
      if (can_join(output, d - 1) && are_all_reads_joined()) join();
    }
  }

  std::optional<int64_t> number_of(ExprId expr) const { return written_number(definition_, expr); }
  /// Whether both extents are known, and what they make.
  bool is_short(ExprId a, ExprId b) const {
    constexpr double kMost = int64_t{1} << 31;
    const std::optional<int64_t> first = number_of(a);
    const std::optional<int64_t> second = number_of(b);
    return first && second && static_cast<double>(*first) * static_cast<double>(*second) < kMost;
  }

  /// Whether dimensions d and d + 1 of a stage may be one; what is read along them is in places_
  /// then.
  bool can_join(StageId stage, size_t d) {
    const auto known = places_.find(stage);
    if (known != places_.end()) return known->second == d;
    const std::vector<ExprId> shape = definition_.shape_of({stage, 0});
    if (d + 1 >= shape.size() || !is_short(shape[d], shape[d + 1])) return false;
    places_[stage] = d;
    const auto* compute = std::get_if<Compute>(&definition_.stages[stage]);
    if (compute == nullptr) return std::holds_alternative<Placeholder>(definition_.stages[stage]);
    const auto [first, second] = std::pair(compute->axes[d], compute->axes[d + 1]);
    if (!begins_at_zero(first) || !begins_at_zero(second)) return false;
    for (const Expression& expression : definition_.expressions) {
      const auto* read = std::get_if<Read>(&expression.node);
      if (read == nullptr) continue;
      const std::vector<ExprId>& indices = read->indices;
      for (size_t i = 0; i < indices.size(); ++i) {
        const bool is_second = is_use_of(definition_, indices[i], second);
        if (is_second && (i == 0 || !is_use_of(definition_, indices[i - 1], first))) return false;
        if (!is_use_of(definition_, indices[i], first)) continue;
        const bool is_followed =
            i + 1 < indices.size() && is_use_of(definition_, indices[i + 1], second);
        if (!is_followed || !can_join(read->tensor.stage, i)) return false;
        reads_.insert(&expression);
      }
    }
    return !is_computed_with(first) && !is_computed_with(second);
  }

  /// Whether no stage reads one of the tensors otherwise.
  bool are_all_reads_joined() const {
    return std::ranges::all_of(definition_.expressions, [&](const Expression& expression) {
      const auto* read = std::get_if<Read>(&expression.node);
      return read == nullptr || !places_.contains(read->tensor.stage) ||
             reads_.contains(&expression);
    });
  }

  bool begins_at_zero(language::AxisId axis) const {
    return number_of(definition_.axes[axis].minimum) == 0;
  }

  /// Whether an axis is used elsewhere than as an index.
  bool is_computed_with(language::AxisId axis) const {
    const auto is_use = [&](ExprId expr) { return is_use_of(definition_, expr, axis); };
    const auto is_body = [&](const Stage& stage) {
      return std::ranges::any_of(bodies_of(stage), is_use);
    };
    if (std::ranges::any_of(definition_.stages, is_body)) return true;
    return std::ranges::any_of(definition_.expressions, [&](const Expression& expression) {
      if (const auto* operation = std::get_if<Operation>(&expression.node))
        return std::ranges::any_of(operation->operands, is_use);
      const auto* cast = std::get_if<CastTo>(&expression.node);
      return cast != nullptr && is_use(cast->operand);
    });
  }

  ExprId product_of(ExprId a, ExprId b) {
    const int64_t extent = *number_of(a) * *number_of(b);
    const DType type = definition_.expressions[a].type;
    definition_.expressions.push_back({type, IntegerConstant{extent}});
    return static_cast<ExprId>(definition_.expressions.size() - 1);
  }

  void join() {
    for (Expression& expression : definition_.expressions) {
      auto* read = std::get_if<Read>(&expression.node);
      if (read == nullptr) continue;
      const auto place = places_.find(read->tensor.stage);
      if (place != places_.end())
        read->indices.erase(read->indices.begin() + static_cast<std::ptrdiff_t>(place->second) + 1);
    }
    for (const auto& [id, d] : places_) {
      const auto second = static_cast<std::ptrdiff_t>(d) + 1;
      Stage& stage = definition_.stages[id];
      if (auto* placeholder = std::get_if<Placeholder>(&stage)) {
        placeholder->shape[d] = product_of(placeholder->shape[d], placeholder->shape[d + 1]);
        placeholder->shape.erase(placeholder->shape.begin() + second);
        continue;
      }
      auto& compute = std::get<Compute>(stage);
      language::Axis& axis = definition_.axes[compute.axes[d]];
      axis.extent = product_of(axis.extent, definition_.axes[compute.axes[d + 1]].extent);
      compute.axes.erase(compute.axes.begin() + second);
    }
  }

  Definition& definition_;
  Places places_;
  std::set<const Expression*> reads_;  // along both
};

}  // namespace

Kernel with_joined_axes(Kernel kernel) {
  AxisJoiner(kernel.definition).run();
  return kernel;
}

}  // namespace kiln::tile
