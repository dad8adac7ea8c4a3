#pragma once

#include "compiler/language/state/state_tables.h"
#include "compiler/language/state/step_text.h"

namespace kiln::language {

/// A kernel under its schedule: which stages and axes there are, the loops of each stage, how they
/// run, and where stages are computed. It takes one step at a time and says why it refuses one.
///
/// All who must know what steps mean ask it: the decoder, the canonical form, the text form, the
/// clients, and the compiler, which adds what needs expressions, proofs or the target.
class ScheduleState {
 public:
  /// Before any step.
  ScheduleState(const Definition& definition, const SourceMap& names);
  /// After all steps of a schedule. Throws what apply() throws.
  ScheduleState(const Definition& definition, const SourceMap& names, const Schedule& schedule);

  /// Takes the next step. Throws InvalidArgument or Unsupported in the user's names for one that
  /// may not be taken, and is then as it was before.
  void apply(const Step& step);
  /// Throws InvalidArgument where the step has not the fields of the step table or names what there
  /// is not.
  void check_form(const Step& step) const;

  const std::vector<AxisRow>& axes() const { return tables_.axes; }
  const std::vector<StageRow>& stages() const { return tables_.stages; }
  const std::vector<Step>& steps() const { return tables_.steps; }
  const AxisRow& axis(AxisId id) const { return tables_.axes[id]; }
  const StageRow& stage(StageId id) const { return tables_.stages[id]; }

  /// What the last step made of the loops of its stage.
  const LoopChange& last_change() const { return last_change_; }
  /// The axes that the step at `position` has made, in the order of their ids.
  std::vector<AxisId> defined_by(int position) const;
  /// The stage that the step at `position` has made, if any.
  std::optional<StageId> stage_defined_by(int position) const;
  /// The step that says how the loop of an axis runs, or null.
  const Step* annotation_of(AxisId id) const { return tables_.step_at(axis(id).annotated_by); }
  std::optional<StageId> attached_at(AxisId id) const { return tables_.attached_at(id); }

  /// "split(k, factor=32)", "compute_at(B, C.i)": for messages. The step has the form.
  std::string text_of(const Step& step) const { return language::text_of(step, tables_); }
  /// The same with each axis after its stage, "split(C.k, factor=32)": as a kernel file has it.
  std::string kernel_file_text(const Step& step) const {
    return language::kernel_file_text(step, tables_);
  }

 private:
  StateTables tables_;
  LoopChange last_change_;
};

/// Each step of a schedule as a kernel file has it.
std::vector<std::string> kernel_file_text(const Schedule& schedule, const Definition& definition,
                                          const SourceMap& names);

}  // namespace kiln::language
