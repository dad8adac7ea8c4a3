// A scale, a function, a cast: what precedes a product element by element, which can be computed
// where a part of the factor is fetched.
//
//   R[i, k] = float16(W[i, k]) * S[k]; C[i, j] = sum[k](R[i, k] * B[k, j])
//     ->  R, of which neighbours are made of neighbours of W and of S
#include "compiler/autoschedule/recognise/prologue.h"

#include <algorithm>
#include <numeric>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {

bool is_computed_for(const StageGraph& graph, StageId source, StageId reader) {
  const Stage& stage = graph[source];
  if (!is_free(graph, source) || graph.has_parameter(source) || stage.is_reduction() ||
      stage.bodies.size() != 1 || !reductions_inside(graph, source).empty() ||
      has_indirect_reads(stage)) {
    return false;
  }
  const std::vector<StageId> readers = schedule::readers_of(graph, source);
  return readers.size() == 1 && readers[0] == reader;
}

bool is_prologue(const StageGraph& graph, StageId source, StageId reader) {
  if (!is_computed_for(graph, source, reader) || graph[source].data.empty()) return false;
  const AxisId last = graph[source].data.back();
  bool has_reads = false;
  bool are_along = true;
  schedule::for_each_read(graph[source].bodies[0], [&](const ir::TensorRead& read) {
    has_reads = true;
    are_along = are_along && graph[read.stage].kind != Stage::Kind::Scan &&
                (!is_used_in(graph, read, last) || is_contiguous_in(graph, read, last));
  });
  return has_reads && are_along;
}

int64_t aligned_elements(const StageGraph& graph, StageId prologue) {
  const AxisId last = graph[prologue].data.back();
  int64_t elements = 0;
  schedule::for_each_read(graph[prologue].bodies[0], [&](const ir::TensorRead& read) {
    if (!is_used_in(graph, read, last)) return;
    const bool is_whole = begins_at_multiples(graph, read.indices.back(), last);
    elements = std::gcd(elements, is_whole ? common_width(graph, read, last) : 1);
  });
  return elements;
}

}  // namespace kiln::autoschedule
