// Which ways to write a matrix product there are, and which is taken unmeasured: by where the
// factors lie, how far apart their steps are, and whether a copy is read often enough to pay for
// itself.
//
//   A[i, k] * B[k, j], 1024  ->  packed panels      64  ->  outer products, nothing copied
//   A[i, k] * B[j, k], few rows  ->  dot products    more rows  ->  panels, transposed as packed
//   A[i, k] * B[k, j], few columns  ->  dot products of transposed columns
//
// The thresholds are measured; docs/performance.md says what lies beside them.
#include <algorithm>
#include <set>

#include "compiler/autoschedule/templates/contraction_numbers.h"
#include "compiler/autoschedule/templates/dot_products.h"
#include "compiler/autoschedule/templates/unit_tiles.h"

namespace kiln::autoschedule {
namespace {

// Rows and columns of a tile of dot products: 16 sums, and 8 vectors loaded for them.
constexpr int64_t kDotRows = 4;
constexpr int64_t kFarDotColumns = 3;
constexpr int64_t kManyRegisters = 32;
// With more sums than registers they would be added up lane by lane, in another order.
constexpr int64_t kMostDots = 32;
// With fewer rows a copy of all panels at once takes longer than it saves.
constexpr int64_t kRowsForPanels = 128;
// With fewer rows, vectors along the reduction do better than columns transposed into panels.
constexpr int64_t kRowsToTranspose = 32;
constexpr int64_t kManyProducts = 1024;
// Column factors of no more elements stay in L2 as they are, where it is as large.
constexpr int64_t kLargePanels = 256 * 1024;
// Rows that panels pass by are far apart, and many of them would be conflict misses of L1: few rows
// of wide panels.
constexpr int64_t kPanelVectors = 3;
// The factors of so many products come from L3 or memory.
constexpr int64_t kFarBatch = 8;
// Of a tile that passes by copied panels: for a vector of each, and an element of a row.
constexpr int64_t kOtherRegisters = 4;
// Steps so far apart map to two sets of L1: conflict misses.
constexpr int64_t kConflictDistance = 512;
// Steps that are each in another page (1024 floats: TLB reach), and elements that are worth a copy
// then.
constexpr int64_t kFarDistance = 1024;
constexpr int64_t kFarElements = 16 * 1024;
// Elements and rows that are worth a copy where vectors are not aligned, and elements where a tile
// of rows takes a piece of each line.
constexpr int64_t kRaggedElements = 64 * 1024;
constexpr int64_t kRowsForRagged = 192;
constexpr int64_t kAcrossElements = 96 * 1024;
// Rows and columns from which on factors are worth a copy of another type.
constexpr int64_t kColumnsToWiden = 48;
constexpr int64_t kRowsToWiden = 32;
// Rows a column up to which a block of columns reads all rows.
constexpr int64_t kRowsOfColumns = 4;
// What is taken where sizes are not known: eight rows of two vectors, or so many as there are
// registers for.
constexpr int64_t kAnyRows = 8;
constexpr int64_t kAnyVectors = 2;

/// Whether the column factor can be copied for the tiles alone.
bool may_be_copied(const StageGraph& graph, const Tiling& tiling) {
  const bool is_other = tiling.rows.stage != tiling.panel.stage;
  const bool is_cell =
      graph[tiling.stage].role.cell_of >= 0 || graph[tiling.panel.stage].role.cell_of >= 0;
  return is_other && !is_cell && !graph[tiling.stage].part_of;
}

/// Vectors of a tile whose factors come from L3 or memory: what lies next to each other is read
/// ahead.
int64_t wide_tile(const ContractionSize& size) { return size.registers / 8; }

Numbers with_far_batch(Numbers numbers) {
  if (numbers.batch >= kFarBatch) numbers.size.least_vectors = wide_tile(numbers.size);
  return numbers;
}

/// The sketches of one contraction.
class Sketches {
 public:
  Sketches(const Chooser& chooser, Tiling tiling, int64_t any_lanes, bool parallel)
      : graph_(chooser.graph),
        tiling_(std::move(tiling)),
        numbers_(with_far_batch(numbers_of(chooser, tiling_, parallel))),
        parallel_(parallel_parameter(parallel)) {
    const int64_t sums = numbers_.size.registers - kOtherRegisters;
    tile_ = is_known() ? best_tile(numbers_.size)
                       : TileShape{std::min(kAnyRows, sums / kAnyVectors), any_lanes};
  }

