#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/autoschedule/templates/tile_cost.h"
#include "compiler/autoschedule/templates/unit_tile_cost.h"

namespace kiln::autoschedule {

/// Where the tiles of a product find the column factor.
enum class Panels {
  InPlace,       // where it is
  Streamed,      // the same, but read once, in the order in which it lies: streamed_columns.h
  AlongSum,      // the same, in vectors along the sum: dot_products.h
  Packed,        // a core copies the panels of its own columns, for all rows
  AllInAdvance,  // all panels are copied, in the order in which tiles read them
};

/// An axis as a factor lies along it.
struct Stretch {
  double extent = 1;
  double distance = 0;  // bytes from one element to the next
};

/// A contraction as its cost depends on it. Products that an instruction adds at once are one step.
struct Product {
  ContractionSize size;     // none of the extents is 0
  int64_t batch = 1;        // products
  int64_t panel_batch = 1;  // different column factors among these
  int64_t row_batch = 1;
  double sum_bytes = 4;  // of an element of the sums, and of the factors where they are copied
  // Of a step of a factor where it lies, and from there to the next one.
  double row_bytes = 4;
  double column_bytes = 4;
  double group_products = 1;  // that are a step
  double column_distance = 0;
  double row_distance = 0;
  double row_neighbour = 0;  // from a row to the next one, where steps are apart
  // The axes of the sum as the row factor lies along them. Those of windows come by the same
  // elements again.
  std::vector<Stretch> row_stretches;
  bool are_columns_apart = false;  // a vector of them is gathered
  bool turns_columns = false;      // but in copies, of which whole vectors are turned in registers
  bool are_rows_apart = false;     // steps are: a tile takes a piece of a line for each
  bool is_narrow = false;          // factors are of a shorter type than the sums,
  bool adds_integers = false;      // which are integers
  bool is_widened = false;         // factors are converted to the type of the sums
  double loop_cycles = 0;          // of another loop that cores share
  bool shares_rows = false;        // tiles of rows are what cores share, of a single product
  std::optional<UnitSteps> unit = {};  // a matrix unit adds it up
};

/// A way to compute it.
struct ProductPlan {
  Panels panels = Panels::InPlace;
  TileShape tile;
  int64_t at_once = 1;    // tiles of columns that are copied together, or are a block
  int64_t row_tiles = 1;  // that pass by a panel before the next one
  int64_t depth = 0;      // steps that are copied or taken at once, or are written out; 0: all
  int64_t ahead = 0;  // steps before it is read, that a line of columns is fetched; 0: it is not
  bool columns_first = false;
  bool copies_rows = false;
};

/// What each part of a core takes for it, and all of them together.
struct ProductCycles {
  double core = 0;  // multiply-adds, loads, the ends of loops
  double l2 = 0;
  double l3 = 0;
  double memory = 0;
  double copies = 0;
  double share = 1;  // of the busiest core, to that of all
  double all = 0;
};

ProductCycles product_cycles(const Product& product, const ProductPlan& plan,
                             const Machine& machine);

/// How much longer cores take for parts of so many elements than for even ones.
double core_share(double extent, double part, double products, int64_t cores);

/// What a plan may do.
struct PlanLimits {
  bool may_copy_rows = false;
  bool must_copy_rows = false;
  bool may_cut_steps = false;          // copy some of the steps at a time
  bool may_cut_in_place = false;       // or take so many of columns where they are
  bool may_fetch_ahead = false;        // which are fetched before
  std::optional<TileShape> tile = {};  // no other
};

/// The cheapest with the columns there.
struct CheapestPlan {
  ProductPlan plan;
  double cycles = 0;
};
CheapestPlan cheapest_plan(const Product& product, Panels panels, const PlanLimits& limits,
                           const Machine& machine);

}  // namespace kiln::autoschedule
