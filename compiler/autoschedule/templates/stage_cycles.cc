// What the elements of a stage take a core: the longest of its vector instructions, its loads and
// stores, and what comes from each cache.
//
//   exp of 16384 float32    on Zen 3: 20 thousand cycles of latencies, worth another core
//   x + x of 16384 int8     on Zen 3: a thousand of loads and stores, which are not
//
// Of latencies those of functions count, with some vectors side by side; against those of sums
// sketches have enough.
#include "compiler/autoschedule/templates/stage_cycles.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "compiler/autoschedule/templates/element_work.h"
#include "compiler/autoschedule/templates/transfers.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/graph/reads.h"

namespace kiln::autoschedule {
namespace {

/// Along which axis neighbours are computed together; none where each element is by itself.
std::optional<AxisId> axis_of_vectors(const Chooser& chooser, StageId id) {
  const Stage& stage = chooser.graph[id];
  const std::vector<AxisId> columns = columns_of(stage);
  if (has_indirect_reads(stage) || has_dependent_extents(chooser.graph, id)) return std::nullopt;
  if (!stage.is_reduction())
    return columns.empty() || has_time_last(stage) ? std::nullopt : std::optional(columns.back());
  if (has_vectors_along_data(chooser.graph, id) || find_contraction(chooser.graph, id))
    return columns.back();
  return may_reassociate(chooser, id) ? std::optional(stage.reduce.back()) : std::nullopt;
}

/// Of a stage's own loops, so many times.
class OwnLoops {
 public:
  OwnLoops(const Chooser& chooser, StageId id, double iterations)
      : chooser_(chooser),
        id_(id),
        iterations_(iterations),
        vectors_(axis_of_vectors(chooser, id)),
        lanes_(lanes()),
        bodies_(schedule::expanded_bodies(chooser.graph, id)),
        element_(element_work(chooser.graph, bodies_, chooser.machine, lanes_)) {}

  std::optional<double> cycles() const {
    const std::optional<std::vector<double>> tensors = bytes();
    if (!tensors) return std::nullopt;
    Transfers transfers(machine(), std::accumulate(tensors->begin(), tensors->end(), 0.0));
    for (const double each : *tensors)
      transfers.first(each);
    return std::max({iterations_ / static_cast<double>(lanes_) * vector_cycles(), transfers.l2(),
                     transfers.l3(), transfers.memory()});
  }

 private:
  const Machine& machine() const { return chooser_.machine; }
  const Stage& stage() const { return chooser_.graph[id_]; }

  int64_t lanes() const {
    if (!vectors_) return 1;
    const int64_t extent = constant_extent(chooser_.graph, *vectors_).value_or(1);
    return std::min(register_lanes(chooser_, id_), std::max<int64_t>(extent, 1));
  }

  /// Of one vector.
  double vector_cycles() const {
    const auto lanes = static_cast<double>(lanes_);
    const bool is_product = find_contraction(chooser_.graph, id_).has_value();
    double loads = 0;
    double turned = 0;
    for (const ir::TensorRead* read : element_.reads) {
      const std::optional<int64_t> distance =
          vectors_ ? distance_along(chooser_.graph, *read, *vectors_) : std::nullopt;
      // Tiles load the factors of a product for many sums, and a vector of one element once.
      if (is_product || distance == 0) continue;
      const bool is_apart = vectors_ && distance != 1;
      if (is_apart) turned += machine().transposed_cycles * lanes;
      if (std::ranges::any_of(read->indices, schedule::has_read))
        turned += machine().gathered_cycles;
      loads += is_apart ? lanes : registers_of(read->type.element);
    }
    double stores = 0;
    for (const DType type : stage().types)
      stores += stage().is_reduction() ? 0 : registers_of(type);
    const double side_by_side =
        std::max(static_cast<double>(machine().chained_vectors),
                 static_cast<double>(kVectorBytes) / static_cast<double>(machine().vectors.bytes));
    return std::max({element_.busy.multiply_adds, element_.busy.all + turned,
                     element_.busy.chain / side_by_side, loads / machine().loads, stores});
  }

  double registers_of(DType type) const {
    const auto bytes = static_cast<double>(lanes_ * size_of(type));
    return std::max(1.0, bytes / static_cast<double>(machine().vectors.bytes));
  }

  /// Of each tensor, or of all that is read of it where that is less.
  std::optional<std::vector<double>> bytes() const {
    std::vector<double> found;
    for (const ir::TensorRead* read : element_.reads) {
      double elements = 1;
      for (const ir::Expr& extent : chooser_.graph[read->stage].shapes[read->output]) {
        const std::optional<int64_t> known = ir::as_const_int(extent);
        if (!known) return std::nullopt;
        elements *= static_cast<double>(*known);
      }
      found.push_back(std::min(elements, iterations_) *
                      static_cast<double>(size_of(read->type.element)));
    }
    for (const DType type : stage().types)
      if (!stage().is_reduction())
        found.push_back(iterations_ * static_cast<double>(size_of(type)));
    return found;
  }

  const Chooser& chooser_;
  const StageId id_;
  const double iterations_;
  const std::optional<AxisId> vectors_;
  const int64_t lanes_;
  const std::vector<ir::Expr> bodies_;
  const ElementWork element_;
};

std::optional<double> own_cycles(const Chooser& chooser, StageId id, int64_t times) {
  const std::optional<int64_t> work = constant_work(chooser.graph, id);
  if (!work) return std::nullopt;
  return OwnLoops(chooser, id, static_cast<double>(*work) * static_cast<double>(times)).cycles();
}

}  // namespace

std::optional<double> stage_cycles(const Chooser& chooser, StageId id, int64_t steps) {
  std::optional<double> cycles = own_cycles(chooser, id, steps);
  for (const StageId inside : reductions_inside(chooser.graph, id)) {
    const std::optional<double> more = own_cycles(chooser, inside, steps);
    if (!cycles || !more) return std::nullopt;
    *cycles += *more;
  }
  return cycles;
}

bool is_worth_sharing(const Chooser& chooser, std::span<const StageId> stages) {
  double all = 0;
  for (const StageId id : stages) {
    const std::optional<double> cycles = stage_cycles(chooser, id);
    if (!cycles) return true;
    all += *cycles;
  }
  return all >= chooser.machine.wake_cycles;
}

bool is_worth_sharing(const Chooser& chooser, StageId stage) {
  return is_worth_sharing(chooser, std::array{stage});
}

}  // namespace kiln::autoschedule