  /// `columns_first`: the column factor is large, and tiles of it are read by few rows.
  Sketch outer_products(bool copies_rows, bool columns_first) const {
    RowBlocks blocks{tile_, 1};
    if (columns_first) {
      blocks.tile = best_far_tile(numbers_.size);
    } else if (is_known() && !copies_rows) {
      blocks = best_row_blocks(numbers_.size);
    }
    // Of few steps sums are most of what moves: in whole rows.
    const int64_t block = blocks.tiles > 1 && has_many_steps() ? blocks.tiles : 0;
    std::set<int64_t> tiles = {0, 4, 8, block};
    std::vector<Parameter> parameters = {
        rows(blocks.tile.rows),
        columns(blocks.tile.lanes),
        tile_parameter(graph_, "depth", tiling_.reduce[0], {0, 64, 128, 256, 512}, 0),
        {"columns first", {0, 1}, columns_first ? 1 : 0},
        {"rows of a panel", {tiles.begin(), tiles.end()}, block}};
    if (copies_rows) parameters.push_back({"rows in order", {0, 1}, 1});
    return sketch("outer products", std::move(parameters), write_outer_products);
  }

  Sketch packed_panels() const {
    ContractionSize size = numbers_.size;
    BlockShape block{tile_, 1};
    int64_t depth = 0;
    if (may_be_blocks()) {
      size.few_tasks = false;
      size.most_sums = size.registers - kOtherRegisters;
      size.rows_in_order = gains_by_rows_in_order();
      block = size.rows >= kRowsForPanels ? best_blocks(size, numbers_.batch)
                                          : BlockShape{best_panel_tile(size), 1};
      // What is transposed comes in pieces of a line.
      const bool is_plain =
          tiling_.reduce.size() == 1 && columns_lie_together() && tiling_.group.products == 1;
      if (size.rows < kRowsForPanels && is_plain) depth = best_depth(size, block.tile.lanes);
    }
    const bool columns_first = block.panels > 1 && is_near(size, block.tile.lanes);
    std::set<int64_t> depths = {0, 64, 128, depth};
    if (tiling_.group.products > 1) depths = {0};
    std::vector<Parameter> parameters = {rows(block.tile.rows),
                                         columns(block.tile.lanes),
                                         {"panels at once", {1, 2, 3, 4, 6, 8}, block.panels},
                                         {"depth", {depths.begin(), depths.end()}, depth},
                                         {"columns first", {0, 1}, columns_first ? 1 : 0}};
    if (may_be_blocks() && may_copy_rows())
      parameters.push_back({"rows in order", {0, 1}, gains_by_rows_in_order() ? 1 : 0});
    return sketch("outer products of packed panels", std::move(parameters), write_packed_panels);
  }

  Sketch panels_in_order() const {
    const ContractionSize& size = numbers_.size;
    TileShape tile = tile_;
    int64_t block = 0;
    if (size.rows >= kRowsForPanels && size.columns > 0) {
      // 8 x 3 vectors of 32 registers: 24 sums, three vectors of B, one element of A.
      tile = {size.registers / 4, std::min(size.columns, kPanelVectors * size.register_lanes)};
      block = best_block(size, tile.rows);
    }
    std::vector<Parameter> parameters = {
        rows(tile.rows), columns(tile.lanes), {"rows of a panel", {0, 4, 8, 16, 32}, block}};
    if (may_copy_rows())
      parameters.push_back({"rows in order", {0, 1}, gains_by_rows_in_order() ? 1 : 0});
    return sketch("outer products of panels in order", std::move(parameters),
                  write_panels_in_order);
  }

