#pragma once

#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/schedule/bounds/nest.h"
#include "compiler/schedule/graph/stage_graph.h"

namespace kiln::schedule {

/// Whether a step pipelines this loop of the consumer.
bool is_pipelined(const StageGraph& graph, StageId consumer, AxisId axis);
/// Whether a stage reads one that is computed at a loop of the consumer.
bool reads_what_is_computed_at(const StageGraph& graph, StageId id, StageId consumer);

/// What is computed at a pipelined loop, cut in two: what it loads is in registers of the thread
/// one iteration before the values that it makes of it are stored.
///
///   for k in 0..n { for t { s[t] = A[k, t] * 2 } .. }
///     ->
///   allocate s.next: float32[1] { if 0 < n { s.next[0] = A[0, t] }
///     for k in 0..n { s[t] = s.next[0] * 2; if k + 1 < n { s.next[0] = A[k + 1, t] } .. } }
struct EarlyFetch {
  std::vector<ir::BufferRef> registers;
  ir::Stmt first;  // in front of the loop
  ir::Stmt put;    // in each iteration, in the place of what is computed
  ir::Stmt next;   // behind `put`
};

/// A loop over threads, which stands around the pipelined one.
struct ThreadsAround {
  ir::VarRef var;
  ir::Expr extent;
  ir::ThreadAxis axis;
};

/// What is copied at a pipelined loop, before its iterations or as many of them ahead as it has
/// memories, less one; `registers` and `put` are none.
///
///   for k in 0..n { for t { s[k % 3, t] = A[k, t] } .. }
///     ->
///   background { if 0 < n { s[0, t] = A[0, t] } }  background { if 1 < n { s[1, t] = A[1, t] } }
///   for k in 0..n { await 1; background { if k + 2 < n { s[(k + 2) % 3, t] = A[k + 2, t] } } .. }
///
/// Of several nests all are one group. Throws as fetch_early() does.
struct LateNest {
  ir::Stmt nest;
  std::string called;
};
EarlyFetch fetch_late(const std::vector<LateNest>& nests, int64_t copies, const ir::VarRef& loop,
                      const ir::Expr& extent, const std::vector<ThreadsAround>& around,
                      const std::string& axis);

/// `nest` is what `called` computes in each iteration of `loop`, called `axis`, whose extent is
/// `extent`. Throws Unsupported SOFTWARE_PIPELINE where that is no single value stored at each
/// place, or not by the threads that stand around.
EarlyFetch fetch_early(const ir::Stmt& nest, const ir::VarRef& loop, const ir::Expr& extent,
                       const std::vector<ThreadsAround>& around, const std::string& called,
                       const std::string& axis);

}  // namespace kiln::schedule
