// Checks axes, shapes and bounds: each axis has one owner and one kind, shapes use sizes alone, and
// bounds of a reduction use what stands outside of it.
//
//   sum[l < k](..) inside sum[k < n](..)     allowed: k is outside
//   C: float32[i] over axis i                refused: a shape may use sizes only
//
// Scatters are checked here whole: rank, types, how they combine.
#include <algorithm>
#include <unordered_set>

#include "compiler/language/check/check.h"
#include "compiler/language/check/linear.h"
#include "compiler/language/describe.h"
#include "runtime/core/size_expr.h"

namespace kiln::language {
namespace {

class AxisChecker {
 public:
  explicit AxisChecker(Checked& checked)
      : checked_(checked), definition_(checked.definition()), facts_(checked.facts) {}

  void check() {
    check_bounds();
    facts_.axis_owner.assign(definition_.axes.size(), kNoOwner);
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      at_stage(checked_, id, [&] {
        std::visit([&](const auto& stage) { check_stage(id, stage); }, definition_.stages[id]);
      });
    }
  }

 private:
  /// Bounds are int64 and use earlier axes only.
  void check_bounds() {
    for (AxisId id = 0; id < definition_.axes.size(); ++id) {
      for (const ExprId bound : {definition_.axes[id].minimum, definition_.axes[id].extent}) {
        const DType type = definition_.expressions[bound].type;
        if (type != DType::Int64) {
          fail(ErrorKind::InvalidArgument, "BOUND_TYPE",
               "the bounds of axis {} are {}, but must be int64", checked_.axis(id), type);
        }
        if (facts_.expressions[bound].last_axis >= static_cast<int64_t>(id)) {
          fail(ErrorKind::InvalidArgument, "MALFORMED",
               "the bounds of axis {} use axis {}, which does not stand before it",
               checked_.axis(id),
               checked_.axis(static_cast<AxisId>(facts_.expressions[bound].last_axis)));
        }
        check_small(bound, fmt::format("the bounds of axis {}", checked_.axis(id)));
      }
    }
  }

  /// Extents of inputs are bound at each call: sizes or constants that are not negative.
  void check_stage(StageId id, const Placeholder& placeholder) {
    for (size_t i = 0; i < placeholder.shape.size(); ++i) {
      const ExprId extent = placeholder.shape[i];
      const DType type = definition_.expressions[extent].type;
      if (type != DType::Int64) {
        fail(ErrorKind::InvalidArgument, "BOUND_TYPE",
             "placeholder {}: dimension {} is {}, but must be int64", checked_.stage(id), i, type);
      }
      check_shape(id, extent);
      if (const auto value = constant_value(definition_, extent); value && *value < 0) {
        fail(ErrorKind::InvalidArgument, "NEGATIVE_EXTENT",
             "placeholder {}: dimension {} is {}, but must not be negative", checked_.stage(id), i,
             *value);
      }
    }
  }

  void check_stage(StageId id, const Compute& compute) {
    for (size_t i = 0; i < compute.axes.size(); ++i) {
      const AxisId axis = compute.axes[i];
      own(id, axis, AxisKind::Data);
      const auto minimum = constant_value(definition_, definition_.axes[axis].minimum);
      if (minimum != 0) {
        fail(ErrorKind::InvalidArgument, "AXIS_MINIMUM",
             "axis {} of {} starts at {}; the axes of a tensor start at 0", checked_.axis(axis),
             checked_.stage(id),
             text_of(definition_, checked_.kernel.names, definition_.axes[axis].minimum));
      }
      check_shape(id, definition_.axes[axis].extent);
      const auto extent = constant_value(definition_, definition_.axes[axis].extent);
      if (extent && *extent < 0) {
        fail(ErrorKind::InvalidArgument, "NEGATIVE_EXTENT",
             "{}: dimension {} is {}, but must not be negative", checked_.stage(id), i, *extent);
      }
    }
    std::vector<AxisId> outside = compute.axes;
    // Shared among the bodies: a reduction that two of them hold has its axes owned once.
    std::unordered_set<ExprId> seen;
    for (const ExprId body : compute.bodies) {
      check_reductions(id, body, outside, seen);
    }
  }

