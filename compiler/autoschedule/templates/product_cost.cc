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
#include <numeric>

#include "compiler/autoschedule/templates/transfers.h"

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
// What a load costs beside multiply-adds, of what it takes a port.
constexpr double kLoads = 0.05;
// Sums that are loaded and stored again, for a vector.
constexpr double kSumsAgain = 2;

double ceil_div(double a, double b) { return std::ceil(a / b); }

/// How much longer cores take for parts of so many elements than for even ones. One core does not
/// mind, and of two the one that works on is faster while the other waits.
double share_of(double extent, double part, double products, int64_t cores) {
  constexpr int64_t kManyTasks = 16;
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

class Cost {
 public:
  Cost(const Product& product, const ProductPlan& plan, const Machine& machine)
      : product_(product),
        plan_(plan),
        machine_(machine),
        rows_(static_cast<double>(product.size.rows)),
        columns_(static_cast<double>(product.size.columns)),
        steps_(static_cast<double>(product.size.steps)),
        batch_(static_cast<double>(product.batch)),
        tile_rows_(static_cast<double>(std::min(plan.tile.rows, product.size.rows))),
        tile_columns_(static_cast<double>(std::min(plan.tile.lanes, product.size.columns))),
        row_tiles_(ceil_div(rows_, tile_rows_)),
        column_tiles_(ceil_div(columns_, tile_columns_)),
        transfers_(machine, touched()) {}

  ProductCycles cycles() {
    ProductCycles cycles{.core = core(), .copies = copies(), .share = share()};
    fetch();
    cycles.l2 = transfers_.l2();
    cycles.l3 = transfers_.l3();
    cycles.memory = transfers_.memory();
    cycles.core += transfers_.waits();
    double powers = 0;
    for (const double part : {cycles.core, cycles.l2, cycles.l3, cycles.memory})
      powers += part * part * part * part;
    cycles.all = std::sqrt(std::sqrt(powers)) * cycles.share + cycles.copies;
    return cycles;
  }

 private:
  bool is_in_place() const { return plan_.panels == Panels::InPlace; }
  double touched() const {
    const auto panels = static_cast<double>(product_.panel_batch);
    const auto rows = static_cast<double>(product_.row_batch);
    return steps_ *
               (rows * rows_ * product_.row_bytes + panels * columns_ * product_.column_bytes) +
           batch_ * rows_ * columns_ * product_.sum_bytes;
  }

  double core() const {
    const ContractionSize& size = product_.size;
    const double full = std::floor(columns_ / tile_columns_);
    const int64_t rest = size.columns % plan_.tile.lanes;
    double tiles = row_tiles_ * full * of_tile(static_cast<int64_t>(tile_columns_));
    if (size.columns > plan_.tile.lanes && rest > 0) tiles += row_tiles_ * of_tile(rest);
    double all = batch_ * tiles;
    if (plan_.depth > 0) {
      const double vectors = rows_ * ceil_div(columns_, static_cast<double>(size.register_lanes));
      all += batch_ * (steps_ / static_cast<double>(plan_.depth) - 1) * vectors * kSumsAgain;
    }
    return all;
  }

  double of_tile(int64_t columns) const {
    const auto rows = static_cast<int64_t>(tile_rows_);
    const double vectors =
        ceil_div(static_cast<double>(columns), static_cast<double>(product_.size.register_lanes));
    // Of a step. Of tiles that take as long, the one that loads less is faster.
    double beside = kLoads * (tile_rows_ + vectors) / product_.size.loads;
    const double rows_held = tile_rows_ * (plan_.copies_rows ? kRowInOrder : kRow);
    beside += machine_.held_cycles *
              (product_.size.vector_part * vectors * kLine + rows_held + columns_again(vectors));
    if (is_in_place() && product_.are_columns_apart) {
      const bool changes_page = product_.column_bytes * steps_ >= Transfers::kPageBytes;
      beside += static_cast<double>(columns) *
                (machine_.gathered_cycles + (changes_page ? machine_.page_cycles : 0));
    }
    if (product_.is_widened)
      beside += (plan_.copies_rows ? 0 : tile_rows_) + (is_in_place() ? vectors : 0);
    return tile_core_cycles(product_.size, rows, columns) + steps_ * beside;
  }

  double columns_again(double vectors) const {
    if (is_panel_near()) return 0;
    const bool is_ragged = is_in_place() && std::fmod(product_.column_distance, kLineBytes) != 0;
    return product_.size.vector_part * vectors * (is_ragged ? kRaggedLineAgain : kLineAgain);
  }

  /// Whether L1 has the columns of a tile while rows pass.
  bool is_panel_near() const {
    const double depth = plan_.depth > 0 ? static_cast<double>(plan_.depth) / steps_ : 1;
    const bool rows_pass = plan_.columns_first || plan_.row_tiles > 1 || column_tiles_ == 1 ||
                           (plan_.panels == Panels::Packed && plan_.at_once == 1);
    const double bytes = depth * (panel_bytes() + row_tile_bytes());
    return rows_pass && transfers_.stays_in_l1(others_of(column_tiles(), bytes));
  }

  /// Bytes of the lines in which a tile's columns lie, for all steps.
  double panel_bytes() const {
    if (!is_in_place()) return steps_ * tile_columns_ * product_.sum_bytes;
    if (product_.are_columns_apart) return steps_ * tile_columns_ * product_.column_bytes;
    const bool is_ragged = std::fmod(product_.column_distance, kLineBytes) != 0;
    const double lines = ceil_div(tile_columns_ * product_.column_bytes, kLineBytes);
    const double bytes = (lines + (is_ragged ? 1 : 0)) * kLineBytes;
    // Where steps follow each other, their lines are the same.
    const double distance = product_.column_distance;
    return steps_ * (distance > 0 ? std::min(bytes, distance) : bytes);
  }

  double row_tile_bytes() const {
    if (plan_.copies_rows) return steps_ * tile_rows_ * product_.sum_bytes;
    if (!product_.are_rows_apart) return steps_ * tile_rows_ * product_.row_bytes;
    return steps_ * ceil_div(tile_rows_ * product_.row_bytes, kLineBytes) * kLineBytes;
  }

  /// The tiles of a factor, as they are read.
  struct Tiles {
    double count = 1;
    double bytes = 0;     // of one
    double distance = 0;  // from one step to the next where each is a piece by itself
    double piece = 0;     // bytes of that

    double all() const { return count * bytes; }
  };

  Tiles column_tiles() const {
    Tiles tiles{.count = column_tiles_, .bytes = panel_bytes()};
    if (is_in_place() && !product_.are_columns_apart) {
      tiles.distance = product_.column_distance;
      tiles.piece = tile_columns_ * product_.column_bytes;
    }
    return tiles;
  }

  Tiles row_tiles() const {
    Tiles tiles{.count = row_tiles_, .bytes = row_tile_bytes()};
    if (product_.are_rows_apart && !plan_.copies_rows) {
      tiles.distance = product_.row_distance;
      tiles.piece = tile_rows_ * product_.row_bytes;
    }
    return tiles;
  }

  /// So many bytes have passed since a tile was read. Where its steps lie in so few sets of a cache
  /// that they evict each other, that has no room for it.
  Transfers::Others others_of(const Tiles& tiles, double bytes) const {
    const auto lines = static_cast<int64_t>(tiles.distance / kLineBytes);
    if (lines == 0 || std::fmod(tiles.distance, kLineBytes) != 0) return {bytes, bytes};
    const auto with = [&](int64_t cache, int64_t ways) {
      const int64_t sets = cache / static_cast<int64_t>(kLineBytes) / ways;
      const auto kept = static_cast<double>(sets / std::gcd(lines, sets) * ways);
      return steps_ > kept ? std::max(bytes, static_cast<double>(cache)) : bytes;
    };
    return {with(machine_.l1_bytes, machine_.l1_ways), with(machine_.l2_bytes, machine_.l2_ways)};
  }

  /// All tiles come again so often, after so many bytes.
  void again(const Tiles& tiles, double passes, double bytes) {
    const Transfers::Others others = others_of(tiles, bytes);
    transfers_.again(batch_ * passes * tiles.all(), others);
    transfers_.pieces_again(batch_ * passes * tiles.count * steps_, others.l2, tiles.distance,
                            tiles.piece);
    transfers_.pages(batch_ * passes * tiles.count, steps_, tiles.distance);
  }

  /// What comes from behind L1.
  void fetch() {
    const Tiles columns = column_tiles();
    const Tiles rows = row_tiles();
    store_sums();
    transfers_.first(steps_ * rows_ * product_.row_bytes * static_cast<double>(product_.row_batch));
    first_columns(columns);
    if (plan_.panels == Panels::Packed) {
      const double at_once = std::min(static_cast<double>(plan_.at_once), columns.count);
      const double blocks = ceil_div(columns.count, at_once);
      const double block = at_once * columns.bytes;
      const double depth = plan_.depth > 0 ? static_cast<double>(plan_.depth) / steps_ : 1;
      const double tile = depth * (columns.bytes + rows.bytes);
      if (plan_.columns_first) {
        again(columns, rows.count, tile);
        return again(rows, columns.count - 1, rows.all() + block);
      }
      again(columns, rows.count, depth * (block + rows.bytes));
      again(rows, columns.count - blocks, tile);
      return again(rows, blocks - 1, rows.all() + block);
    }
    if (plan_.columns_first) {
      again(columns, rows.count - 1, columns.bytes + rows.bytes);
      return again(rows, columns.count - 1, rows.all() + columns.bytes);
    }
    const double tiles = std::min(static_cast<double>(plan_.row_tiles), rows.count);
    const bool stays = tiles > 1 && transfers_.stays_in_l1(others_of(columns, columns.bytes));
    const double passes = stays || columns.count == 1 ? ceil_div(rows.count, tiles) : rows.count;
    again(columns, passes - 1, columns.all() + tiles * rows.bytes);
    again(rows, columns.count - 1, columns.bytes + tiles * rows.bytes);
  }

  /// Sums, of which a row is written in pieces where other columns come before its next ones.
  void store_sums() {
    const double sums = batch_ * rows_ * columns_ * product_.sum_bytes;
    transfers_.first(sums);
    double together = columns_;
    if (plan_.panels == Panels::Packed && !plan_.columns_first) {
      together = static_cast<double>(plan_.at_once) * tile_columns_;
    } else if (plan_.panels == Panels::Packed || plan_.columns_first || plan_.row_tiles > 1) {
      together = tile_columns_;
    }
    if (plan_.depth > 0) {
      const double passes = steps_ / static_cast<double>(plan_.depth) - 1;
      transfers_.again(2 * passes * sums, rows_ * tile_columns_ * product_.sum_bytes);
    }
    if (together >= columns_) return;
    const double pieces = batch_ * rows_ * ceil_div(columns_, together);
    transfers_.pieces_again(pieces, sums, columns_ * product_.sum_bytes,
                            together * product_.sum_bytes);
  }

  void first_columns(const Tiles& columns) {
    const auto factors = static_cast<double>(product_.panel_batch);
    if (is_in_place()) {
      transfers_.first(factors * columns.all());
      transfers_.pages(factors * columns.count, steps_, columns.distance);
      return transfers_.pieces_again(factors * columns.count * steps_, touched(), columns.distance,
                                     columns.piece);
    }
    transfers_.first(factors * steps_ * columns_ * product_.column_bytes);
    // A copy that is read once waits for what it copies as its reader would.
    const bool is_read_once = product_.size.rows <= product_.size.most_rows &&
                              !product_.are_columns_apart && product_.group_products == 1;
    if (is_read_once)
      transfers_.pieces_again(factors * column_tiles_ * steps_, touched(), product_.column_distance,
                              tile_columns_ * product_.column_bytes);
    // A copy of all is written, and comes back when all of it is there.
    const double copied = factors * columns.all();
    if (plan_.panels == Panels::AllInAdvance) transfers_.again(2 * copied, copied);
  }

  double copies() const {
    double all = 0;
    if (!is_in_place()) {
      const auto times = static_cast<double>(plan_.panels == Panels::Packed ? product_.batch
                                                                            : product_.panel_batch);
      const bool are_groups = product_.group_products > 1;
      if (product_.are_columns_apart && !are_groups) {
        const bool is_turned =
            product_.turns_columns && plan_.tile.lanes % product_.size.register_lanes == 0;
        all += times * steps_ * columns_ *
               (is_turned ? machine_.transposed_cycles : machine_.gathered_cycles);
      } else {
        // Of a group each product is loaded by itself: of bytes, as many times as many pieces.
        const double products = product_.group_products;
        const double loaded =
            products * ceil_div(tile_columns_ * product_.column_bytes / products, kLineBytes);
        const double stored = ceil_div(tile_columns_ * product_.sum_bytes, kLineBytes);
        all += times * steps_ * column_tiles_ * (loaded + stored) / 2 *
               machine_.copied_line_cycles * (product_.are_columns_apart ? kGroupsApart : 1);
      }
    }
    if (plan_.copies_rows)
      all += static_cast<double>(product_.row_batch) * steps_ * rows_ * machine_.copied_row_cycles;
    int loops = plan_.copies_rows ? 1 : 0;
    if (plan_.panels == Panels::AllInAdvance) {
      ++loops;
      // Half of it another core has made.
      all += static_cast<double>(product_.panel_batch) * column_tiles_ * panel_bytes() / 2 /
             machine_.from_l3;
    }
    return all + loops * product_.loop_cycles;
  }

  double share() const {
    const int64_t cores = product_.size.cores;
    if (plan_.panels == Panels::Packed)
      return share_of(columns_, static_cast<double>(plan_.at_once) * tile_columns_, batch_, cores);
    if (!product_.shares_rows) return 1;
    if (plan_.columns_first) return share_of(columns_, tile_columns_, 1, cores);
    return share_of(rows_, static_cast<double>(plan_.row_tiles) * tile_rows_, 1, cores);
  }

  const Product& product_;
  const ProductPlan& plan_;
  const Machine& machine_;
  const double rows_;
  const double columns_;
  const double steps_;
  const double batch_;
  const double tile_rows_;
  const double tile_columns_;
  const double row_tiles_;
  const double column_tiles_;
  Transfers transfers_;
};

}  // namespace

ProductCycles product_cycles(const Product& product, const ProductPlan& plan,
                             const Machine& machine) {
  return Cost(product, plan, machine).cycles();
}

}  // namespace kiln::autoschedule
