// Walks the bodies of each stage: which tensors it reads, that axes stand in their scope, and that
// constant indices are inside.
//
//   if_then_else(i > 0, X[0], ..)     a guarded read: it may not happen, so X[0] is not checked
//
// Definitions share parts, so each expression is visited once for how certainly it is computed:
// once guarded, and again if it is also reached for certain.
#include <algorithm>

#include "compiler/language/check/check.h"
#include "compiler/language/check/linear.h"
#include "compiler/language/describe.h"

namespace kiln::language {
namespace {

/// Walks the bodies of one stage.
class StageChecker {
 public:
  StageChecker(Checked& checked, StageId stage, std::vector<uint8_t>& seen)
      : checked_(checked),
        definition_(checked.definition()),
        stage_(stage),
        bodies_(bodies_of(definition_.stages[stage])),
        axes_(axes_of(definition_.stages[stage])),
        seen_(seen) {}

  void check() {
    check_reductions_agree();
    for (const ExprId body : bodies_) {
      if (checked_.facts.expressions[body].has_parameter) {
        fail(ErrorKind::InvalidArgument, "MALFORMED", "{} uses a parameter of a reducer",
             checked_.stage(stage_));
      }
      visit(body, kCertain);
      for (const ExprId id : touched_) {
        seen_[id] = 0;
      }
      touched_.clear();
    }
    auto& reads = checked_.facts.stage_reads[stage_];
    if (const auto* scatter = std::get_if<Scatter>(&definition_.stages[stage_])) {
      reads.push_back(scatter->base);
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  }

 private:
  /// How an expression is reached: an if_then_else may never compute it.
  static constexpr uint8_t kGuarded = 1;
  static constexpr uint8_t kCertain = 2;

  const Reduction* reduction_at(ExprId expr) const {
    return std::get_if<Reduction>(&definition_.expressions[expr].node);
  }

  /// A tuple is computed by one nest of loops, so its outputs reduce alike or not at all.
  void check_reductions_agree() {
    const Reduction* first = reduction_at(bodies_[0]);
    for (size_t i = 1; i < bodies_.size(); ++i) {
      const Reduction* other = reduction_at(bodies_[i]);
      if ((first == nullptr) != (other == nullptr)) {
        fail(ErrorKind::InvalidArgument, "TUPLE_REDUCTION",
             "output {} of {} is not a reduction; a tuple compute is all reductions or none",
             first == nullptr ? 0 : i, checked_.stage(stage_));
      }
      if (first != nullptr && first->axes != other->axes) {
        fail(ErrorKind::InvalidArgument, "TUPLE_REDUCTION",
             "outputs 0 and {} of {} reduce over different axes; a tuple compute reduces over the "
             "same ones",
             i, checked_.stage(stage_));
      }
    }
    const auto* compute = std::get_if<Compute>(&definition_.stages[stage_]);
    const bool is_tuple = first != nullptr && compute != nullptr && bodies_.size() > 1;
    // Several reductions of one value each are a tuple too; of one reducer all results must be
    // there.
    if (!is_tuple || definition_.whole_reduction(*compute) != nullptr) return;
    fail(ErrorKind::InvalidArgument, "TUPLE_REDUCTION",
         "the outputs of {} are not all the results of one {}, in order; a tuple compute is one "
         "reduction",
         checked_.stage(stage_), checked_.reducer(*first));
  }

  void check_bounds_of(const Reduction& reduction, uint8_t certainty) {
    for (const AxisId axis : reduction.axes) {
      visit(definition_.axes[axis].minimum, certainty);
      visit(definition_.axes[axis].extent, certainty);
    }
  }

  void visit(ExprId expr, uint8_t certainty) {
    if (seen_[expr] >= certainty) return;
    if (seen_[expr] == 0) touched_.push_back(expr);
    seen_[expr] = certainty;
    const auto& node = definition_.expressions[expr].node;
    if (const auto* use = std::get_if<AxisUse>(&node)) return check_axis(use->axis);
    if (const auto* cast = std::get_if<CastTo>(&node)) return visit(cast->operand, certainty);
    if (const auto* read = std::get_if<Read>(&node)) {
      check_read(*read, certainty);
      for (const ExprId index : read->indices) {
        visit(index, certainty);
      }
    }
    if (const auto* operation = std::get_if<Operation>(&node))
      visit_operands(*operation, certainty);
    if (const auto* reduction = std::get_if<Reduction>(&node)) visit_inner(*reduction, certainty);
  }

  /// What a reduction reaches may use its axes; the same expressions outside of it may not, so they
  /// are forgotten afterwards.
  void visit_inner(const Reduction& reduction, uint8_t certainty) {
    starting_.insert(starting_.end(), reduction.axes.begin(), reduction.axes.end());
    for (const ExprId init : reduction.init)
      visit(init, certainty);
    starting_.resize(starting_.size() - reduction.axes.size());
    const size_t outer_axes = reduced_.size();
    const size_t outer_touched = touched_.size();
    reduced_.insert(reduced_.end(), reduction.axes.begin(), reduction.axes.end());
    check_bounds_of(reduction, certainty);
    if (reduction.condition) visit(*reduction.condition, certainty);
    for (const ExprId source : reduction.sources)
      visit(source, reduction.condition ? kGuarded : certainty);
    reduced_.resize(outer_axes);
    for (size_t i = outer_touched; i < touched_.size(); ++i) {
      seen_[touched_[i]] = 0;
    }
    touched_.resize(outer_touched);
  }

  void visit_operands(const Operation& operation, uint8_t certainty) {
    const bool guards = operation.op == Operator::IfThenElse;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      visit(operation.operands[i], guards && i > 0 ? kGuarded : certainty);
    }
  }

