// Steps that make a stage for the values of another one, or say where they lie: known memory
// scopes, readers that are there, and loops that nothing hangs on yet.
//   vectorize(C.j)  cache_write(C, local)  ->  refused: C.j was vectorized; cache_write C before
//   that
#include "compiler/language/state/check_caches.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "compiler/language/state/check_step.h"
#include "compiler/language/state/refuse.h"

namespace kiln::language {
namespace {

using Kind = StageRow::Kind;

/// A copy in the order of loops has what one stage reads in them.
void check_layout(const Step& step, const StateTables& tables, const std::string& tensor) {
  if (step.readers.size() > 1) {
    refuse("CACHE_READ",
           "the layout of a copy of {} is the order of one reader's loops, but it has {} readers",
           tensor, step.readers.size());
  }
  if (tables.stages[step.stage].cell_of >= 0) {
    refuse("CACHE_READ",
           "{} is computed step by step in a scan; a copy of it has no layout of its own", tensor);
  }
}

/// The scope that a step names in its tag is one of memory_scopes().
void check_scope(const Step& step) {
  const auto scopes = memory_scopes();
  if (std::find(scopes.begin(), scopes.end(), step.tag) != scopes.end()) return;
  refuse("MEMORY_SCOPE", "unknown memory scope {}; known: {}", step.tag.substr(0, 64),
         fmt::join(scopes, ", "));
}

}  // namespace

void check_cache_read(const Step& step, const StateTables& tables) {
  const bool is_padded = step.kind == StepKind::CachePadded;
  const std::string_view spelling = row_of(step.kind).spelling;
  if (!is_padded) check_scope(step);
  const std::string& tensor = tables.stages[step.stage].tensors[step.output];
  if (step.readers.empty()) {
    refuse("CACHE_READ", "{} of {} names no stage that reads the copy", spelling, tensor);
  }
  if (is_padded && step.readers.size() > 1) {
    refuse("CACHE_READ", "what {} is padded with is one reader's to say, but {} names {} readers",
           tensor, spelling, step.readers.size());
  }
  for (size_t i = 0; i < step.readers.size(); ++i) {
    const StageId reader = step.readers[i];
    const Kind kind = tables.stages[reader].kind;
    if (kind == Kind::Placeholder || kind == Kind::Scan || reader == step.stage) {
      refuse("CACHE_READ", "{} does not read {}{}", tables.name_of(reader), tensor,
             kind == Kind::Placeholder ? ": it is a placeholder" : "");
    }
    const auto end = step.readers.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(step.readers.begin(), end, reader) != end) {
      refuse("CACHE_READ", "{} of {} names the reader {} twice", spelling, tensor,
             tables.name_of(reader));
    }
  }
  if (!step.axes.empty()) check_layout(step, tables, tensor);
}

void check_cache_write(const Step& step, const StateTables& tables) {
  check_scope(step);
  const StageRow& stage = tables.stages[step.stage];
  if (stage.kind == Kind::Scan) {
    refuse("CACHE_WRITE",
           "{} is a scan and has no values of its own to keep; cache_write its update", stage.name);
  }
  if (stage.kind == Kind::Scatter) {
    refuse("CACHE_WRITE",
           "{} is a scatter, which updates its own memory; cache_write a stage that reads it",
           stage.name);
  }
  refuse_settled(step, tables, stage.loops.leaves);
  for (const AxisId leaf : tables.leaves_of(step.stage, AxisKind::Reduce)) {
    const AxisRow& row = tables.axes[leaf];
    const Step* other = tables.step_at(row.defined_by);
    if (other == nullptr || defines_stage(other->kind)) continue;
    refuse("CACHE_WRITE",
           "reduction axis {} of {} was made{}; cache_write {} before that, and {} the axes of "
           "the new stage",
           row.name, stage.name, other->line == 0 ? "" : fmt::format(" at line {}", other->line),
           stage.name, row_of(other->kind).spelling);
  }
}

void check_rfactor(const Step& step, const StateTables& tables) {
  const StageRow& stage = tables.stages[step.stage];
  const AxisRow& row = tables.axes[step.axes[0]];
  if (row.kind != AxisKind::Reduce) {
    refuse("RFACTOR",
           "axis {} of {} is not a reduction axis; rfactor takes a reduction axis or a part of one",
           row.name, stage.name);
  }
  if (!stage.is_reduction || !stage.inner.empty()) {
    fail(ErrorKind::Unsupported, "RFACTOR",
         "{} has a reduction inside a larger expression; take reduction_stage of it to factor {}",
         stage.name, row.name);
  }
  const auto last = static_cast<int64_t>(stage.data.size());
  if (step.value < 0 || step.value > last) {
    refuse("RFACTOR",
           "factor_axis is {}, but the partial results of {} have the dimensions 0 to {}",
           step.value, stage.name, last);
  }
  refuse_settled(step, tables, tables.leaves_of(step.stage, AxisKind::Reduce));
}

void check_set_scope(const Step& step, const StateTables& tables) {
  check_scope(step);
  const StageRow& stage = tables.stages[step.stage];
  if (!stage.is_output) return;
  refuse("MEMORY_SCOPE",
         "{} is an output, whose memory is the caller's; set the scope of a cache_write of it",
         stage.name);
}

}  // namespace kiln::language
