// What a product takes in tiles, by where its factors are when tiles read them. Of all ways the
// cheapest is taken.
//
//   33 x 1000 x 777     ->  in place on Zen 5; on Sapphire Rapids panels that each core copies
//   1024 x 1024 x 1024  ->  panels that each core copies, some at once
//
// Tiles, panels and blocks are those of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008. What computes and what comes from each cache goes on at the same time, so
// that the longest counts most.
#include "compiler/autoschedule/templates/product_cost.h"

#include <algorithm>
#include <cmath>

#include "compiler/autoschedule/templates/dot_products.h"
#include "compiler/autoschedule/templates/streamed_columns.h"
#include "compiler/autoschedule/templates/tiled_product.h"
#include "runtime/core/cpu_name.h"

namespace kiln::autoschedule {
namespace {

constexpr double kLineBytes = Transfers::kLineBytes;
// A group of bytes or halves that lie along the steps is copied by itself, not a line at once.
constexpr double kGroupsApart = 2.5;
// Of what a line from L2 holds up a step, beside sums that fill the registers, and an element of a
// row, less where rows are copied in order.
constexpr double kLine = 2;
constexpr double kRow = 0.6;
constexpr double kRowInOrder = 0.17;
// A line from L2 and not from L1, and where vectors lie across two lines.
constexpr double kLineAgain = 0.5;
constexpr double kRaggedLineAgain = 0.6;
// Of a line that comes from L2 for each step, what does not go on beside multiply-adds.
constexpr double kConflict = 0.5;
// What a load costs beside multiply-adds, of what it takes a port.
constexpr double kLoads = 0.05;
// Sums that are loaded and stored again, for a vector.
constexpr double kSumsAgain = 2;

/// Rows of a tile, in place and along the sum, for whose lines L1 has no room since they share its
/// sets. Of 1024 floats a row 8 are in the ways of a Zen 4: 12, 13 and 14 take 2, 5 and 8 cycles a
/// step more than that.
double rows_in_conflict(const TiledProduct& tiled, const Machine& machine) {
  const Product& product = tiled.product;
  const double distance = product.row_neighbour;
  if (tiled.plan.copies_rows || product.are_rows_apart || product.unit || distance < kLineBytes ||
      std::fmod(distance, kLineBytes) != 0)
    return 0;
  return std::max(tiled.tile_rows - lines_kept(machine.l1_bytes, machine.l1_ways, distance), 0.0);
}

/// Cycles of a step beside its multiply-adds.
double beside_step(const TiledProduct& tiled, const Machine& machine, double columns) {
  const Product& product = tiled.product;
  const double vectors = ceil_div(columns, static_cast<double>(product.size.register_lanes));
  // Of tiles that take as long, the one that loads less is faster.
  double beside = kLoads * (tiled.tile_rows + vectors) / product.size.loads;
  double line = kLine;
  if (!is_panel_near(tiled, machine)) {
    const bool is_ragged =
        tiled.is_in_place() && std::fmod(product.column_distance, kLineBytes) != 0;
    line += is_ragged ? kRaggedLineAgain : kLineAgain;
  }
  beside += machine.held_cycles * (product.size.vector_part * vectors * line +
                                   tiled.tile_rows * (tiled.plan.copies_rows ? kRowInOrder : kRow));
  beside += rows_in_conflict(tiled, machine) * kConflict * kLineBytes / machine.from_l2;
  if (tiled.is_in_place() && product.are_columns_apart) {
    const bool changes_page = product.column_bytes * tiled.steps >= Transfers::kPageBytes;
    beside += columns * (machine.gathered_cycles + (changes_page ? machine.page_cycles : 0));
  }
  if (product.is_widened)
    beside += (tiled.plan.copies_rows ? 0 : tiled.tile_rows) + (tiled.is_in_place() ? vectors : 0);
  return beside;
}

double tile_of(const TiledProduct& tiled, const Machine& machine, int64_t columns) {
  return tile_core_cycles(tiled.product.size, static_cast<int64_t>(tiled.tile_rows), columns) +
         tiled.steps * beside_step(tiled, machine, static_cast<double>(columns));
}

/// How often the tiles of a matrix unit are set for what is left over of an axis: around the
/// outermost loop that has nothing else.
double settings_of(const TiledProduct& tiled) {
  const ContractionSize& size = tiled.product.size;
  const ProductPlan& plan = tiled.plan;
  const OtherSettings others =
      other_settings(size.rows, size.columns, plan.tile, *tiled.product.unit);
  const double at_once =
      plan.panels == Panels::Packed && !plan.columns_first ? static_cast<double>(plan.at_once) : 1;
  const bool rows_pass = plan.panels == Panels::Packed || plan.columns_first;
  const double blocks = rows_pass ? ceil_div(tiled.column_tiles.count, at_once) : 1;
  const bool is_alone = rows_pass && std::fmod(tiled.column_tiles.count - 1, at_once) == 0;
  return (others.columns ? (is_alone ? 1 : tiled.row_tiles.count) : 0) + (others.rows ? blocks : 0);
}

/// Multiply-adds, loads and the ends of loops.
double core_of(const TiledProduct& tiled, const Machine& machine) {
  const ContractionSize& size = tiled.product.size;
  if (tiled.product.unit) {
    const UnitSteps& steps = *tiled.product.unit;
    return tiled.batch * (unit_product_cycles(size.rows, size.columns, tiled.plan.tile, steps) +
                          steps.cycles.setting * settings_of(tiled));
  }
  const double full = std::floor(tiled.columns / tiled.tile_columns);
  const int64_t rest = size.columns % tiled.plan.tile.lanes;
  double across = full * tile_of(tiled, machine, static_cast<int64_t>(tiled.tile_columns));
  if (size.columns > tiled.plan.tile.lanes && rest > 0) across += tile_of(tiled, machine, rest);
  const double vectors =
      tiled.rows * ceil_div(tiled.columns, static_cast<double>(size.register_lanes));
  const double sums_again = (1 / tiled.depth() - 1) * vectors * kSumsAgain;
  return tiled.batch * (tiled.row_tiles.count * across + sums_again);
}

double copied_columns(const TiledProduct& tiled, const Machine& machine) {
  const Product& product = tiled.product;
  if (product.are_columns_apart && product.group_products == 1) {
    const bool is_turned =
        product.turns_columns && tiled.plan.tile.lanes % product.size.register_lanes == 0;
    return tiled.steps * tiled.columns *
           (is_turned ? machine.transposed_cycles : machine.gathered_cycles);
  }
  // Of a group each product is loaded by itself: of bytes, as many times as many pieces.
  const double products = product.group_products;
  const double loaded =
      products * ceil_div(tiled.tile_columns * product.column_bytes / products, kLineBytes);
  const double stored = ceil_div(tiled.tile_columns * product.sum_bytes, kLineBytes);
  return tiled.steps * tiled.column_tiles.count * (loaded + stored) / 2 *
         machine.copied_line_cycles * (product.are_columns_apart ? kGroupsApart : 1);
}

double copies_of(const TiledProduct& tiled, const Machine& machine) {
  const Product& product = tiled.product;
  const auto factors = static_cast<double>(product.panel_batch);
  double all = 0;
  int loops = 0;
  if (tiled.plan.panels == Panels::Packed) all += tiled.batch * copied_columns(tiled, machine);
  if (tiled.plan.panels == Panels::AllInAdvance) {
    ++loops;
    // Half of it another core has made.
    all +=
        factors * (copied_columns(tiled, machine) + tiled.column_tiles.all() / 2 / machine.from_l3);
  }
  if (tiled.plan.copies_rows) {
    ++loops;
    all += static_cast<double>(product.row_batch) * tiled.steps * tiled.rows *
           machine.copied_row_cycles;
  }
  return all + loops * product.loop_cycles;
}

double share_of(const TiledProduct& tiled) {
  const Product& product = tiled.product;
  const ProductPlan& plan = tiled.plan;
  const int64_t cores = product.size.cores;
  const double columns = static_cast<double>(plan.at_once) * tiled.tile_columns;
  if (plan.panels == Panels::Packed || tiled.has_blocks_of_columns())
    return core_share(tiled.columns, columns, tiled.batch, cores);
  if (!product.shares_rows) return 1;
  if (plan.columns_first) return core_share(tiled.columns, tiled.tile_columns, 1, cores);
  // Many cores share the tiles of columns of each block of rows, too.
  const bool shares_columns = plan.panels == Panels::AllInAdvance && cores > kFewCores;
  return core_share(tiled.rows, static_cast<double>(plan.row_tiles) * tiled.tile_rows,
                    shares_columns ? tiled.column_tiles.count : 1, cores);
}

ProductCycles cycles_in_tiles(const Product& product, const ProductPlan& plan,
                              const Machine& machine) {
  const TiledProduct tiled(product, plan);
  const Transfers fetches = fetches_of(tiled, machine);
  return {.core = core_of(tiled, machine) + fetches.waits(),
          .l2 = fetches.l2(),
          .l3 = fetches.l3(),
          .memory = fetches.memory(),
          .copies = copies_of(tiled, machine),
          .share = share_of(tiled)};
}

}  // namespace

// One core does not mind, and of two the one that works on is faster while the other waits.
double core_share(double extent, double part, double products, int64_t cores) {
  const double parts = ceil_div(extent, part);
  const auto tasks = static_cast<int64_t>(products * parts);
  if (tasks >= kManyTasks * cores) return 1;
  if (cores > 2) return imbalance(tasks, cores);
  // All but the last of a product are whole.
  double sooner = 0;
  double later = 0;
  for (int64_t i = 0; i < tasks; ++i) {
    const double done = static_cast<double>(i % static_cast<int64_t>(parts)) * part;
    sooner += std::min(part, extent - done);
    if (sooner > later) std::swap(sooner, later);
  }
  const double longer = (later - sooner) / (sooner + later);
  // Squared: a difference of a tenth costs 2 %, of a half it costs 50 %.
  return 1 + 2 * longer * longer;
}

ProductCycles product_cycles(const Product& product, const ProductPlan& plan,
                             const Machine& machine) {
  ProductCycles cycles = plan.panels == Panels::Streamed ? streamed_cycles(product, plan, machine)
                         : plan.panels == Panels::AlongSum
                             ? dots_cycles(product, plan, machine)
                             : cycles_in_tiles(product, plan, machine);
  double powers = 0;
  for (const double part : {cycles.core, cycles.l2, cycles.l3, cycles.memory})
    powers += part * part * part * part;
  cycles.all = std::sqrt(std::sqrt(powers)) * cycles.share + cycles.copies;
  return cycles;
}

}  // namespace kiln::autoschedule
