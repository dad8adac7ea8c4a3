#pragma once

#include "compiler/autoschedule/templates/product_cost.h"
#include "compiler/autoschedule/templates/transfers.h"

namespace kiln::autoschedule {

/// The tiles of a factor, as they are read.
struct FactorTiles {
  double count = 1;
  double bytes = 0;     // of one, of the lines that it lies in
  double distance = 0;  // from one step to the next where each is a piece by itself
  double piece = 0;     // bytes of that

  double all() const { return count * bytes; }
};

/// A product in the tiles of a plan, in numbers to count with.
struct TiledProduct {
  TiledProduct(const Product& product, const ProductPlan& plan);

  bool is_in_place() const {
    return plan.panels != Panels::Packed && plan.panels != Panels::AllInAdvance;
  }
  /// Whether all tiles of a block of columns in place take some steps before the next ones.
  bool has_blocks_of_columns() const {
    return plan.panels == Panels::InPlace && plan.columns_first && plan.depth > 0;
  }
  double blocks_of_columns() const {
    return ceil_div(column_tiles.count, static_cast<double>(plan.at_once));
  }
  /// Part of all steps that a tile takes at once.
  double depth() const;

  const Product& product;
  const ProductPlan& plan;
  double rows;
  double columns;
  double steps;
  double batch;
  double tile_rows;
  double tile_columns;
  FactorTiles row_tiles;
  FactorTiles column_tiles;
  double touched;  // bytes that a call reads and writes
};

/// What comes from behind L1.
Transfers fetches_of(const TiledProduct& tiled, const Machine& machine);

/// Whether L1 has the columns of a tile while rows pass.
bool is_panel_near(const TiledProduct& tiled, const Machine& machine);

}  // namespace kiln::autoschedule
