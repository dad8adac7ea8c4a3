// Follows what a factor reads to a parameter, and says whether a window of it is that: a part of an
// image, with 0 around it.
#include "compiler/tile/find_window.h"

#include <algorithm>

#include "compiler/tile/form_error.h"
#include "compiler/tile/program.h"

namespace kiln::tile {

using namespace language;

namespace {

constexpr int64_t kMostNumber = int64_t{1} << 31;  // of what indices are made of

/// a + b * factor; nothing where a number is too large.
std::optional<AffineIndex> sum(AffineIndex a, const AffineIndex& b, int64_t factor) {
  const auto add = [&](int64_t& to, int64_t number) {
    to += factor * number;
    return std::abs(to) < kMostNumber;
  };
  if (std::abs(factor) >= kMostNumber || !add(a.constant, b.constant)) return std::nullopt;
  for (const auto& [axis, number] : b.factors) {
    if (!add(a.factors[axis], number)) return std::nullopt;
    if (a.factors[axis] == 0) a.factors.erase(axis);
  }
  return a;
}

class FactorFinder {
 public:
  explicit FactorFinder(const Definition& definition) : definition_(definition) {}

  std::optional<FactorRead> find(ExprId expr, const Substituted& axes) {
    const auto& node = definition_.expressions[expr].node;
    if (const auto* cast = std::get_if<CastTo>(&node)) {
      types_.push_back(definition_.expressions[expr].type);
      return find(cast->operand, axes);
    }
    if (const auto* operation = std::get_if<Operation>(&node)) {
      if (operation->op == Operator::Tf32) {
        in_tf32_ = true;
        return find(operation->operands[0], axes);
      }
      const bool is_choice =
          operation->op == Operator::IfThenElse || operation->op == Operator::Select;
      if (!is_choice || !is_zero(operation->operands[2]) ||
          !add_condition(operation->operands[0], axes))
        return std::nullopt;
      return find(operation->operands[1], axes);
    }
    const auto* read = std::get_if<Read>(&node);
    if (read == nullptr) return std::nullopt;
    std::vector<AffineIndex> indices;
    for (const ExprId index : read->indices) {
      std::optional<AffineIndex> affine = affine_of(index, axes);
      if (!affine) return std::nullopt;
      indices.push_back(std::move(*affine));
    }
    const Stage& stage = definition_.stages[read->tensor.stage];
    if (const auto* placeholder = std::get_if<Placeholder>(&stage)) {
      // A type between its own and that of the sum might round it.
      const auto is_exact = [&](DType type) {
        return type == placeholder->type || type == sum_type_of(placeholder->type);
      };
      if (!std::ranges::all_of(types_, is_exact)) return std::nullopt;
      return FactorRead{read->tensor, std::move(indices), std::move(inside_), in_tf32_};
    }
    const auto* compute = std::get_if<Compute>(&stage);
    if (compute == nullptr || compute->bodies.size() != 1) return std::nullopt;
    Substituted inner;
    for (size_t d = 0; d < indices.size(); ++d)
      inner[compute->axes[d]] = std::move(indices[d]);
    return find(compute->bodies[0], inner);
  }

 private:
  bool is_zero(ExprId expr) const {
    const auto& node = definition_.expressions[expr].node;
    if (const auto* cast = std::get_if<CastTo>(&node)) return is_zero(cast->operand);
    if (const auto* number = std::get_if<FloatConstant>(&node)) return number->value == 0;
    const auto* number = std::get_if<IntegerConstant>(&node);
    return number != nullptr && number->value == 0;
  }

  std::optional<AffineIndex> affine_of(ExprId expr, const Substituted& axes) const {
    const auto& node = definition_.expressions[expr].node;
    if (const auto* number = std::get_if<IntegerConstant>(&node)) {
      if (std::abs(number->value) >= kMostNumber) return std::nullopt;
      return AffineIndex{{}, number->value};
    }
    if (const auto* use = std::get_if<AxisUse>(&node)) {
      const auto found = axes.find(use->axis);
      return found == axes.end() ? std::nullopt : std::optional(found->second);
    }
    const auto* operation = std::get_if<Operation>(&node);
    if (operation == nullptr || operation->operands.size() != 2) return std::nullopt;
    const std::optional<AffineIndex> a = affine_of(operation->operands[0], axes);
    const std::optional<AffineIndex> b = affine_of(operation->operands[1], axes);
    if (!a || !b) return std::nullopt;
    switch (operation->op) {
      case Operator::Add: return sum(*a, *b, 1);
      case Operator::Sub: return sum(*a, *b, -1);
      case Operator::Mul:
        if (b->factors.empty()) return sum({}, *a, b->constant);
        if (a->factors.empty()) return sum({}, *b, a->constant);
        return std::nullopt;
      default: return std::nullopt;
    }
  }

  /// Comparisons of indices, all of which hold.
  bool add_condition(ExprId expr, const Substituted& axes) {
    const auto* operation = std::get_if<Operation>(&definition_.expressions[expr].node);
    if (operation == nullptr || operation->operands.size() != 2) return false;
    const auto [left, right] = std::pair(operation->operands[0], operation->operands[1]);
    switch (operation->op) {
      case Operator::And: return add_condition(left, axes) && add_condition(right, axes);
      case Operator::GreaterEqual: return add_order(left, right, 0, axes);
      case Operator::Greater: return add_order(left, right, 1, axes);
      case Operator::LessEqual: return add_order(right, left, 0, axes);
      case Operator::Less: return add_order(right, left, 1, axes);
      default: return false;
    }
  }

