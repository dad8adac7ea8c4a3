// Which ways to write a product on a matrix unit (Intel AMX) there are, the cheapest first.
//
//   2048 x 2048 x 2048  ->  panels that each core copies, some at once
//   8192 x 512 x 64  ->  all panels copied first
#include "compiler/autoschedule/templates/unit_tiles.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/analysis/tile_product.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kMany = int64_t{1} << 20;

UnitSteps unit_steps_of(const Chooser& chooser, const Tiling& tiling, const Numbers& numbers) {
  // Steps that are no whole group are left to vectors.
  const int64_t steps = constant_extent(chooser.graph, tiling.group.axis).value_or(1);
  const int64_t groups = std::max<int64_t>(steps / tiling.group.products, 1);
  return {groups, std::max<int64_t>(numbers.size.steps / groups, 1), chooser.machine.unit};
}

/// Products of the batch that share a factor, whose batch is `axes`.
int64_t sharing(const StageGraph& graph, const Tiling& tiling, const std::vector<AxisId>& axes) {
  int64_t products = 1;
  for (const AxisId axis : tiling.batch) {
    if (std::ranges::find(axes, axis) != axes.end()) continue;
    products = std::min(kMany, products * constant_extent(graph, axis).value_or(kMany));
  }
  return products;
}

/// Whether the panels of all products, copied, stay in L2 beside what else passes.
bool all_stay_in_l2(const StageGraph& graph, const Tiling& tiling, const Numbers& numbers) {
  const int64_t copies = numbers.batch / sharing(graph, tiling, tiling.panel_batch);
  return numbers.panels > 0 && copies * numbers.panels <= numbers.size.l2_elements * 2 / 5;
}

/// Rows that do not stay in L2 come once, if all products that read them take them one after the
/// other.
bool gains_by_rows_first(const StageGraph& graph, const Tiling& tiling, const Numbers& numbers) {
  return sharing(graph, tiling, tiling.row_batch) > 1 && all_stay_in_l2(graph, tiling, numbers) &&
         numbers.size.rows * numbers.size.steps > numbers.size.l2_elements / 2;
}

/// "rows" and "lanes" around the preferred ones, all of which have room with all: sums of vectors
/// are rounded in another way.
std::vector<Parameter> sides_around(const StageGraph& graph, const Contraction& contraction,
                                    const TileShape& tile, int64_t groups) {
  const auto has_room = [&](int64_t rows, int64_t lanes) {
    return analysis::tiles_have_room(rows, lanes, groups);
  };
  std::set<int64_t> lanes = {16, 32, tile.lanes};
  std::erase_if(lanes, [&](int64_t wide) { return !has_room(tile.rows, wide); });
  std::set<int64_t> rows = {8, 16, 32, tile.rows};
  std::erase_if(rows, [&](int64_t tall) {
    return !std::ranges::all_of(lanes, [&](int64_t wide) { return has_room(tall, wide); });
  });
  lanes.insert(tile.lanes);
  rows.insert(tile.rows);
  const auto parameter = [&](const char* name, AxisId axis, const std::set<int64_t>& values,
                             int64_t preferred) {
    return tile_parameter(graph, name, axis, {values.begin(), values.end()}, preferred);
  };
  return {parameter("rows", contraction.row, rows, tile.rows),
          parameter("lanes", contraction.column, lanes, tile.lanes)};
}

}  // namespace

bool is_worth_sharing(const Tiling& tiling, const CheapestPlan& way, const Machine& machine) {
  double alone = 0;
  if (way.plan.copies_rows) alone += tiling.row_copy_alone;
  if (way.plan.panels == Panels::AllInAdvance) alone += tiling.panel_copy_alone;
  return way.cycles - alone >= machine.wake_cycles;
}

std::vector<Sketch> unit_tile_sketches(const Chooser& chooser, const Tiling& tiling,
                                       const Numbers& numbers, Product product, bool may_copy_all,
                                       bool parallel) {
  const StageGraph& graph = chooser.graph;
  const UnitSteps steps = unit_steps_of(chooser, tiling, numbers);
  product.unit = steps;
  PlanLimits limits{.must_copy_rows = tiling.group.copies_rows};
  const auto cheapest = [&](Panels panels) {
    return cheapest_plan(product, panels, limits, chooser.machine);
  };
  const bool may_be_in_order = may_copy_all || all_stay_in_l2(graph, tiling, numbers);
  CheapestPlan packed = cheapest(Panels::Packed);
  CheapestPlan in_order = may_be_in_order ? cheapest(Panels::AllInAdvance) : packed;
  // Tiles of two shapes would leave other sums to vectors, which round in another way.
  limits.tile = packed.cycles <= in_order.cycles ? packed.plan.tile : in_order.plan.tile;
  const auto sketch = [&](const char* name, const CheapestPlan& way,
                          const std::vector<Parameter>& others, auto* write) {
    std::vector<Parameter> parameters =
        sides_around(graph, tiling.contraction, *limits.tile, steps.groups);
    parameters.insert(parameters.end(), others.begin(), others.end());
    parameters.push_back(
        parallel_parameter(parallel && is_worth_sharing(tiling, way, chooser.machine)));
    return Sketch{.name = name,
                  .parameters = std::move(parameters),
                  .write = [&graph, tiling, write](StepWriter& steps, const Values& values) {
                    write(graph, tiling, steps, values);
                  }};
  };
  packed = cheapest(Panels::Packed);
  std::vector<std::pair<double, Sketch>> sketches = {
      {packed.cycles, sketch("tiles of packed panels", packed,
                             {{"panels at once", {1, 2, 3, 4, 6, 8, 12, 16}, packed.plan.at_once},
                              {"columns first", {0, 1}, packed.plan.columns_first ? 1 : 0}},
                             &write_packed_panels)}};
  if (may_be_in_order) {
    in_order = cheapest(Panels::AllInAdvance);
    const bool rows_first = gains_by_rows_first(graph, tiling, numbers);
    const int64_t block = in_order.plan.row_tiles > 1 ? in_order.plan.row_tiles : 0;
    sketches.emplace_back(rows_first ? 0 : in_order.cycles,
                          sketch("tiles of panels in order", in_order,
                                 {{"rows of a panel", {0, 4, 8, 16, 32}, block},
                                  {"rows first", {0, 1}, rows_first ? 1 : 0}},
                                 &write_panels_in_order));
  }
  return cheapest_first(std::move(sketches));
}

}  // namespace kiln::autoschedule
