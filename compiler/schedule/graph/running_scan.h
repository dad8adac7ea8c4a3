#pragma once

#include <optional>

#include "compiler/schedule/graph/stage_graph.h"
#include "compiler/target.h"

namespace kiln::schedule {

/// What the steps of a scan add up to, where its state is all of them combined.
struct RunningScan {
  language::Operator op;  // associative, but for how sums and products of floats are rounded
  DType type;
};

/// S[t] = S[t - 1] op x, with one initial step, and an x that reads no state; backwards
/// S[t] = S[t + 1] op x. Nothing for any other scan.
std::optional<RunningScan> running_scan(const StageGraph& graph, StageId scan);

/// A stage besides the update that is computed in each step of a scan, as a reduction inside of it.
std::optional<StageId> other_in_steps(const StageGraph& graph, StageId scan);

/// Whether steps may be combined in groups first: of integers always, of floats where the result is
/// one of the operands, or where it is asked for.
bool may_regroup(const RunningScan& scan, const CompileOptions& options);

}  // namespace kiln::schedule
