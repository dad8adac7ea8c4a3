// What the caches bring to a product in tiles: how often each tile of a factor comes, and what has
// passed since it was there.
//
//   8 x 48 of 1024 x 1024 x 1024, panels that are copied, two at once  ->  each panel 128 times
//   from L2, a tile of rows 11 times from L3 and as often from L2
#include "compiler/autoschedule/templates/tiled_product.h"

#include <algorithm>
#include <cmath>

namespace kiln::autoschedule {
namespace {

constexpr double kLineBytes = Transfers::kLineBytes;

/// Bytes of the lines that elements along these axes lie in, each line once: axes that go on where
/// shorter ones end, or before, have one stretch of memory together.
double distinct_bytes(double element, std::vector<Stretch> axes) {
  std::ranges::sort(axes, {}, &Stretch::distance);
  double together = element;
  double stretches = 1;
  for (const Stretch& axis : axes) {
    if (axis.distance <= together + kLineBytes)
      together += (axis.extent - 1) * axis.distance;
    else
      stretches *= axis.extent;
  }
  return stretches * ceil_div(together, kLineBytes) * kLineBytes;
}

FactorTiles rows_of(const TiledProduct& tiled) {
  const Product& product = tiled.product;
  FactorTiles tiles{.count = ceil_div(tiled.rows, tiled.tile_rows)};
  if (tiled.plan.copies_rows) {
    tiles.bytes = tiled.steps * tiled.tile_rows * product.sum_bytes;
  } else if (!product.are_rows_apart) {
    tiles.bytes = tiled.steps * tiled.tile_rows * product.row_bytes;
  } else {
    tiles.distance = product.row_distance;
    const double spread = tiled.tile_rows * std::max(product.row_neighbour, product.row_bytes);
    const double lines = std::min(ceil_div(spread, kLineBytes), tiled.tile_rows);
    tiles.piece = std::min(spread, lines * kLineBytes);
    std::vector<Stretch> axes = product.row_stretches;
    axes.push_back({tiled.tile_rows, product.row_neighbour});
    tiles.bytes =
        std::min(tiled.steps * lines * kLineBytes, distinct_bytes(product.row_bytes, axes));
  }
  return tiles;
}

FactorTiles columns_of(const TiledProduct& tiled) {
  const Product& product = tiled.product;
  FactorTiles tiles{.count = ceil_div(tiled.columns, tiled.tile_columns)};
  if (!tiled.is_in_place()) {
    tiles.bytes = tiled.steps * tiled.tile_columns * product.sum_bytes;
  } else if (product.are_columns_apart) {
    tiles.bytes = tiled.steps * tiled.tile_columns * product.column_bytes;
  } else {
    tiles.distance = product.column_distance;
    tiles.piece = tiled.tile_columns * product.column_bytes;
    const bool is_ragged = std::fmod(tiles.distance, kLineBytes) != 0;
    const double lines = ceil_div(tiles.piece, kLineBytes) + (is_ragged ? 1 : 0);
    // Where steps follow each other, their lines are the same.
    const double each = lines * kLineBytes;
    tiles.bytes = tiled.steps * (tiles.distance > 0 ? std::min(each, tiles.distance) : each);
  }
  return tiles;
}

double touched_by(const TiledProduct& tiled) {
  const Product& product = tiled.product;
  const double factors =
      static_cast<double>(product.row_batch) * tiled.rows * product.row_bytes +
      static_cast<double>(product.panel_batch) * tiled.columns * product.column_bytes;
  return tiled.steps * factors + tiled.batch * tiled.rows * tiled.columns * product.sum_bytes;
}

/// So many bytes have passed since a tile was read.
Transfers::Others others_of(const FactorTiles& tiles, double steps, double bytes,
                            const Machine& machine) {
  return passed_between(bytes, steps, tiles.distance, machine);
}

class Fetches {
 public:
  Fetches(const TiledProduct& tiled, const Machine& machine)
      : tiled_(tiled),
        product_(tiled.product),
        plan_(tiled.plan),
        machine_(machine),
        transfers_(machine, tiled.touched) {}

