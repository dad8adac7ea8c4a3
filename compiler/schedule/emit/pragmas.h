#pragma once

#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// The loop of an axis, or what stands inside it when it runs once, as the pragmas of the axis want
/// it.
///
/// auto_unroll_max_step, here 8: loops of constant extent are unrolled, the innermost first, as
/// long as no more statements come of it.
///   for i in 0..n { for j in 0..8 { S } }    ->    for i in 0..n { for j in 0..8 unroll { S } }
/// unroll_explicit, 0: after that, loops to be unrolled stay loops.
ir::Stmt with_pragmas(const Axis& axis, const ir::Stmt& loop);

}  // namespace kiln::schedule
