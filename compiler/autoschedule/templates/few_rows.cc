// Dot products of a few rows with all rows of a matrix:
//
//   Y[i, j] = sum[k](X[i, k] * W[j, k]), i < 8
//     ->  blockIdx: 4 rows of W each; a thread adds up 8 x 4 products for every 64th vector of k
//         Y.rf[64, 8, 4] = sums of the threads, in registers, then in shared memory
//         Y[8, 4] = sum[64](Y.rf[..])
#include "compiler/autoschedule/templates/few_rows.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "compiler/autoschedule/recognise/sides.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/autoschedule/templates/stage_schedules.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kMostFew = 16;
constexpr int64_t kMostSums = 32;  // of a thread
constexpr int64_t kMostMany = 8;   // rows of the others
constexpr int64_t kThreads = 64;   // of a block
constexpr int64_t kFewest = 32;    // of the others
constexpr int64_t kLeastSum = 512;

struct FewRows {
  std::vector<AxisId> batch;
  std::vector<AxisId> few;
  std::vector<AxisId> many;
  int64_t rows = 1;   // of the many, that a block has
  int64_t lanes = 1;  // of the sum, that a thread reads at once
  int64_t element_bytes = 4;
};

/// Such a product in numbers; all sizes are known.
struct FewRowsProduct {
  int64_t batch = 1;
  int64_t few = 1;
  int64_t many = 1;
  int64_t steps = 1;
};

std::optional<FewRows> few_rows_of(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  if (!is_plain_reduction(graph, id) || !may_reassociate(chooser, id)) return std::nullopt;
  const std::optional<Factors> factors = find_factors(graph, id);
  if (!factors) return std::nullopt;
  const AxisId along = stage.reduce.back();
  const auto length = constant_extent(graph, along);
  if (!is_contiguous_in(graph, *factors->a, along) ||
      !is_contiguous_in(graph, *factors->b, along) || length.value_or(kLeastSum) < kLeastSum)
    return std::nullopt;
  FewRows found;
  std::vector<AxisId> of_a;
  std::vector<AxisId> of_b;
  for (const AxisId axis : stage.data) {
    const bool in_a = is_used_in(graph, *factors->a, axis);
    const bool in_b = is_used_in(graph, *factors->b, axis);
    (in_a == in_b ? found.batch : in_a ? of_a : of_b).push_back(axis);
  }
  const auto is_few = [&](const std::vector<AxisId>& axes) {
    return !axes.empty() && constant_extent_of(graph, axes).value_or(kMostFew + 1) <= kMostFew;
  };
  if (is_few(of_a) == is_few(of_b)) return std::nullopt;
  found.few = is_few(of_a) ? of_a : of_b;
  found.many = is_few(of_a) ? of_b : of_a;
  if (found.many.empty() || constant_extent(graph, found.many.back()).value_or(kFewest) < kFewest)
    return std::nullopt;
  const int64_t few = *constant_extent_of(graph, found.few);
  found.rows = std::min(kMostMany, kMostSums / few);
  found.element_bytes =
      std::max<int64_t>(size_of(factors->a->type.element), size_of(factors->b->type.element));
  found.lanes = std::max<int64_t>(kVectorBytesOfThread / found.element_bytes, 1);
  if (!length || *length % found.lanes != 0) found.lanes = 1;
  return found;
}

FewRowsProduct product_of(const StageGraph& graph, const Stage& stage, const FewRows& rows) {
  return {.batch = *constant_extent_of(graph, rows.batch),
          .few = *constant_extent_of(graph, rows.few),
          .many = *constant_extent_of(graph, rows.many),
          .steps = *constant_extent_of(graph, stage.reduce)};
}

/// About how many cycles the products take with the sum in so many parts: the slowest of memory, of
/// what the busiest multiprocessor gets through L2, of its multiply-adds, and of waiting for loads.
double few_rows_cycles(const FewRows& rows, const FewRowsProduct& product, int64_t parts,
                       const GpuMachine& machine) {
  const auto whole = [](int64_t extent, int64_t part) {
    return std::ceil(static_cast<double>(extent) / static_cast<double>(part));
  };
  const auto multiprocessors = static_cast<double>(machine.multiprocessors);
  const double blocks = whole(product.many, rows.rows) * static_cast<double>(product.batch * parts);
  const double turns = std::ceil(blocks / multiprocessors);
  const double steps = static_cast<double>(product.steps) / static_cast<double>(parts);
  const auto lines = static_cast<double>(product.few + rows.rows);  // of a block
  const double under_way = loads_under_way(turns * static_cast<double>(kThreads));
  const double waits =
      kLoadCycles * std::ceil(steps / static_cast<double>(kThreads * rows.lanes) / under_way);
  const double memory = static_cast<double>((product.few + product.many) * product.batch) *
                        static_cast<double>(product.steps * rows.element_bytes) /
                        (machine.memory_bytes * multiprocessors);
  return std::max(
      {waits, memory,
       turns * steps * lines * static_cast<double>(rows.element_bytes) / machine.l2_bytes,
       turns * steps * static_cast<double>(product.few * rows.rows) /
           static_cast<double>(machine.float_lanes)});
}