  /// large - small >= least
  bool add_order(ExprId large, ExprId small, int64_t least, const Substituted& axes) {
    const std::optional<AffineIndex> a = affine_of(large, axes);
    const std::optional<AffineIndex> b = affine_of(small, axes);
    std::optional<AffineIndex> difference = a && b ? sum(*a, *b, -1) : std::nullopt;
    if (!difference) return false;
    difference->constant -= least;
    inside_.push_back(std::move(*difference));
    return true;
  }

  const Definition& definition_;
  std::vector<AffineIndex> inside_;
  std::vector<DType> types_;  // of the casts
  bool in_tf32_ = false;
};

class WindowCheck {
 public:
  WindowCheck(const Definition& definition, const FactorRead& read)
      : definition_(definition), read_(read), shape_(definition.shape_of(read.tensor)) {}

  language::AxisId run(const std::vector<language::AxisId>& sums) const {
    if (read_.indices.empty()) refuse_form("it reads a tensor without dimensions");
    for (const AffineIndex& condition : read_.inside)
      require_of_tensor(condition);
    for (size_t d = 0; d < shape_.size(); ++d)
      require_inside(d);
    const std::optional<language::AxisId> along = read_.indices.back().axis();
    const bool is_sum = along && std::ranges::count(sums, *along) > 0;
    if (!is_sum || extent_of(*along) != known(shape_.back()))
      refuse_form("a window of it is not summed over all of its last dimension");
    for (size_t d = 0; d + 1 < shape_.size(); ++d) {
      if (read_.indices[d].factors.contains(*along))
        refuse_form("what it reads has one axis twice");
    }
    return *along;
  }

 private:
  std::optional<int64_t> known(ExprId extent) const {
    const auto* number = std::get_if<IntegerConstant>(&definition_.expressions[extent].node);
    return number != nullptr ? std::optional(number->value) : std::nullopt;
  }
  std::optional<int64_t> extent_of(language::AxisId axis) const {
    return known(definition_.axes[axis].extent);
  }

  /// The least that it can be.
  std::optional<int64_t> least(const AffineIndex& index) const {
    int64_t result = index.constant;
    for (const auto& [axis, factor] : index.factors) {
      if (factor > 0) continue;
      const std::optional<int64_t> extent = extent_of(axis);
      if (!extent || *extent >= kMostNumber) return std::nullopt;
      result += factor * (*extent - 1);
    }
    return result;
  }
  bool is_never_negative(const AffineIndex& index) const {
    const std::optional<int64_t> found = least(index);
    return found && *found >= 0;
  }

  /// What is not negative while the index has not passed the last element.
  std::optional<AffineIndex> before_end(size_t d) const {
    const std::optional<int64_t> extent = known(shape_[d]);
    if (!extent || *extent >= kMostNumber) return std::nullopt;
    return sum({{}, *extent - 1}, read_.indices[d], -1);
  }

  /// A condition that is more than where the tensor is makes something else 0.
  void require_of_tensor(const AffineIndex& condition) const {
    if (is_never_negative(condition)) return;
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (condition == read_.indices[d] || condition == before_end(d)) return;
    }
    refuse_form("a factor is 0 elsewhere than around a tensor");
  }

  bool is_all_of(const AffineIndex& index, ExprId extent) const {
    const std::optional<language::AxisId> axis = index.axis();
    if (!axis) return false;
    const auto size_of = [&](ExprId expr) {
      const auto* use = std::get_if<VariableUse>(&definition_.expressions[expr].node);
      return use != nullptr ? std::optional(use->variable) : std::nullopt;
    };
    const ExprId own = definition_.axes[*axis].extent;
    return (known(own) && known(own) == known(extent)) ||
           (size_of(own) && size_of(own) == size_of(extent));
  }

  void require_inside(size_t d) const {
    const AffineIndex& index = read_.indices[d];
    if (is_all_of(index, shape_[d])) {
      if (d > 0 && !known(shape_[d])) refuse_form("the call says how large an image is");
      return;
    }
    const std::optional<AffineIndex> end = before_end(d);
    if (!end) refuse_form("the call says how large an image is");
    for (const AffineIndex& needed : {index, *end}) {
      if (!is_never_negative(needed) && std::ranges::count(read_.inside, needed) == 0)
        refuse_form("a window of it may leave a tensor");
    }
  }

  const Definition& definition_;
  const FactorRead& read_;
  const std::vector<ExprId> shape_;
};

}  // namespace

std::optional<language::AxisId> AffineIndex::axis() const {
  if (constant != 0 || factors.size() != 1 || factors.begin()->second != 1) return std::nullopt;
  return factors.begin()->first;
}

std::optional<FactorRead> find_factor(const Definition& definition, ExprId expr,
                                      const Substituted& axes) {
  return FactorFinder(definition).find(expr, axes);
}

language::AxisId require_window(const Definition& definition, const FactorRead& read,
                                const std::vector<language::AxisId>& sums) {
  return WindowCheck(definition, read).run(sums);
}

}  // namespace kiln::tile
