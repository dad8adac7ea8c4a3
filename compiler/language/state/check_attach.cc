// Which stages may move to where they are read: not what a scan computes step by step. Of an output
// the compiler asks whether all of it is computed there, since the caller sees it.
//   compute_at(B, C.i.outer)  of B, which only C reads  ->  B stands in the loop C.i.outer
// Whether all that read it stand in that loop is known when all steps are taken: the compiler asks.
#include "compiler/language/state/check_step.h"
#include "compiler/language/state/refuse.h"

namespace kiln::language {

void check_compute_at(const Step& step, const StateTables& tables) {
  const StageRow& stage = tables.stages[step.stage];
  if (step.at_stage == step.stage) {
    refuse("COMPUTE_AT", "{} cannot be computed at itself", stage.name);
  }
  if (tables.stages[step.at_stage].kind == StageRow::Kind::Placeholder) {
    refuse("COMPUTE_AT", "{} is a placeholder and has no loops to compute {} in",
           tables.name_of(step.at_stage), stage.name);
  }
  if (stage.update_of >= 0) {
    refuse("COMPUTE_AT", "{} is the update of scan {}, which computes it", stage.name,
           tables.name_of(static_cast<StageId>(stage.update_of)));
  }
  check_place(step, tables, "compute " + stage.name);
  const bool is_scan = stage.kind == StageRow::Kind::Scan;
  if (!is_scan && stage.kind != StageRow::Kind::Scatter) return;
  refuse("FIXED_STAGE", "cannot attach {}: it is a {}, which is computed whole", stage.name,
         is_scan ? "scan" : "scatter");
}

void check_inline(const Step& step, const StateTables& tables) {
  const StageRow& stage = tables.stages[step.stage];
  if (stage.update_of >= 0) refuse("COMPUTE_INLINE", "a scan update cannot be inlined");
  if (stage.kind == StageRow::Kind::Scan) {
    refuse("COMPUTE_INLINE", "{} is a scan and cannot be inlined", stage.name);
  }
  if (stage.kind == StageRow::Kind::Scatter) {
    refuse("COMPUTE_INLINE", "{} is a scatter and cannot be inlined", stage.name);
  }
  if (stage.init_of >= 0) {
    refuse("COMPUTE_INLINE", "{} gives scan {} its initial steps and cannot be inlined", stage.name,
           tables.name_of(static_cast<StageId>(stage.init_of)));
  }
  if (stage.is_reduction) {
    refuse("COMPUTE_INLINE", "{} has a reduction and cannot be inlined; use compute_at",
           stage.name);
  }
}

}  // namespace kiln::language
