#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/language/definition.h"
#include "compiler/language/state/schedule_state.h"
#include "compiler/language/tables/step.h"
#include "tests/support/random.h"

namespace kiln::testing {

/// A loop of a stage as the steps so far have made it.
struct Leaf {
  language::AxisId axis;
  bool reduce = false;
  std::optional<int64_t> extent;  // when it is a constant
  bool taken = false;             // has a mark, or a stage computed at it
  bool time = false;              // of a scan: runs in order
};

/// What random steps need to know of a stage.
struct DrawnStage {
  language::StageId stage;
  std::vector<Leaf> leaves;
  bool placed = false;     // inlined or attached
  bool inlinable = false;  // a plain expression that is no output

  /// The place of a leaf that is not taken; empty when there is none.
  std::optional<size_t> random_free_leaf(Random& random) const;
};

/// A schedule being drawn: what stands so far, and what later steps may refer to.
class ScheduleDrawer {
 public:
  ScheduleDrawer(const language::Definition& definition, Random& source);

  const language::Definition& definition;
  Random& random;
  /// The computed stages, scans and scatters, in the order of the definition.
  std::vector<DrawnStage> stages;
  language::Schedule schedule;
  /// Whether reductions are bound to threads, too.
  bool is_for_gpu = false;
  /// Which threads a stage is bound to.
  std::set<std::pair<language::StageId, std::string>> bound;

  /// What the steps so far mean. The drawing ends with a step that the language refuses.
  language::ScheduleState state;
  bool is_refused = false;

  void add(const language::Step& step);
  /// The first of `count` axes that the step being drawn defines.
  language::AxisId new_axes(int count);
  /// Of an axis of the definition.
  std::optional<int64_t> constant_extent(language::AxisId axis) const;
  DrawnStage* find(language::StageId stage);
  bool is_output(language::StageId stage) const;
  /// By some expression of the definition.
  bool is_read(language::StageId stage) const;
  bool is_update(language::StageId stage) const;
  /// The stages that read this one.
  std::vector<language::StageId> readers_of(language::StageId stage) const;
  /// The stages, placeholders too, that this one reads.
  std::vector<language::StageId> inputs_of(language::StageId stage) const;
  /// The readers read `copy` instead of `stage`, which the copy reads.
  void redirect(language::StageId stage, const std::vector<language::StageId>& readers,
                language::StageId copy);
  /// All that `from` reads, `to` reads; `from` reads `to`.
  void hand_over(language::StageId from, language::StageId to);
  /// `made` computes a part of what `from` did: it reads these stages, and `from` reads it.
  void give_part(language::StageId from, language::StageId made,
                 const std::set<language::StageId>& reads);
  /// Whether a step names the stage.
  bool is_touched(language::StageId stage) const;

 private:
  /// `time`: the dimension of an update that is the scan's time, else -1.
  void add_stage(language::StageId id, const language::Compute& compute, int time);
  void add_scan(language::StageId id, const language::Scan& scan);
  void add_scatter(language::StageId id, const language::Scatter& scatter);

  language::AxisId next_axis_;
  std::map<language::StageId, std::set<language::StageId>> reads_;
};

/// Adds the step and the stage it defines, which has the axes that the table gives it.
language::StageId add_stage(ScheduleDrawer& drawer, const language::Step& step);

using language::StepKind;

/// Draws one step for the stage, or none when nothing suits. One for each row of the step table.
template <StepKind kind>
void draw(ScheduleDrawer& drawer, DrawnStage& stage);

#define STEP(name, ...) \
  template <>           \
  void draw<StepKind::name>(ScheduleDrawer & drawer, DrawnStage & stage);
#include "compiler/language/tables/steps.def"
#undef STEP

}  // namespace kiln::testing