  Transfers all() {
    store_sums();
    // Of rows that lie apart each product takes a line for each element, a copy all that is in it.
    const bool is_scattered = product_.row_neighbour >= kLineBytes && !plan_.copies_rows;
    transfers_.first(
        (is_scattered ? rows_.all() : tiled_.steps * tiled_.rows * product_.row_bytes) *
        static_cast<double>(product_.row_batch));
    first_columns();
    if (plan_.panels == Panels::Packed) {
      pass_blocks();
    } else if (plan_.columns_first) {
      again(columns_, rows_.count - 1, depth_in_place() * (columns_.bytes + rows_.bytes));
      const double blocks = tiled_.has_blocks_of_columns() ? tiled_.blocks_of_columns() : 1;
      again(rows_, columns_.count - blocks, depth_in_place() * (rows_.all() + columns_.bytes));
      again(rows_, blocks - 1, rows_.all() + columns_.bytes);
    } else {
      pass_columns();
    }
    return transfers_;
  }

 private:
  /// All tiles come again so often, after so many bytes.
  void again(const FactorTiles& tiles, double passes, double bytes) {
    const Transfers::Others others =
        others_of(tiles, tiled_.steps * depth_in_place(), bytes, machine_);
    const double count = tiled_.batch * passes * tiles.count;
    transfers_.again(count * tiles.bytes, others);
    if (plan_.ahead > 0 && &tiles == &columns_) return;
    transfers_.pieces_again(count * tiled_.steps, others.l2, tiles.distance, tiles.piece);
    transfers_.pages(count, tiled_.steps, tiles.distance);
  }

  /// Part of the steps of columns in place that a tile takes at once.
  double depth_in_place() const { return tiled_.is_in_place() ? tiled_.depth() : 1; }

  /// Panels that are copied, some at once, and all rows by them.
  void pass_blocks() {
    const double at_once = std::min(static_cast<double>(plan_.at_once), columns_.count);
    const double blocks = ceil_div(columns_.count, at_once);
    const double block = at_once * columns_.bytes;
    const double tile = tiled_.depth() * (columns_.bytes + rows_.bytes);
    if (plan_.columns_first) {
      again(columns_, rows_.count, tile);
      return again(rows_, columns_.count - 1, rows_.all() + block);
    }
    again(columns_, rows_.count, tiled_.depth() * (block + rows_.bytes));
    again(rows_, columns_.count - blocks, tile);
    again(rows_, blocks - 1, rows_.all() + block);
  }

  /// Some tiles of rows, and all columns by them.
  void pass_columns() {
    const double tiles = std::min(static_cast<double>(plan_.row_tiles), rows_.count);
    const Transfers::Others panel = others_of(columns_, tiled_.steps * depth_in_place(),
                                              columns_.bytes * depth_in_place(), machine_);
    const bool stays = tiles > 1 && stays_in_l1(panel, machine_);
    const double passes = stays || columns_.count == 1 ? ceil_div(rows_.count, tiles) : rows_.count;
    again(columns_, passes - 1, columns_.all() + tiles * rows_.bytes);
    again(rows_, columns_.count - 1, depth_in_place() * (columns_.bytes + tiles * rows_.bytes));
  }

  /// Sums, of which a row is written in pieces where other columns come before its next ones.
  void store_sums() {
    const double sums = tiled_.batch * tiled_.rows * tiled_.columns * product_.sum_bytes;
    transfers_.first(sums);
    if (plan_.depth > 0) {
      const double passes = 1 / tiled_.depth() - 1;
      // Between two uses, those of a panel, or of a block of rows where columns stay in place.
      const double block =
          tiled_.has_blocks_of_columns()
              ? tiled_.rows * tiled_.tile_columns * static_cast<double>(plan_.at_once)
          : tiled_.is_in_place()
              ? static_cast<double>(plan_.row_tiles) * tiled_.tile_rows * tiled_.columns
              : tiled_.rows * tiled_.tile_columns;
      transfers_.again(2 * passes * sums, block * product_.sum_bytes);
    }
    const double together = columns_together();
    if (together >= tiled_.columns) return;
    const double pieces = tiled_.batch * tiled_.rows * ceil_div(tiled_.columns, together);
    transfers_.pieces_again(pieces, sums, tiled_.columns * product_.sum_bytes,
                            together * product_.sum_bytes);
  }