  std::vector<Sketch> unit_tiles(const Chooser& chooser, bool may_copy_all, bool parallel) const {
    return unit_tile_sketches(chooser, tiling_, numbers_, may_copy_all, parallel);
  }

  /// Whether all panels are copied first: there are rows enough to read them, and they are many, or
  /// their columns are far apart where they are.
  bool gains_by_order() const {
    const int64_t rows = numbers_.size.rows;
    if (!columns_lie_together()) {
      return rows == 0 || rows * products_of_a_panel() >= kRowsToTranspose;
    }
    return are_far_apart() && (rows == 0 || rows >= kRowsForPanels);
  }

  /// Whether a core copies the panels of its own columns instead, for all rows: these are not so
  /// many more that it takes longer to read them again for each block of columns. Columns that are
  /// apart are not transposed again for each product of a batch.
  bool gains_by_blocks() const {
    return may_be_blocks() && (columns_lie_together() || products_of_a_panel() == 1) &&
           !lies_along(graph_, *tiling_.contraction.column_factor, tiling_.panel_batch) &&
           numbers_.size.rows <= kRowsOfColumns * numbers_.size.columns;
  }

  /// Whether there are as many blocks of columns as cores; else tiles of rows are shared.
  bool has_blocks_for_cores() const {
    const int64_t lanes = std::max<int64_t>(tile_.lanes, 1);
    return !tiling_.has_many_cores ||
           numbers_.batch * (numbers_.size.columns / lanes) >= numbers_.size.cores;
  }

  /// Whether each core copies its panels where products are added in groups, for which they are
  /// copied in any case.
  bool groups_in_blocks() const {
    return products_of_a_panel() == 1 &&
           numbers_.size.rows <= kRowsOfColumns * numbers_.size.columns;
  }

  /// Whether a copy of the rows for the tiles alone is better than where they are. In groups they
  /// are copied where they must be, for another reason.
  bool gains_by_rows_in_order() const {
    if (tiling_.group.products > 1) return false;
    const int64_t elements = numbers_.size.rows * numbers_.size.steps;
    if (gains_by_widening()) return true;
    const ir::TensorRead& read = *tiling_.contraction.row_factor;
    return !rows_lie_along_sum() &&
           ((elements > kAcrossElements && gains_by_rows_copied(numbers_.size)) ||
            rows_lie_along_batch() ||
            (elements > kFarElements && step_distance(read) >= kFarDistance));
  }
  /// Whether rows of different products lie side by side.
  bool rows_lie_along_batch() const {
    return lies_along(graph_, *tiling_.contraction.row_factor, tiling_.row_batch);
  }

  /// Whether panels are many and rows too few to copy all first: then each is copied before it is
  /// used, or read where it is.
  bool has_few_rows() const { return has_large_panels() && numbers_.size.rows < kRowsForPanels; }
  /// Whether factors are converted by so many tiles that they are better copied as float32.
  bool gains_by_widening() const {
    return tiling_.widens_rows && numbers_.size.rows >= kRowsToWiden &&
           numbers_.size.columns >= kColumnsToWiden;
  }
  bool gains_by_packing() const {
    return has_large_panels() && (!has_few_rows() || gains_by_copy(numbers_.size));
  }

  bool rows_lie_along_sum() const {
    return is_contiguous_in(graph_, *tiling_.contraction.row_factor, tiling_.reduce.back());
  }

  const ContractionSize& size() const { return numbers_.size; }

  /// Rows and columns of a tile of dot products, of factors as they are. Columns that do not stay
  /// in L2 come anew for each tile of rows: of twice as many, where there are registers for that,
  /// and still a tile for each core.
  DotShape dots_in_place() const {
    const ContractionSize& size = numbers_.size;
    const bool is_far = size.columns * size.steps > size.l2_elements;
    const bool has_tasks = size.rows / (2 * kDotRows) >= size.cores;
    if (!is_far || !has_tasks || size.registers < kManyRegisters) return {kDotRows, kDotRows};
    return {2 * kDotRows, kFarDotColumns};
  }