void write_few_rows(const StageGraph& graph, StageId id, const FewRows& rows,
                    const std::optional<Epilogue>& epilogue, StepWriter& steps) {
  const Stage& stage = graph[id];
  AxisId along = stage.reduce.back();
  if (rows.lanes > 1) along = steps.split(id, along, rows.lanes).first;
  const AxisId divided = steps.split(id, along, kThreads).second;
  const auto [parts, axes] = steps.rfactor(id, divided);
  const StageId stored = epilogue ? epilogue->stage : id;
  const auto own = [&](const std::vector<AxisId>& data) {
    return axes_for(graph, id, epilogue, data);
  };
  std::vector<AxisId> blocks = joined({own(rows.batch), own(rows.many)});
  const auto [tiles, row] = steps.split(stored, blocks.back(), rows.rows);
  blocks.back() = tiles;
  const AxisId block =
      bind_results_of_block(steps, id, epilogue, blocks, joined({own(rows.few), {row}}));
  // The sums of a thread, then their copy in shared memory.
  const auto [sums, sums_axes] = steps.cache_write(parts, "local");
  steps.compute_at(parts, stored, block);
  steps.bind(parts, axes[0], "threadIdx.x");
  steps.compute_at(sums, parts, axes[0]);
  const auto data_of = [&](const std::vector<AxisId>& all) {
    return std::vector<AxisId>(all.begin() + 1,
                               all.begin() + static_cast<long>(stage.data.size() + 1));
  };
  for (const AxisId axis : data_of(axes))
    steps.unroll(parts, axis);
  const std::vector<AxisId> of_sums = data_of(sums_axes);
  std::vector<AxisId> reduce(sums_axes.begin() + static_cast<long>(stage.data.size() + 1),
                             sums_axes.end());
  std::optional<AxisId> lane;
  if (rows.lanes > 1) {
    lane = reduce.back();
    reduce.pop_back();
  }
  steps.reorder(sums, joined({reduce, of_sums, lane ? std::vector{*lane} : std::vector<AxisId>{}}));
  for (const AxisId axis : of_sums)
    steps.unroll(sums, axis);
  if (lane) steps.vectorize(sums, *lane);
}

}  // namespace

bool is_few_rows_product(const Chooser& chooser, StageId id) {
  return few_rows_of(chooser, id).has_value();
}

std::optional<SumSplit> split_of_few_rows(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const auto rows = few_rows_of(chooser, id);
  if (!rows || !constant_extent_of(graph, joined({stage.data, stage.reduce}))) return std::nullopt;
  const FewRowsProduct product = product_of(graph, stage, *rows);
  const GpuMachine machine = gpu_machine(chooser.arch);
  return best_split(chooser, id, stage.reduce.back(), equal_lengths(kLeastSum, rows->lanes),
                    [&](int64_t parts) { return few_rows_cycles(*rows, product, parts, machine); });
}

double few_rows_cycles(const Chooser& chooser, StageId id) {
  const FewRows rows = *few_rows_of(chooser, id);
  return few_rows_cycles(rows, product_of(chooser.graph, chooser.graph[id], rows), 1,
                         gpu_machine(chooser.arch));
}

std::vector<Sketch> few_rows_sketches(const Chooser& chooser, StageId id,
                                      const std::optional<Epilogue>& epilogue) {
  const auto rows = few_rows_of(chooser, id);
  if (!rows) return {};
  return {{.name = "few rows, the sum divided among threads",
           .parameters = {},
           .write = [&graph = chooser.graph, id, rows = *rows, epilogue](StepWriter& steps,
                                                                         const Values&) {
             write_few_rows(graph, id, rows, epilogue, steps);
           }}};
}

}  // namespace kiln::autoschedule
