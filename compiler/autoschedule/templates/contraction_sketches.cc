// Which ways to write a matrix product there are, the one first that product_cost.cc finds the
// cheapest, each with the numbers with which it is.
//
//   A[i, k] * B[k, j], 1024  ->  packed panels      64  ->  outer products, nothing copied
//   A[i, k] * B[j, k], few rows  ->  dot products    more rows  ->  panels, transposed as packed
//   A[i, k] * B[k, j], few columns  ->  dot products of transposed columns
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "compiler/autoschedule/templates/contraction_numbers.h"
#include "compiler/autoschedule/templates/dot_products.h"
#include "compiler/autoschedule/templates/product_cost.h"
#include "compiler/autoschedule/templates/stage_cycles.h"
#include "compiler/autoschedule/templates/streamed_columns.h"
#include "compiler/autoschedule/templates/transfers.h"
#include "compiler/autoschedule/templates/unit_tiles.h"

namespace kiln::autoschedule {
namespace {

// With as many rows and 32 registers columns are transposed into panels, whatever product_cost.cc
// says of these. With 16 it has 1.4 to 1.9 times what they take on a Zen 3: of 35 products of 8 to
// 48 rows 1.4 tells apart what is sooner as dot products (16 x 512 x 512: 100 us, in panels 119)
// from what is not (24 x 64 x 2000: 142 and 78), but for ties and one of 1.14.
constexpr int64_t kRowsToTranspose = 32;
constexpr double kTransposedPanels = 1.4;
// Columns that are read once are so many times the results: 6 of 16 x 10 x 6813 of float64 take a
// Zen 3 0.74 ms so, and 0.37 in place.
constexpr double kColumnsOfSums = 2;
// Rows and columns of a tile of dot products of unknown sizes: 16 sums, and 8 vectors loaded for
// them, or where there are 16 registers as many sums as do not spill.
constexpr int64_t kDotRows = 4;
// Of all registers that any CPU has: with more sums they would be added up lane by lane, in another
// order.
constexpr int64_t kMostDots = 32;
// Bytes of a tile of rows that is fetched while one is computed: 65536 x 64 x 16 in tiles of 4 KiB
// takes a Golden Cove 1.26 ms so, and 1.41, but 20000 x 128 x 10 in 8 KiB 0.84 and 0.79.
constexpr double kMostRowsAhead = 4096;
// What is taken where sizes are not known: eight rows of two vectors, or so many as there are
// registers for beside a vector of each and an element of a row.
constexpr int64_t kAnyRows = 8;
constexpr int64_t kAnyVectors = 2;
constexpr int64_t kOtherRegisters = 4;

/// Whether the column factor can be copied for the tiles alone.
bool may_be_copied(const StageGraph& graph, const Tiling& tiling) {
  const bool is_other = tiling.rows.stage != tiling.panel.stage;
  const bool is_cell =
      graph[tiling.stage].role.cell_of >= 0 || graph[tiling.panel.stage].role.cell_of >= 0;
  return is_other && !is_cell && !graph[tiling.stage].part_of;
}

/// The sketches of one contraction.
class Sketches {
 public:
  Sketches(const Chooser& chooser, Tiling tiling, int64_t any_lanes, bool parallel)
      : graph_(chooser.graph),
        machine_(chooser.machine),
        tiling_(std::move(tiling)),
        numbers_(numbers_of(chooser, tiling_, parallel)),
        parallel_(parallel),
        product_(product_of(chooser, tiling_, numbers_, parallel)) {
    const int64_t sums = numbers_.size.registers - kOtherRegisters;
    any_tile_ = {std::min(kAnyRows, sums / kAnyVectors), any_lanes};
  }

  /// `may_copy`: the column factor can be copied for the tiles alone; `in_order`: and all of it
  /// before; `rows_in_order`: so can the row factor.
  std::vector<Sketch> in_order_of_cost(bool may_copy, bool in_order, bool rows_in_order) const {
    // A copy of windows has each element many times: those in place are near each other.
    const bool has_windows = tiling_.group.products == 1 && !in_order;
    std::vector<std::pair<double, Sketch>> sketches;
    const auto add = [&](Panels panels, bool may_copy_rows) {
      const CheapestPlan cheapest = plan_for(panels, may_copy_rows, !may_copy);
      if (cheapest.plan.tile.rows == 0) return;
      double first = has_windows && panels == Panels::InPlace ? 0 : cheapest.cycles;
      if (cheapest.plan.ahead > 0) first /= machine_.not_ahead;
      sketches.emplace_back(first, sketch_of(cheapest, may_copy_rows));
    };
    if (tiling_.group.products == 1) add(Panels::InPlace, rows_in_order);
    if (may_copy && may_stream()) add(Panels::Streamed, rows_lie_along_sum());
    if (in_order) add(Panels::AllInAdvance, may_copy_rows());
    // Where neighbours are of other products, a line has elements for all of these.
    const bool is_for_all =
        in_order && lies_along(graph_, *tiling_.contraction.column_factor, tiling_.panel_batch);
    if (tiling_.group.products > 1 || (may_copy && !is_for_all))
      add(Panels::Packed, may_copy_rows());
    return cheapest_first(std::move(sketches));
  }