  /// Every reduction in an expression: at its top, or inside, which becomes a stage of its own.
  void check_reductions(StageId id, ExprId expr, std::vector<AxisId>& outside,
                        std::unordered_set<ExprId>& seen) {
    if (!facts_.expressions[expr].has_reduction || !seen.insert(expr).second) return;
    const auto& node = definition_.expressions[expr].node;
    if (const auto* reduction = std::get_if<Reduction>(&node)) {
      const size_t depth = outside.size();
      for (const AxisId axis : reduction->axes) {
        own(id, axis, AxisKind::Reduce);
      }
      check_reduced(id, *reduction, outside);
      for (const ExprId source : reduction->sources)
        check_reductions(id, source, outside, seen);
      if (reduction->condition) check_reductions(id, *reduction->condition, outside, seen);
      // An init is computed before the loops of its reduction, so it does not see their axes.
      outside.resize(depth);
      for (const ExprId init : reduction->init)
        check_reductions(id, init, outside, seen);
    } else if (const auto* operation = std::get_if<Operation>(&node)) {
      for (const ExprId operand : operation->operands) {
        check_reductions(id, operand, outside, seen);
      }
    } else if (const auto* cast = std::get_if<CastTo>(&node)) {
      check_reductions(id, cast->operand, outside, seen);
    } else if (const auto* read = std::get_if<Read>(&node)) {
      for (const ExprId index : read->indices) {
        check_reductions(id, index, outside, seen);
      }
    }
  }

  void check_stage(StageId id, const Scatter& scatter) {
    for (const AxisId axis : scatter.axes) {
      own(id, axis, AxisKind::Data);
      if (constant_value(definition_, definition_.axes[axis].minimum) != 0) {
        fail(ErrorKind::InvalidArgument, "AXIS_MINIMUM",
             "axis {} of {} starts at {}; the axes of a scatter start at 0", checked_.axis(axis),
             checked_.stage(id),
             text_of(definition_, checked_.kernel.names, definition_.axes[axis].minimum));
      }
      check_shape(id, definition_.axes[axis].extent);
    }
    check_scatter(id, scatter);
  }

  void check_scatter(StageId id, const Scatter& scatter) {
    const size_t rank = definition_.shape_of(scatter.base).size();
    if (scatter.indices.size() != rank) {
      fail(ErrorKind::InvalidArgument, "SCATTER_RANK",
           "{} has {} dimension{}, but {} scatters to it with {} {}", checked_.tensor(scatter.base),
           rank, rank == 1 ? "" : "s", checked_.stage(id), scatter.indices.size(),
           scatter.indices.size() == 1 ? "index" : "indices");
    }
    for (size_t i = 0; i < rank; ++i) {
      const DType type = definition_.expressions[scatter.indices[i]].type;
      if (type != DType::Int64) {
        fail(ErrorKind::InvalidArgument, "INDEX_TYPE",
             "index {} of scatter {} is {}, but must be int64; cast it", i, checked_.stage(id),
             type);
      }
    }
    const DType base = definition_.type_of(scatter.base);
    const DType update = definition_.expressions[scatter.update].type;
    if (update != base) {
      fail(ErrorKind::InvalidArgument, "SCATTER_TYPE",
           "the update of scatter {} is {}, but its base {} is {}; cast it", checked_.stage(id),
           update, checked_.tensor(scatter.base), base);
    }
    const DType operands[] = {base, update};
    if (scatter.combiner) result_type(*scatter.combiner, operands);
    for (const ExprId body : bodies_of(scatter)) {
      if (!facts_.expressions[body].has_reduction) continue;
      fail(ErrorKind::Unsupported, "SCATTER_REDUCTION",
           "{} holds a reduction; compute it in a stage of its own and scatter that",
           checked_.stage(id));
    }
  }

  void check_stage(StageId id, const Scan& scan) { own(id, scan.axis, AxisKind::Time); }

  /// Bounds of a reduced axis may use the axes of the tensor, the reduced axes outside of it, and
  /// tensors read at these.
  /// Adds the axes of the reduction to `outside`.
  void check_reduced(StageId id, const Reduction& reduction, std::vector<AxisId>& outside) {
    for (const AxisId axis : reduction.axes) {
      for (const ExprId bound : {definition_.axes[axis].minimum, definition_.axes[axis].extent}) {
        if (facts_.expressions[bound].has_reduction) {
          fail(
              ErrorKind::Unsupported, "BOUND_REDUCTION",
              "the bounds of reduce axis {} hold a reduction; compute it in a stage of its own and "
              "read that",
              checked_.axis(axis));
        }
        check_axes_of_bound(id, axis, bound, outside);
      }
      outside.push_back(axis);
    }
  }

