// A bias, a function, a cast of a sum of products, in the loops over its tiles:
//
//   C[i, j] = sum[k](float32(A[i, k]) * float32(B[k, j]))    split(C.i, 32), .., reorder(.., C.k,
//   ..) O[i, j] = bfloat16(C[i, j] + b[j])                         ->  split(O.i, 32), ..,
//   reorder(..)
//
// The passes join the loops of both (passes/join_loops.cc) and keep of C one tile
// (passes/contract_buffers.cc), which L1 has when O is computed. us on one core of a Golden Cove, C
// as a whole before and so, of bfloat16 to bfloat16 by the matrix unit: 1024 x 64 x 1024 with a
// bias and relu 448, 259; 16 of 512 x 64 x 512 1983, 902.
#include "compiler/autoschedule/templates/followed_tiles.h"

#include <algorithm>
#include <utility>

#include "compiler/autoschedule/recognise/epilogue.h"
#include "compiler/autoschedule/templates/element_work.h"
#include "compiler/autoschedule/templates/stage_schedules.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Cycles of a vector: a longer function has more side by side in rows of its own. A gelu of 1024 x
// 64 x 1024 of bfloat16 takes 1.17 ms in tiles and 0.86 behind them, relu 0.26 and 0.45.
constexpr double kLongest = 8;

bool is_short(const Chooser& chooser, StageId id) {
  const std::vector<ir::Expr> bodies = schedule::expanded_bodies(chooser.graph, id);
  const ElementWork work =
      element_work(chooser.graph, bodies, chooser.machine, register_lanes(chooser, id));
  return std::max(work.busy.all, work.busy.multiply_adds) <= kLongest;
}

/// Whether sums can lie where the results are going to: then all of them are computed first, and
/// stored where these are no more than read. 2048 x 32 x 2048 with a bias and relu takes 2.1 ms so,
/// and 2.7 in tiles that are stored past the caches, 4096 x 64 x 64 215 us and 295.
bool may_be_in_place(const StageGraph& graph, StageId sums, StageId results) {
  return size_of(graph[sums].types[0]) == size_of(graph[results].types[0]);
}

Sketch followed(const Chooser& chooser, StageId leader, const Epilogue& epilogue, Sketch plain) {
  return {.name = "tiles of " + chooser.graph[leader].name,
          .parameters = {},
          .write = [leader, epilogue, axes = chooser.graph[leader].data, plain = std::move(plain)](
                       StepWriter& steps, const Values&) {
            if (!steps.follow(epilogue.stage, epilogue.axes, leader, axes))
              plain.write_preferred(steps);
          }};
}

}  // namespace

void follow_tiles(const Chooser& chooser, std::vector<StageSketches>& stages) {
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageId leader = stages[i].stage;
    if (chooser.graph[leader].kind != Stage::Kind::Compute ||
        !find_contraction(chooser.graph, leader))
      continue;
    const std::optional<Epilogue> epilogue = epilogue_of(chooser.graph, leader);
    if (!epilogue || may_be_in_place(chooser.graph, leader, epilogue->stage) ||
        !is_short(chooser, epilogue->stage))
      continue;
    const auto follower = std::ranges::find(stages.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                            stages.end(), epilogue->stage, &StageSketches::stage);
    if (follower == stages.end() || follower->sketches.empty()) continue;
    Sketch sketch = followed(chooser, leader, *epilogue, follower->sketches[0]);
    follower->sketches.insert(follower->sketches.begin(), std::move(sketch));
  }
}

}  // namespace kiln::autoschedule
