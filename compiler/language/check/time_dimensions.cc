// Finds the dimension of time of each stage in a cell by how it reads a state, in the order of the
// stages.
//
//   H[i, t] = S.state[t - 1, i]     dimension 1 of H is time
#include "compiler/language/check/time_dimensions.h"

#include <algorithm>

#include "compiler/language/check/linear.h"

namespace kiln::language {
namespace {

class TimeDimensions {
 public:
  explicit TimeDimensions(const Definition& definition)
      : definition_(definition),
        dimensions_(definition.stages.size(), -1),
        seen_(definition.expressions.size()) {}

  std::vector<int> find() {
    for (const Stage& stage : definition_.stages) {
      const auto* scan = std::get_if<Scan>(&stage);
      if (scan == nullptr) continue;
      for (size_t i = 0; i < scan->state.size(); ++i) {
        dimensions_[scan->state[i].stage] = static_cast<int>(scan->dimension);
        dimensions_[scan->update[i].stage] = static_cast<int>(scan->dimension);
      }
    }
    for (StageId id = 0; id < definition_.stages.size(); ++id) {
      const auto* compute = std::get_if<Compute>(&definition_.stages[id]);
      if (compute != nullptr && dimensions_[id] < 0) find(id, *compute);
    }
    return std::move(dimensions_);
  }

 private:
  void find(StageId id, const Compute& compute) {
    found_ = otherwise_ = -1;
    for (const ExprId body : compute.bodies) {
      visit(compute, body);
    }
    for (const ExprId expr : touched_) {
      seen_[expr] = false;
    }
    touched_.clear();
    const auto rank = static_cast<int>(compute.axes.size());
    if (found_ < 0 && otherwise_ >= 0) found_ = otherwise_ < rank ? otherwise_ : 0;
    dimensions_[id] = found_;
  }

  void visit(const Compute& compute, ExprId expr) {
    if (seen_[expr]) return;
    seen_[expr] = true;
    touched_.push_back(expr);
    const auto& node = definition_.expressions[expr].node;
    if (const auto* read = std::get_if<Read>(&node)) {
      enter(compute, *read);
      for (const ExprId index : read->indices) {
        visit(compute, index);
      }
    } else if (const auto* operation = std::get_if<Operation>(&node)) {
      for (const ExprId operand : operation->operands) {
        visit(compute, operand);
      }
    } else if (const auto* cast = std::get_if<CastTo>(&node)) {
      visit(compute, cast->operand);
    } else if (const auto* reduction = std::get_if<Reduction>(&node)) {
      for (const ExprId part : parts_of(*reduction))
        visit(compute, part);
    }
  }

  void enter(const Compute& compute, const Read& read) {
    const int time = dimensions_[read.tensor.stage];
    if (time < 0 || found_ >= 0 || static_cast<size_t>(time) >= read.indices.size()) return;
    otherwise_ = time;
    const LinearForm form = linear_form(definition_, read.indices[static_cast<size_t>(time)]);
    for (size_t d = 0; d < compute.axes.size(); ++d) {
      if (form.terms == std::map<std::string, int64_t>{{linear_term(compute.axes[d]), 1}}) {
        found_ = static_cast<int>(d);
      }
    }
  }

  const Definition& definition_;
  std::vector<int> dimensions_;
  std::vector<bool> seen_;
  std::vector<ExprId> touched_;
  int found_ = -1;      // of the stage at hand
  int otherwise_ = -1;  // where no axis of it is time
};

}  // namespace

std::vector<int> time_dimensions(const Definition& definition) {
  return TimeDimensions(definition).find();
}

}  // namespace kiln::language