  /// Columns that are computed before the next rows.
  double columns_together() const {
    if (plan_.panels == Panels::Packed && !plan_.columns_first)
      return static_cast<double>(plan_.at_once) * tiled_.tile_columns;
    const bool rows_pass =
        plan_.panels == Panels::Packed || plan_.columns_first || plan_.row_tiles > 1;
    return rows_pass ? tiled_.tile_columns : tiled_.columns;
  }

  void first_columns() {
    const auto factors = static_cast<double>(product_.panel_batch);
    const double pieces = factors * columns_.count * tiled_.steps;
    if (tiled_.is_in_place()) {
      if (plan_.ahead > 0) {
        const double each = tiled_.steps * tiled_.columns * product_.column_bytes;
        transfers_.first_ahead(factors * std::min(each, columns_.all()));
        if (!tiled_.has_blocks_of_columns())
          return transfers_.pieces_ahead(pieces, columns_.distance, columns_.piece);
        return transfers_.pieces_in_turn(factors * tiled_.steps * tiled_.blocks_of_columns(),
                                         columns_.distance,
                                         static_cast<double>(plan_.at_once) * columns_.piece);
      }
      transfers_.first(factors * columns_.all());
      transfers_.pages(factors * columns_.count, tiled_.steps, columns_.distance);
      return transfers_.pieces_in_turn(pieces, columns_.distance, columns_.piece);
    }
    transfers_.first(factors * tiled_.steps * tiled_.columns * product_.column_bytes);
    // A copy waits for what it copies as its reader would: those that are read once, and those in
    // groups, whose products are pieces by themselves. Panels that are copied together are a piece.
    const bool is_group = product_.group_products > 1;
    const bool is_read_once = product_.size.rows <= product_.size.most_rows;
    if (!product_.are_columns_apart && (is_group || is_read_once)) {
      const double together =
          is_group && plan_.panels == Panels::Packed ? static_cast<double>(plan_.at_once) : 1;
      const double blocks = factors * ceil_div(columns_.count, together);
      transfers_.pieces_in_turn(
          blocks * tiled_.steps * product_.group_products,
          product_.column_distance / product_.group_products,
          together * tiled_.tile_columns * product_.column_bytes / product_.group_products);
    }
    // A copy of all is written, and comes back when all of it is there.
    const double copied = factors * columns_.all();
    if (plan_.panels == Panels::AllInAdvance) transfers_.again(2 * copied, copied);
  }

  const TiledProduct& tiled_;
  const Product& product_;
  const ProductPlan& plan_;
  const Machine& machine_;
  const FactorTiles& rows_ = tiled_.row_tiles;
  const FactorTiles& columns_ = tiled_.column_tiles;
  Transfers transfers_;
};

}  // namespace

TiledProduct::TiledProduct(const Product& given, const ProductPlan& way)
    : product(given),
      plan(way),
      rows(static_cast<double>(given.size.rows)),
      columns(static_cast<double>(given.size.columns)),
      steps(static_cast<double>(given.size.steps)),
      batch(static_cast<double>(given.batch)),
      tile_rows(static_cast<double>(std::min(way.tile.rows, given.size.rows))),
      tile_columns(static_cast<double>(std::min(way.tile.lanes, given.size.columns))),
      row_tiles(rows_of(*this)),
      column_tiles(columns_of(*this)),
      touched(touched_by(*this)) {}

double TiledProduct::depth() const {
  return plan.depth > 0 ? static_cast<double>(plan.depth) / steps : 1;
}

Transfers fetches_of(const TiledProduct& tiled, const Machine& machine) {
  return Fetches(tiled, machine).all();
}

bool is_panel_near(const TiledProduct& tiled, const Machine& machine) {
  const ProductPlan& plan = tiled.plan;
  const bool rows_pass = plan.columns_first || plan.row_tiles > 1 ||
                         tiled.column_tiles.count == 1 ||
                         (plan.panels == Panels::Packed && plan.at_once == 1);
  const double bytes = tiled.depth() * (tiled.column_tiles.bytes + tiled.row_tiles.bytes);
  const double steps = tiled.steps * (tiled.is_in_place() ? tiled.depth() : 1);
  const Transfers::Others others = others_of(tiled.column_tiles, steps, bytes, machine);
  return rows_pass && stays_in_l1(others, machine);
}

}  // namespace kiln::autoschedule
