// Predicts the time of a kernel from the loops that code is generated from, as the largest of its
// bottlenecks: what the ports of a core take, the chains of sums that wait for themselves, and what
// each cache has to bring.
//
//   1024 x 1024 x 1024 in tiles of 8 x 32 on a core of Zen 4
//     ->   arithmetic 67.1 M cycles, with its loops 71.4 M; L2 21.1 M, L3 45.4 M
//
// The roofline of S. Williams, A. Waterman and D. Patterson, 2009, with a roof for each level as in
// J. Treibig and G. Hager, "Introducing a Performance Model for Bandwidth-Limited Loop Kernels",
// 2009, but that all levels are taken to overlap.
#include "compiler/predict/predict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/autoschedule/recognise/instructions.h"
#include "compiler/predict/footprint.h"
#include "compiler/predict/nest.h"

namespace kiln::predict {
namespace {

using autoschedule::Busy;
using autoschedule::busy_cycles;

// A branch back and a counter; they run beside vectors, but not for nothing.
constexpr double kIterationCycles = 1;
// The end of a long loop is not foreseen: what a mispredicted branch costs on cores of this size.
constexpr double kEndCycles = 18;
constexpr double kForeseen = 16;
// Registers that hold what is loaded, beside those of sums.
constexpr int64_t kBesideSums = 3;

/// Cycles of one core for each of its bottlenecks, and for the slowest of them loop by loop.
struct Core {
  double arithmetic = 0;
  double latency = 0;
  double transfers = 0;  // loads and stores that L1 answers
  double all = 0;

  Core& operator+=(const Core& other) {
    arithmetic += other.arithmetic;
    latency += other.latency;
    transfers += other.transfers;
    all += other.all;
    return *this;
  }
  Core times(double count) const {
    return {arithmetic * count, latency * count, transfers * count, all * count};
  }
};

class Cores {
 public:
  Cores(const autoschedule::Machine& machine, int threads) : machine_(machine), threads_(threads) {}

  /// Of the busiest core, for all iterations.
  Core of(const Nest& nest) {
    Core each = direct(nest);
    for (const Nest& inner : nest.inner)
      each += of(inner);
    Core core = each.times(share(nest));
    const bool is_innermost = nest.inner.empty() && nest.extent > 1;
    if (is_innermost && nest.extent > kForeseen) core.all += kEndCycles;
    return core;
  }

  /// How many cores work; 1 where no loop is parallel.
  int used() const { return used_; }

 private:
  /// Iterations that the busiest core runs.
  double share(const Nest& nest) {
    if (nest.kind != ir::LoopKind::Parallel || threads_ <= 1) return nest.extent;
    used_ = std::max(used_, static_cast<int>(std::min<double>(threads_, nest.extent)));
    return std::ceil(nest.extent / threads_);
  }

  /// Whether it is one of as many stores as they have lanes, side by side, whose lanes lie further
  /// apart: they are turned in registers, a shuffle of each for each bit of a lane's number.
  static bool is_of_square(const Touch& touch, const Nest& nest) {
    if (!touch.is_store || touch.lane_stride < touch.lanes) return false;
    return touch.lanes <= std::ranges::count_if(nest.touches, [&](const Touch& other) {
             return other.is_store && other.buffer == touch.buffer && other.lanes == touch.lanes &&
                    other.lane_stride == touch.lane_stride && other.strides == touch.strides;
           });
  }

  Core direct(const Nest& nest) const {
    Core core;
    Busy busy;
    for (const Operations& operations : nest.operations) {
      const Busy each = busy_cycles(operations, machine_);
      busy.multiply_adds += each.multiply_adds;
      busy.all += each.all;
    }
    core.arithmetic = std::max({busy.multiply_adds, busy.all, nest.unit_cycles});
    double loads = 0;
    double stores = 0;
    double turned = 0;
    for (const Touch& touch : nest.touches) {
      const double bytes = static_cast<double>(touch.lanes * touch.element_bytes);
      const bool is_row = touch.is_gather && is_of_square(touch, nest);
      const double count = touch.is_gather && !is_row
                               ? static_cast<double>(touch.lanes)
                               : std::ceil(bytes / static_cast<double>(machine_.vectors.bytes));
      if (is_row) turned += std::log2(touch.lanes) * count / machine_.operations;
      // The same in each iteration: it stays in a register.
      const bool stays = nest.inner.empty() && !touch.strides.empty() && nest.extent > 1 &&
                         touch.strides.back() == 0 && !touch.is_store;
      if (!stays) (touch.is_store ? stores : loads) += count;
    }
    core.arithmetic += turned;
    core.transfers = std::max(loads / machine_.loads, stores);
    core.latency =
        static_cast<double>(nest.chain.updates) * (nest.chain.is_float ? machine_.latency : 1);
    core.all = std::max({core.arithmetic, core.latency, core.transfers}) +
               (nest.extent > 1 ? kIterationCycles : 0);
    return core;
  }

  const autoschedule::Machine& machine_;
  const int threads_;
  int used_ = 1;
};

}  // namespace

const Term& Prediction::largest() const {
  return *std::ranges::max_element(terms, {},
                                   [](const Term& term) { return term.on_top ? -1 : term.cycles; });
}

Prediction prediction_of(std::vector<Term> terms, double gigahertz) {
  Prediction prediction{.cycles = 0, .gigahertz = gigahertz, .terms = std::move(terms)};
  prediction.cycles = prediction.largest().cycles;
  for (const Term& term : prediction.terms)
    prediction.cycles += term.on_top ? term.cycles : 0;
  return prediction;
}

Prediction predict(const ir::Kernel& kernel, std::span<const int64_t> sizes,
                   const autoschedule::Machine& machine, const Surroundings& around, int threads) {
  const int64_t kept = machine.vectors.registers - kBesideSums;
  const Nest nest = nest_of(kernel, sizes, kept * machine.vectors.bytes);
  Cores cores(machine, threads);
  const Core core = cores.of(nest);
  const auto used = static_cast<double>(cores.used());

  // What is called again and again finds in a cache what fits there.
  const Footprint footprint(nest);
  const double touched = footprint.bytes();
  const auto into = [&](int64_t cache_bytes) {
    const Cache cache{.bytes = static_cast<double>(cache_bytes)};
    return touched <= cache.bytes ? 0.0 : footprint.bytes_into(cache);
  };
  const double from_memory =
      std::min(around.from_memory * used, std::max(around.from_memory_of_all, around.from_memory));

  return prediction_of({{"arithmetic", core.arithmetic},
                        {"latency", core.latency},
                        {"loads and stores", core.transfers},
                        {"core", core.all},
                        {"L2", into(machine.l1_bytes) / (around.from_l2 * used)},
                        {"L3", into(machine.l2_bytes) / (around.from_l3 * used)},
                        {"memory", into(around.l3_bytes) / from_memory},
                        {"threads", cores.used() > 1 ? around.start_cycles : 0, true}},
                       around.gigahertz);
}

}  // namespace kiln::predict