  std::vector<Sketch> unit_tiles(const Chooser& chooser, bool may_copy_all, bool parallel) const {
    return unit_tile_sketches(chooser, tiling_, numbers_, product_, may_copy_all, parallel);
  }

  /// Whether columns that are transposed into panels take less than vectors along the reduction.
  bool gains_by_transposing() const {
    const int64_t rows = numbers_.size.rows;
    const int64_t readers = product_.batch / std::max<int64_t>(product_.panel_batch, 1);
    const bool has_many_registers = numbers_.size.registers >= kManyRegisters;
    if (rows == 0 || (has_many_registers && rows * readers >= kRowsToTranspose)) return true;
    if (!is_known()) return false;
    return in_panels() < dots().cycles * (has_many_registers ? 1 : kTransposedPanels);
  }

  /// Cycles of the sooner of two ways to copy the columns.
  double in_panels() const {
    return std::min(plan_for(Panels::AllInAdvance, may_copy_rows()).cycles,
                    plan_for(Panels::Packed, may_copy_rows()).cycles);
  }

  bool rows_lie_along_sum() const {
    return is_contiguous_in(graph_, *tiling_.contraction.row_factor, tiling_.reduce.back());
  }

  const ContractionSize& size() const { return numbers_.size; }

  /// Dot products of factors as they are.
  CheapestPlan dots() const {
    PlanLimits limits;
    if (!is_known())
      limits.tile = {kDotRows, std::min(kDotRows, numbers_.size.most_sums / kDotRows)};
    return cheapest_plan(product_, Panels::AlongSum, limits, machine_);
  }

  bool is_known() const { return numbers_.size.rows > 0 && numbers_.size.columns > 0; }

 private:
  CheapestPlan plan_for(Panels panels, bool may_copy_rows, bool stay_in_place = false) const {
    PlanLimits limits{.may_copy_rows = may_copy_rows};
    if (!is_known()) limits.tile = any_tile_;
    // What is transposed comes in pieces of a line, of which a part of the steps would waste most.
    limits.may_cut_steps =
        tiling_.reduce.size() == 1 && !product_.are_columns_apart && tiling_.group.products == 1;
    limits.may_cut_in_place = stay_in_place && limits.may_cut_steps;
    limits.may_fetch_ahead = limits.may_cut_steps && is_known() && are_columns_stored();
    return cheapest_plan(product_, panels, limits, machine_);
  }

  /// Columns that lie together, of one sum, which are far, and not so many rows that these matter
  /// more.
  bool may_stream() const {
    const ContractionSize& size = numbers_.size;
    if (!is_known() || tiling_.group.products > 1 || tiling_.reduce.size() > 1 ||
        product_.are_columns_apart)
      return false;
    // Else results are most of what comes and goes, and each few steps go by all of them.
    if (static_cast<double>(size.steps) * product_.column_bytes <
        kColumnsOfSums * static_cast<double>(size.rows) * product_.sum_bytes)
      return false;
    const double columns = static_cast<double>(numbers_.panels) * product_.column_bytes;
    // Tiles of many registers read four lines of a step, which is as good from L3.
    return size.registers >= kManyRegisters
               ? size.rows <= kMostRowsFromMemory &&
                     columns > static_cast<double>(machine_.l3_bytes)
               : size.rows <= kMostStreamedRows && columns > static_cast<double>(machine_.l2_bytes);
  }

  bool are_columns_stored() const { return is_stored(tiling_.panel.stage); }
  bool is_stored(StageId stage) const {
    return graph_[stage].attach.kind == schedule::Attach::Kind::Root;
  }

