// What is the same for all rows, where these are short:
//
//   Y[h, w, c] = X[h, w, c] * S[c], three colours
//     ->  S.global = S[0] S[1] S[2] S[0] .. S[2], 48 of them: three vectors of 16
//         lines of 48 elements of X, each vector by its own of S.global
//
// Eight images of 224 x 224 that are shifted and scaled so take 120 us on a core of a Zen 4, and
// 780 element by element.
#include "compiler/autoschedule/templates/repeated_rows.h"

#include <algorithm>
#include <numeric>

#include "compiler/autoschedule/recognise/joined_axes.h"
#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/parameters.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/schedule/graph/places_of_tensor.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

// Vectors that repeat: as many loads of each tensor stand side by side in the loop.
constexpr int64_t kMostVectors = 8;
// Of shorter lines what is left at their end is too much of them.
constexpr int64_t kFewestRepeats = 4;

/// Tensors that a stage reads at its last axis alone, each at one place; nothing where one of them
/// cannot be copied.
std::optional<Apart> read_in_each_row(const StageGraph& graph, StageId id) {
  const std::vector<AxisId>& data = graph[id].data;
  Apart found;
  bool are_copies = true;
  for (const ir::Expr& body : graph[id].bodies) {
    schedule::for_each_read(body, [&](const ir::TensorRead& read) {
      const bool is_of_rows = std::any_of(
          data.begin(), data.end() - 1, [&](AxisId axis) { return is_used_in(graph, read, axis); });
      if (is_of_rows || !is_used_in(graph, read, data.back())) return;
      const schedule::TensorId tensor{read.stage, read.output};
      are_copies = are_copies && read.stage < graph.kernel->definition.stages.size() &&
                   graph[read.stage].attach.kind == schedule::Attach::Kind::Root &&
                   schedule::places_of_tensor(graph, id, tensor).is_one();
      if (std::ranges::find(found, tensor) == found.end()) found.push_back(tensor);
    });
  }
  if (!are_copies || found.empty()) return std::nullopt;
  return found;
}

}  // namespace

std::optional<Sketch> repeated_rows_sketch(const Chooser& chooser, StageId id,
                                           bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (stage.data.size() < 2 || stage.time_dimension >= 0 || has_indirect_reads(stage) ||
      !reductions_inside(graph, id).empty())
    return std::nullopt;
  const int64_t lanes = register_lanes(chooser, id);
  const int64_t length = constant_extent(graph, stage.data.back()).value_or(0);
  // Of rows longer than a vector the part that is not full is less, and nothing is gained.
  if (length < 2 || length >= lanes) return std::nullopt;
  const int64_t repeated = std::lcm(length, lanes);
  const std::optional<Apart> apart = read_in_each_row(graph, id);
  if (repeated > kMostVectors * lanes || !apart) return std::nullopt;
  // Rows along one axis: where more are joined, places in the copies are no plain indices.
  const std::vector<AxisId> line = {*(stage.data.end() - 2), stage.data.back()};
  const bool is_line = joined_last(graph, id, line, *apart).size() == 2;
  if (!is_line || constant_extent_of(graph, line).value_or(0) < kFewestRepeats * repeated)
    return std::nullopt;
  return Sketch{
      .name = "repeated rows",
      .parameters = {parallel_parameter(may_be_parallel && is_worth_sharing(chooser, id))},
      .write = [&graph, id, line, lanes, repeated, apart](StepWriter& steps, const Values& values) {
        std::vector<AxisId> outer = graph[id].data;
        outer.resize(outer.size() - line.size());
        const auto [tiles, rows] = steps.split(id, steps.fuse(id, line), repeated);
        const std::pair<AxisId, AxisId> vectors = steps.split(id, rows, lanes);
        steps.unroll(id, vectors.first);
        steps.vectorize(id, vectors.second);
        outer.push_back(tiles);
        if (values.get("parallel", 0) != 0) parallel_outer(graph, steps, id, outer);
        for (const schedule::TensorId tensor : *apart)
          steps.cache_read(tensor, id, {vectors.first, vectors.second});
      }};
}

}  // namespace kiln::autoschedule