  void check_axes_of_bound(StageId id, AxisId axis, ExprId bound,
                           const std::vector<AxisId>& outside) {
    if (facts_.expressions[bound].last_axis < 0) return;
    const auto& node = definition_.expressions[bound].node;
    if (const auto* use = std::get_if<AxisUse>(&node)) {
      if (std::find(outside.begin(), outside.end(), use->axis) != outside.end()) return;
      fail(ErrorKind::InvalidArgument, "BOUND_AXIS",
           "the bounds of reduce axis {} use axis {}, which is not outside of it in {}",
           checked_.axis(axis), checked_.axis(use->axis), checked_.stage(id));
    }
    if (const auto* operation = std::get_if<Operation>(&node)) {
      for (const ExprId operand : operation->operands) {
        check_axes_of_bound(id, axis, operand, outside);
      }
    }
    if (const auto* cast = std::get_if<CastTo>(&node)) {
      check_axes_of_bound(id, axis, cast->operand, outside);
    }
    if (const auto* read = std::get_if<Read>(&node)) {
      for (const ExprId index : read->indices) {
        check_axes_of_bound(id, axis, index, outside);
      }
    }
  }

  void check_shape(StageId id, ExprId extent) {
    const Facts::Expr& facts = facts_.expressions[extent];
    if (facts.last_axis >= 0) {
      fail(ErrorKind::InvalidArgument, "SHAPE_AXIS",
           "the shape of {} uses axis {}; shapes may use sizes only", checked_.stage(id),
           checked_.axis(static_cast<AxisId>(facts.last_axis)));
    }
    if (facts.has_read || facts.has_reduction) {
      fail(ErrorKind::InvalidArgument, "SHAPE_READS",
           "the shape of {} reads a tensor; shapes may use sizes only", checked_.stage(id));
    }
    check_small(extent, fmt::format("the shape of {}", checked_.stage(id)));
  }

  /// Bounds and shapes stand in many places and are compared, so they must be short.
  void check_small(ExprId expr, const std::string& what) {
    constexpr int64_t kMostNodes = 200;
    check_limit(what, "nodes", facts_.expressions[expr].nodes, kMostNodes);
    if (!facts_.expressions[expr].has_parameter) return;
    fail(ErrorKind::InvalidArgument, "MALFORMED", "{} uses a parameter of a reducer", what);
  }

  /// The arithmetic of loops must not reach the end of int64.
  void check_range(AxisId id) {
    const Axis& axis = definition_.axes[id];
    const int64_t extent = constant_value(definition_, axis.extent).value_or(0);
    const int64_t minimum = constant_value(definition_, axis.minimum).value_or(0);
    const bool is_near = minimum >= -kLargestSize && minimum <= kLargestSize;
    if (extent <= kLargestSize && is_near) return;
    const std::string what = fmt::format("axis {}", checked_.axis(id));
    check_limit(what, "iterations", extent, kLargestSize);
    fail(ErrorKind::ResourceExhausted, "LIMIT", "{} begins at {}; the limit is {}", what, minimum,
         minimum < 0 ? -kLargestSize : kLargestSize);
  }

  void own(StageId stage, AxisId axis, AxisKind kind) {
    const AxisKind actual = definition_.axes[axis].kind;
    if (actual != kind) {
      fail(ErrorKind::InvalidArgument, "AXIS_KIND",
           "axis {} of {} is a {} axis, but must be a {} axis", checked_.axis(axis),
           checked_.stage(stage), name_of(actual), name_of(kind));
    }
    check_range(axis);
    int& owner = facts_.axis_owner[axis];
    if (owner == static_cast<int>(stage) && kind == AxisKind::Reduce) return;  // tuples share axes
    if (owner != kNoOwner) {
      fail(ErrorKind::InvalidArgument, "AXIS_SHARED",
           "{} axis {} is used by {} and by {}; each needs one of its own", name_of(kind),
           checked_.axis(axis), checked_.stage(static_cast<StageId>(owner)), checked_.stage(stage));
    }
    owner = static_cast<int>(stage);
  }

  static std::string_view name_of(AxisKind kind) {
    switch (kind) {
      case AxisKind::Data: return "data";
      case AxisKind::Reduce: return "reduce";
      case AxisKind::Time: return "time";
    }
    return "";
  }

  Checked& checked_;
  const Definition& definition_;
  Facts& facts_;
};

}  // namespace

void check_axes(Checked& checked) { AxisChecker(checked).check(); }

}  // namespace kiln::language