  /// Whether the next tile of rows is fetched beside one: of rows that L2 does not hold and that
  /// are read once, on a CPU which sees the loads of later steps late.
  bool fetches_rows(const ProductPlan& plan) const {
    const ContractionSize& size = product_.size;
    const double rows = static_cast<double>(product_.row_batch * size.rows * size.steps);
    const double row = static_cast<double>(size.steps) * product_.row_bytes;
    const double tile = static_cast<double>(plan.tile.rows) * row;
    return machine_.steps_ahead > 0 && is_known() && tiling_.reduce.size() == 1 &&
           rows_lie_along_sum() && is_stored(tiling_.rows.stage) && plan.depth == 0 &&
           !plan.copies_rows && size.columns <= plan.tile.lanes &&
           rows * product_.row_bytes > static_cast<double>(machine_.l2_bytes) &&
           tile <= kMostRowsAhead && std::fmod(row, Transfers::kLineBytes) == 0;
  }

  bool may_copy_rows() const {
    return tiling_.group.products == 1 && (!rows_lie_along_sum() || tiling_.widens_rows);
  }

  Sketch sketch_of(const CheapestPlan& cheapest, bool may_copy_rows) const {
    const ProductPlan& plan = cheapest.plan;
    std::vector<Parameter> parameters = {rows(plan.tile.rows), columns(plan.tile.lanes)};
    const auto add = [&](const char* name, std::set<int64_t> values, int64_t preferred) {
      values.insert(preferred);
      parameters.push_back({name, {values.begin(), values.end()}, preferred});
    };
    const int64_t row_tiles = plan.row_tiles > 1 ? plan.row_tiles : 0;
    std::set<int64_t> depths = {0, 64, 128, 256, 512};
    const char* name = "outer products";
    auto* write = &write_outer_products;
    switch (plan.panels) {
      case Panels::AlongSum: break;  // dots_sketch
      case Panels::InPlace:
        depths.insert(plan.depth);
        parameters.push_back(tile_parameter(graph_, "depth", tiling_.reduce[0],
                                            {depths.begin(), depths.end()}, plan.depth));
        add("columns first", {0, 1}, plan.columns_first ? 1 : 0);
        add("rows of a panel", {0, 4, 8}, row_tiles);
        if (fetches_rows(plan)) add("rows ahead", {0}, 1);
        if (plan.ahead > 0) {
          add("steps ahead", {0}, plan.ahead);
          if (plan.depth > 0) add("tiles at once", {4, 8}, plan.at_once);
        }
        break;
      case Panels::Streamed:
        name = "outer products of columns read once";
        write = &write_streamed_columns;
        add("steps at once", {4, 8, 16}, plan.depth);
        add("columns of a block", {256, 512, 1024, 2048, 4096}, plan.at_once * plan.tile.lanes);
        break;
      case Panels::AllInAdvance:
        name = "outer products of panels in order";
        write = &write_panels_in_order;
        add("rows of a panel", {0, 4, 8, 16, 32}, row_tiles);
        break;
      case Panels::Packed:
        name = "outer products of packed panels";
        write = &write_packed_panels;
        add("panels at once", {1, 2, 3, 4, 6, 8}, plan.at_once);
        // Steps that go in groups are not cut.
        if (tiling_.group.products == 1) add("depth", {0, 64, 128}, plan.depth);
        add("columns first", {0, 1}, plan.columns_first ? 1 : 0);
        break;
    }
    if (may_copy_rows) add("rows in order", {0, 1}, plan.copies_rows ? 1 : 0);
    const bool is_shared =
        parallel_ && (!is_known() || is_worth_sharing(tiling_, cheapest, machine_));
    parameters.push_back(parallel_parameter(is_shared));
    return {.name = name,
            .parameters = std::move(parameters),
            .write = [&graph = graph_, tiling = tiling_, write](StepWriter& steps,
                                                                const Values& values) {
              write(graph, tiling, steps, values);
            }};
  }
  Parameter rows(int64_t preferred) const {
    return rows_parameter(graph_, tiling_.contraction.row, preferred);
  }
  Parameter columns(int64_t preferred) const {
    return columns_parameter(graph_, tiling_.contraction.column, numbers_.size.register_lanes,
                             preferred);
  }

