// Extents of a contraction as the cost model wants them: unknown sizes as 0 for rows and columns,
// and as a middling number for the reduction, whose length shapes hardly depend on.
#include "compiler/autoschedule/templates/contraction_numbers.h"

#include <algorithm>

namespace kiln::autoschedule {
namespace {

// Instructions for four bytes of a row whose signs are turned: they are turned and broadcast,
// partly beside the products. 512 x 32 x 512 takes 64 us on a Zen 4 in tiles of 4 x 16, 48 in those
// of 8 x 32.
constexpr double kTurnedSign = 1.5;
constexpr int64_t kMostBatch = int64_t{1} << 20;
// Fewer rows are not what cores share.
constexpr int64_t kRowsToShare = 64;
// Rows of a tile: with one vector each, as many as half of the most registers.
constexpr int64_t kMostRows = 16;

}  // namespace

Numbers numbers_of(const Chooser& chooser, const Tiling& tiling, bool parallel) {
  const StageGraph& graph = chooser.graph;
  Numbers numbers{.size = size_on(chooser.machine, tiling.register_lanes)};
  numbers.size.rows = constant_extent(graph, tiling.contraction.row).value_or(0);
  numbers.size.columns = constant_extent(graph, tiling.contraction.column).value_or(0);
  count_group(numbers.size, tiling.group, chooser.machine);
  numbers.size.steps = 1;
  for (const AxisId axis : tiling.reduce) {
    const int64_t products = axis == tiling.group.axis ? tiling.group.products : 1;
    const int64_t elements = constant_extent(graph, axis).value_or(kAnyExtent);
    const int64_t extent = (elements + products - 1) / products;
    numbers.size.steps *= std::clamp<int64_t>(extent, 1, int64_t{1} << 20);
    numbers.size.steps = std::min(numbers.size.steps, int64_t{1} << 30);
  }
  const bool is_known = std::ranges::all_of(
      tiling.reduce, [&](AxisId axis) { return constant_extent(graph, axis).has_value(); });
  if (is_known)
    numbers.panels = numbers.size.steps * std::min(numbers.size.columns, int64_t{1} << 30);
  numbers.size.few_tasks = parallel && numbers.size.rows >= kRowsToShare;
  for (const AxisId axis : tiling.batch)
    numbers.size.few_tasks = numbers.size.few_tasks && constant_extent(graph, axis) == 1;
  numbers.batch = products_along(graph, tiling.batch);
  return numbers;
}

Product product_of(const Chooser& chooser, const Tiling& tiling, const Numbers& numbers,
                   bool parallel) {
  const StageGraph& graph = chooser.graph;
  const Machine& machine = chooser.machine;
  const ir::TensorRead& rows = *tiling.contraction.row_factor;
  const ir::TensorRead& columns = *tiling.contraction.column_factor;
  Product product{.size = numbers.size, .batch = numbers.batch};
  ContractionSize& size = product.size;
  if (size.rows == 0) size.rows = kAnyExtent;
  if (size.columns == 0) size.columns = kAnyExtent;
  size.most_rows = kMostRows;
  size.writes_out_steps = writes_out_window(graph, tiling, size.most_sums);
  size.loop_cycles = machine.loop_cycles;
  product.panel_batch = products_along(graph, tiling.panel_batch);
  product.row_batch = products_along(graph, tiling.row_batch);
  product.sum_bytes =
      static_cast<double>(machine.vectors.bytes) / static_cast<double>(size.register_lanes);
  const auto bytes_of = [&](const ir::TensorRead& read) {
    return static_cast<double>(size_of(read.type.element) * tiling.group.products);
  };
  const auto step_distance = [&](const ir::TensorRead& read) {
    return static_cast<double>(distance_along(graph, read, tiling.reduce.back()).value_or(0));
  };
  product.row_bytes = bytes_of(rows);
  product.column_bytes = bytes_of(columns);
  product.group_products = static_cast<double>(tiling.group.products);
  product.column_distance = step_distance(columns) * product.column_bytes;
  product.row_distance = step_distance(rows) * product.row_bytes;
  product.row_neighbour =
      product.row_bytes *
      static_cast<double>(distance_along(graph, rows, tiling.contraction.row).value_or(0));
  for (const AxisId axis : tiling.reduce)
    product.row_stretches.push_back(
        {static_cast<double>(constant_extent(graph, axis).value_or(kAnyExtent)),
         product.row_bytes *
             static_cast<double>(distance_along(graph, rows, axis).value_or(kAnyExtent))});
  product.are_columns_apart = !is_contiguous_in(graph, columns, tiling.contraction.column);
  product.turns_columns = turns_panels(graph, tiling, tiling.register_lanes);
  product.are_rows_apart = !is_contiguous_in(graph, rows, tiling.reduce.back());
  product.is_narrow = std::max(product.row_bytes, product.column_bytes) < product.sum_bytes;
  product.adds_integers = !is_float(graph[tiling.stage].types[0]);
  product.is_widened = tiling.widens_rows;
  product.shares_rows = size.few_tasks;
  product.loop_cycles = parallel ? machine.handed_cycles : 0;
  return product;
}

void count_group(ContractionSize& size, const ProductGroup& group, const Machine& machine) {
  if (group.turns_signs) {
    size.column_registers = 2;
    size.sign_cycles = kTurnedSign / machine.operations;
  }
  if (group.adds_words) {
    // A product of pairs, and a sum of integers, which alone waits for the one before.
    size.multiply_adds = std::min(machine.multiply_adds, machine.operations / 2);
    size.latency = 1;
    size.term_registers = 1;
  }
}

int64_t products_along(const StageGraph& graph, const std::vector<AxisId>& axes) {
  int64_t products = 1;
  for (const AxisId axis : axes) {
    const int64_t extent = constant_extent(graph, axis).value_or(1);
    products = std::min(products * std::max<int64_t>(extent, 1), kMostBatch);
  }
  return products;
}

Parameter rows_parameter(const StageGraph& graph, AxisId row, int64_t preferred) {
  std::vector<int64_t> values;
  for (int64_t rows = 1; rows <= 16; ++rows) {
    if (rows <= 2 || rows % 2 == 0 || rows == preferred) values.push_back(rows);
  }
  return tile_parameter(graph, "rows", row, std::move(values), preferred);
}

Parameter columns_parameter(const StageGraph& graph, AxisId column, int64_t lanes,
                            int64_t preferred) {
  std::vector<int64_t> values = {lanes, 2 * lanes, 3 * lanes, 4 * lanes, 8 * lanes};
  if (!std::ranges::binary_search(values, preferred)) {
    values.insert(std::ranges::lower_bound(values, preferred), preferred);
  }
  return tile_parameter(graph, "lanes", column, std::move(values), preferred);
}

}  // namespace kiln::autoschedule