  void check_axis(AxisId axis) {
    const auto among = [axis](const std::vector<AxisId>& list) {
      return std::find(list.begin(), list.end(), axis) != list.end();
    };
    if (among(axes_) || among(reduced_)) return;
    const std::string& name = checked_.axis(axis);
    if (among(starting_)) {
      fail(ErrorKind::InvalidArgument, "AXIS_SCOPE",
           "the init of a reduction in {} uses {}, which it reduces over; a reduction starts from "
           "what is known outside of it",
           checked_.stage(stage_), name);
    }
    switch (definition_.axes[axis].kind) {
      case AxisKind::Reduce:
        fail(ErrorKind::InvalidArgument, "AXIS_SCOPE",
             "reduce axis {} is used in {} but no reducer reduces over it", name,
             checked_.stage(stage_));
      case AxisKind::Time:
        fail(ErrorKind::InvalidArgument, "AXIS_SCOPE",
             "{} uses {}, the time axis of a scan; use the first axis of {} itself",
             checked_.stage(stage_), name, checked_.stage(stage_));
      case AxisKind::Data: break;
    }
    const int owner = checked_.facts.axis_owner[axis];
    fail(ErrorKind::InvalidArgument, "AXIS_SCOPE", "{} uses axis {}, which belongs to {}",
         checked_.stage(stage_), name,
         owner == kNoOwner ? "no stage" : checked_.stage(static_cast<StageId>(owner)));
  }

  void check_read(const Read& read, uint8_t certainty) {
    if (read.tensor.stage == stage_) {
      fail(ErrorKind::InvalidArgument, "READ_ORDER", "{} reads itself; a recurrence is a scan",
           checked_.stage(stage_));
    }
    if (read.tensor.stage > stage_) {
      fail(ErrorKind::InvalidArgument, "READ_ORDER", "{} reads {}, a later stage",
           checked_.stage(stage_), checked_.tensor(read.tensor));
    }
    checked_.facts.stage_reads[stage_].push_back(read.tensor);
    if (certainty == kGuarded) return;
    const std::vector<ExprId> shape = definition_.shape_of(read.tensor);
    for (size_t i = 0; i < shape.size(); ++i) {
      check_constant_index(read, i, shape[i]);
    }
  }

  /// Constant indices are refused here, with the definition; moving ones in
  /// compiler/schedule/bounds.
  void check_constant_index(const Read& read, size_t dimension, ExprId extent) {
    if (checked_.facts.expressions[read.indices[dimension]].last_axis >= 0) return;
    const auto index = constant_value(definition_, read.indices[dimension]);
    if (!index) return;
    const auto length = constant_value(definition_, extent);
    if (*index >= 0 && (!length || *index < *length)) return;
    fail(ErrorKind::InvalidArgument, "INDEX_OUT_OF_RANGE",
         "{} reads {} at index {} of dimension {}, which has {} elements", checked_.stage(stage_),
         checked_.tensor(read.tensor), *index, dimension,
         text_of(definition_, checked_.kernel.names, extent));
  }

  Checked& checked_;
  const Definition& definition_;
  StageId stage_;
  const std::vector<ExprId> bodies_;
  const std::vector<AxisId> axes_;
  std::vector<AxisId> reduced_;   // the axes of the reductions around
  std::vector<AxisId> starting_;  // the axes of the reductions whose init is being looked at
  std::vector<uint8_t>& seen_;    // by expression; all 0 between bodies
  std::vector<ExprId> touched_;
};

}  // namespace

void check_stages(Checked& checked) {
  const Definition& definition = checked.definition();
  checked.facts.stage_reads.assign(definition.stages.size(), {});
  std::vector<uint8_t> seen(definition.expressions.size());
  int64_t nodes = 0;
  for (StageId id = 0; id < definition.stages.size(); ++id) {
    const std::vector<ExprId> bodies = bodies_of(definition.stages[id]);
    if (bodies.empty()) continue;
    at_stage(checked, id, [&] {
      for (const ExprId body : bodies) {
        nodes += checked.facts.expressions[body].nodes;
        if (nodes > checked.limits.nodes) {
          fail(ErrorKind::ResourceExhausted, "LIMIT",
               "the bodies up to {} have {} nodes when shared parts are spelled out; the limit is "
               "{}; give large shared parts tensors of their own",
               checked.stage(id), nodes, checked.limits.nodes);
        }
      }
      StageChecker(checked, id, seen).check();
    });
  }
}

}  // namespace kiln::language