 private:
  bool is_known() const { return numbers_.size.rows > 0 && numbers_.size.columns > 0; }
  /// Whether there are more steps than sets of L1 have lines, and TLBs pages to spare: with fewer,
  /// whatever is read again is still there, and sums are written nearly as often as columns are
  /// read.
  bool has_many_steps() const {
    constexpr int64_t kWays = 16;
    return numbers_.size.steps == 0 || numbers_.size.steps > kWays;
  }
  bool exceeds_l2() const {
    return has_many_steps() && numbers_.panels > std::min(kLargePanels, numbers_.size.l2_elements);
  }
  bool has_large_panels() const {
    return exceeds_l2() && numbers_.size.rows > 1 && !is_one_panel();
  }
  /// Whether all columns are one tile, whose steps follow each other in memory as those of a panel.
  bool is_one_panel() const {
    return columns_lie_together() && numbers_.size.columns > 0 &&
           numbers_.size.columns <= tile_.lanes &&
           step_distance(*tiling_.contraction.column_factor) <= tile_.lanes;
  }
  bool may_be_blocks() const {
    return numbers_.panels > 0 && numbers_.size.rows >= kRowsToTranspose;
  }

  /// Whether the column factor is large, its rows are not aligned, or each is in another page or in
  /// the same sets of L1 as the others (conflict misses).
  bool are_far_apart() const {
    if (!has_many_steps()) return false;
    const int64_t distance = step_distance(*tiling_.contraction.column_factor);
    const bool conflict = distance > 0 && distance % kConflictDistance == 0;
    const bool is_ragged =
        distance % numbers_.size.register_lanes != 0 && numbers_.size.rows >= kRowsForRagged;
    return exceeds_l2() || (numbers_.panels > 0 && conflict) ||
           (numbers_.panels > kFarElements && distance >= kFarDistance) ||
           (numbers_.panels > kRaggedElements && is_ragged);
  }
  /// From one step of the sum to the next; 0 where that is not known.
  int64_t step_distance(const ir::TensorRead& read) const {
    return distance_along(graph_, read, tiling_.reduce.back()).value_or(0);
  }
  /// How many products of the batch read the same panel.
  int64_t products_of_a_panel() const {
    int64_t products = 1;
    for (const AxisId axis : tiling_.batch) {
      if (std::ranges::find(tiling_.panel_batch, axis) != tiling_.panel_batch.end()) continue;
      const int64_t extent = constant_extent(graph_, axis).value_or(1);
      products = std::min(products * std::clamp<int64_t>(extent, 1, kManyProducts), kManyProducts);
    }
    return products;
  }
  bool may_copy_rows() const {
    return tiling_.group.products == 1 && (!rows_lie_along_sum() || tiling_.widens_rows);
  }
  bool columns_lie_together() const {
    return is_contiguous_in(graph_, *tiling_.contraction.column_factor, tiling_.contraction.column);
  }
  template <typename Write>
  Sketch sketch(const char* name, std::vector<Parameter> parameters, Write write) const {
    parameters.push_back(parallel_);
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
  const Tiling tiling_;
  const Numbers numbers_;
  const Parameter parallel_;
  TileShape tile_;
};

/// Whether other cores are worth starting for a product on a matrix unit, or with copies of both
/// factors before, each of which is a loop to start.
bool is_large_product(const StageGraph& graph, StageId id) {
  constexpr int64_t kWork = int64_t{1} << 22;  // 2 to 4 us on a matrix unit
  return constant_work(graph, id).value_or(kWork) >= kWork;
}

/// Of a tile of so many rows and columns. `in_order`: the columns are copied first.
Sketch dots_sketch(const Chooser& chooser, const Tiling& tiling, int64_t lanes, DotShape tile,
                   bool in_order, bool parallel) {
  const StageGraph& graph = chooser.graph;
  const std::set<int64_t> columns = {1, 2, tile.columns};
  std::set<int64_t> rows = {1, 2, 4, 6, 8, tile.rows};
  std::erase_if(rows, [&](int64_t count) { return count * *columns.rbegin() > kMostDots; });
  std::vector<Parameter> parameters = {
      tile_parameter(graph, "rows", tiling.contraction.row, {rows.begin(), rows.end()}, tile.rows),
      tile_parameter(graph, "columns", tiling.contraction.column, {columns.begin(), columns.end()},
                     tile.columns)};
  if (in_order) parameters.push_back({"columns in order", {1}, 1});
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
  const AxisId innermost = graph[id].reduce.back();
  const std::optional<int64_t> lanes =
      vector_factor(graph, id, contraction.column, kAnyVectors * chooser.machine.vectors.bytes);
  const Tiling tiling = tiling_of(chooser, id, contraction);
  const bool takes_several_loops = tiling.group.in_tiles || tiling.widens_rows;
  const bool parallel = may_be_parallel && is_large(graph, id) &&
                        (!takes_several_loops || is_large_product(graph, id));
  const Sketches all(chooser, tiling, lanes.value_or(1), parallel);

  const bool may_copy = may_be_parallel && may_be_copied(graph, tiling);
  const bool in_order =
      may_copy && only_reorders(graph, *contraction.column_factor,
                                joined({tiling.panel_batch, tiling.reduce, {contraction.column}}));
  if (tiling.group.in_tiles) return all.unit_tiles(chooser, in_order, parallel);
  if (tiling.group.products > 1) {
    std::vector<Sketch> sketches = {all.packed_panels()};
    if (in_order) {
      const bool in_blocks = all.groups_in_blocks() && all.has_blocks_for_cores();
      sketches.insert(in_blocks ? sketches.end() : sketches.begin(), all.panels_in_order());
    }
    return sketches;
  }
  const std::optional<int64_t> steps =
      vector_factor(graph, id, innermost, chooser.machine.vectors.bytes);
  const bool as_dots =
      steps && !is_contiguous_in(graph, *contraction.column_factor, contraction.column) &&
      is_contiguous_in(graph, *contraction.column_factor, innermost) &&
      is_contiguous_in(graph, *contraction.row_factor, innermost) && may_reassociate(chooser, id);
  // Dot products add in another order than the rest; sketches of a stage must all compute the same
  // bits, so they stand alone.
  if (as_dots && !(in_order && all.gains_by_order()))
    return {dots_sketch(chooser, tiling, *steps, all.dots_in_place(), false, parallel)};
  if (in_order && !as_dots && steps && has_dots_in_order(chooser, id, contraction) &&
      gains_by_dots(all.size())) {
    return {dots_sketch(chooser, tiling, *steps, best_dots(all.size()), true, parallel)};
  }
  if (!lanes) return {};
  const bool rows_in_order =
      may_copy && all.gains_by_rows_in_order() && !all.rows_lie_along_sum() &&
      only_reorders(graph, *contraction.row_factor,
                    joined({tiling.row_batch, tiling.reduce, {contraction.row}}));
  const bool in_place =
      in_order && !all.gains_by_order() && all.has_few_rows() && !all.gains_by_packing();
  std::vector<Sketch> sketches = {all.outer_products(rows_in_order, in_place)};
  if (in_order) {
    const auto place = all.gains_by_order() ? sketches.begin() : sketches.end();
    sketches.insert(place, all.panels_in_order());
  }
  if (may_copy) {
    const bool is_first =
        in_order && (all.gains_by_order() ? all.gains_by_blocks() && all.has_blocks_for_cores()
                                          : all.gains_by_packing() || all.gains_by_widening());
    sketches.insert(is_first ? sketches.begin() : sketches.end(), all.packed_panels());
  }
  return sketches;
}

}  // namespace kiln::autoschedule