  const StageGraph& graph_;
  const Machine& machine_;
  const Tiling tiling_;
  const Numbers numbers_;
  const bool parallel_;
  TileShape any_tile_;
  const Product product_;
};

/// `in_order`: the columns are copied first.
Sketch dots_sketch(const Chooser& chooser, const Tiling& tiling, int64_t lanes,
                   const ProductPlan& plan, bool in_order, bool parallel) {
  const StageGraph& graph = chooser.graph;
  const DotShape tile{plan.tile.rows, plan.tile.lanes};
  const std::set<int64_t> columns = {1, 2, tile.columns};
  std::set<int64_t> rows = {1, 2, 4, 6, 8, tile.rows};
  std::erase_if(rows, [&](int64_t count) { return count * *columns.rbegin() > kMostDots; });
  std::vector<Parameter> parameters = {
      tile_parameter(graph, "rows", tiling.contraction.row, {rows.begin(), rows.end()}, tile.rows),
      tile_parameter(graph, "columns", tiling.contraction.column, {columns.begin(), columns.end()},
                     tile.columns)};
  if (in_order)
    parameters.push_back({"columns in order", {1}, 1});
  else
    parameters.push_back({"columns first", {0, 1}, plan.columns_first ? 1 : 0});
  parameters.push_back(parallel_parameter(parallel));
  return {.name = "dot products",
          .parameters = std::move(parameters),
          .write = [&graph, tiling, lanes](StepWriter& steps, const Values& values) {
            write_dots(graph, tiling, lanes, steps, values);
          }};
}

/// Whether rows lie along the only sum, in its type: as dot products, only columns are to be
/// copied.
bool has_dots_in_order(const Chooser& chooser, StageId id, const Contraction& contraction) {
  const Stage& stage = chooser.graph[id];
  const DType type = stage.types[0];
  return stage.reduce.size() == 1 && contraction.row_factor->type.element == type &&
         contraction.column_factor->type.element == type &&
         is_contiguous_in(chooser.graph, *contraction.row_factor, stage.reduce[0]) &&
         may_reassociate(chooser, id);
}

}  // namespace

std::vector<Sketch> contraction_sketches(const Chooser& chooser, StageId id,
                                         const Contraction& contraction, bool may_be_parallel) {
  const StageGraph& graph = chooser.graph;
  const std::optional<int64_t> lanes =
      vector_factor(graph, id, contraction.column, kAnyVectors * chooser.machine.vectors.bytes);
  const Tiling tiling = tiling_of(chooser, id, contraction);
  const AxisId innermost = tiling.reduce.back();
  // What comes in groups or in tiles of a matrix unit is done sooner than stage_cycles.h says,
  // which the cost of each way knows.
  const bool parallel = may_be_parallel && is_worth_sharing(chooser, id);
  const Sketches all(chooser, tiling, lanes.value_or(1), parallel);

  const bool may_copy = may_be_parallel && may_be_copied(graph, tiling);
  const bool in_order =
      may_copy && only_reorders(graph, *contraction.column_factor,
                                joined({tiling.panel_batch, tiling.reduce, {contraction.column}}));
  if (tiling.group.in_tiles) return all.unit_tiles(chooser, in_order, parallel);
  const std::optional<int64_t> steps =
      vector_factor(graph, id, innermost, chooser.machine.vectors.bytes);
  const bool as_dots =
      steps && !is_contiguous_in(graph, *contraction.column_factor, contraction.column) &&
      is_contiguous_in(graph, *contraction.column_factor, innermost) &&
      is_contiguous_in(graph, *contraction.row_factor, innermost) && may_reassociate(chooser, id);
  if (tiling.group.products > 1 && as_dots) {
    // A few rows are not worth a copy of columns that lie along the sum.
    Tiling plain = tiling;
    plain.group = {};
    const Sketches one_by_one(chooser, plain, lanes.value_or(1), parallel);
    const CheapestPlan dots = one_by_one.dots();
    if (one_by_one.is_known() && dots.cycles < all.in_panels())
      return {dots_sketch(chooser, plain, *steps, dots.plan, false, parallel)};
  }
  if (tiling.group.products > 1) return all.in_order_of_cost(may_copy, in_order, false);
  // Dot products add in another order than the rest; sketches of a stage must all compute the same
  // bits, so they stand alone.
  if (as_dots && !(in_order && all.gains_by_transposing()))
    return {dots_sketch(chooser, tiling, *steps, all.dots().plan, false, parallel)};
  if (in_order && !as_dots && steps && has_dots_in_order(chooser, id, contraction) &&
      gains_by_dots(all.size())) {
    const DotShape best = best_dots(all.size());
    const ProductPlan plan{.panels = Panels::AlongSum, .tile = {best.rows, best.columns}};
    return {dots_sketch(chooser, tiling, *steps, plan, true, parallel)};
  }
  if (!lanes) return {};
  const bool rows_in_order =
      may_copy && !all.rows_lie_along_sum() &&
      only_reorders(graph, *contraction.row_factor,
                    joined({tiling.row_batch, tiling.reduce, {contraction.row}}));
  return all.in_order_of_cost(may_copy, in_order, rows_in_order);
}

}  // namespace kiln::autoschedule
