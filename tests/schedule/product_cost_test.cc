// What ways to compute a product are predicted to cost: what each term is of, against which of the
// ways it speaks, and that what is chosen can be computed.
#include "compiler/autoschedule/templates/product_cost.h"

#include <random>

#include <gtest/gtest.h>

namespace kiln::autoschedule {
namespace {

Product product_of(int64_t rows, int64_t steps, int64_t columns, const Machine& machine) {
  const int64_t lanes = machine.vectors.bytes / 4;
  Product product{.size = size_on(machine, lanes)};
  product.size.rows = rows;
  product.size.steps = steps;
  product.size.columns = columns;
  product.size.loop_cycles = machine.loop_cycles;
  product.column_distance = static_cast<double>(columns) * 4;
  product.row_distance = 4;
  return product;
}

ProductCycles in_place(const Product& product, const TileShape& tile, const Machine& machine) {
  return product_cycles(product, {.panels = Panels::InPlace, .tile = tile}, machine);
}

TEST(ProductCost, OfALargeProductIsItsMultiplyAdds) {
  const Machine machine = machine_of("znver5");
  const Product product = product_of(1024, 1024, 1024, machine);
  const CheapestPlan cheapest = cheapest_plan(product, Panels::Packed, {}, machine);
  const double multiply_adds = 1024.0 * 1024 * 1024 / 16 / machine.multiply_adds;
  EXPECT_GT(cheapest.cycles, multiply_adds);
  EXPECT_LT(cheapest.cycles, 1.1 * multiply_adds);
}

/// 1024 floats from one step to the next are as many lines as L1 has sets: all steps lie in one.
TEST(ProductCost, FetchesColumnsAgainWhoseStepsEvictEachOther) {
  const Machine machine = machine_of("znver5");
  const TileShape tile{8, 32};
  const auto fetched = [&](int64_t distance) {
    Product product = product_of(96, 96, 64, machine);
    product.column_distance = static_cast<double>(distance) * 4;
    ProductPlan plan{.panels = Panels::InPlace, .tile = tile};
    plan.columns_first = true;
    return product_cycles(product, plan, machine).l2;
  };
  EXPECT_GT(fetched(1024), 2 * fetched(1040));
}

/// The same columns in narrower tiles are more pieces, for each of which a core waits.
TEST(ProductCost, WaitsForPiecesOfColumnsThatLieApart) {
  const Machine machine = machine_of("znver5");
  const Product product = product_of(8, 6000, 144, machine);
  EXPECT_GT(in_place(product, {8, 16}, machine).all, 1.5 * in_place(product, {8, 48}, machine).all);
}

/// L3 is near to the cores of Zen 5 and far from those of Sapphire Rapids, where a product of 33
/// rows takes 1.17 times as long in place.
TEST(ProductCost, CopiesColumnsOfFewRowsWhereL3IsFar) {
  for (const auto& [arch, in_place] : {std::pair{"znver5", true}, {"sapphirerapids", false}}) {
    const Machine machine = machine_of(arch);
    const Product product = product_of(33, 1000, 777, machine);
    const PlanLimits limits{.may_cut_steps = true};
    const bool is_cheaper = cheapest_plan(product, Panels::InPlace, limits, machine).cycles <
                            cheapest_plan(product, Panels::Packed, limits, machine).cycles;
    EXPECT_EQ(is_cheaper, in_place) << arch;
  }
}

TEST(ProductCost, GathersColumnsThatAreApartForEachTileOfRows) {
  const Machine machine = machine_of("znver5");
  Product product = product_of(64, 64, 64, machine);
  const double together = in_place(product, {8, 32}, machine).core;
  product.are_columns_apart = true;
  EXPECT_GT(in_place(product, {8, 32}, machine).core, 4 * together);
}

// Neighbouring rows are 18 floats apart: each element of a step is in a line of its own.
TEST(ProductCost, CopiesRowsOfWhichALineHasOneElement) {
  const Machine machine = machine_of("sapphirerapids");
  Product product = product_of(96, 427, 115, machine);
  product.batch = product.panel_batch = product.row_batch = 18;
  product.are_rows_apart = true;
  product.row_distance = 96 * 18 * 4;
  product.row_stretches = {{427, product.row_distance}};
  const auto copies_rows = [&](double neighbour) {
    product.row_neighbour = neighbour;
    const PlanLimits limits{.may_copy_rows = true};
    return cheapest_plan(product, Panels::AllInAdvance, limits, machine).plan.copies_rows;
  };
  EXPECT_FALSE(copies_rows(4));
  EXPECT_TRUE(copies_rows(18 * 4));
}

// 8 lines 4 KiB apart are all that L1 of a Zen 4 has ways for, of 3.9 KiB apart many more.
TEST(ProductCost, HasNoMoreRowsThanTheirSetsHaveWays) {
  const Machine machine = machine_of("znver4");
  const auto rows_of_tile = [&](int64_t steps) {
    Product product = product_of(1024, steps, 1024, machine);
    product.row_neighbour = static_cast<double>(steps) * 4;
    return cheapest_plan(product, Panels::Packed, {}, machine).plan.tile.rows;
  };
  EXPECT_LE(rows_of_tile(1024), 8);
  EXPECT_GT(rows_of_tile(1000), 8);
}

/// Bytes of rows and columns in groups of four, for a matrix unit.
Product unit_product_of(int64_t rows, int64_t steps, int64_t columns, const Machine& machine) {
  Product product = product_of(rows, steps / 4, columns, machine);
  product.group_products = 4;
  product.unit = UnitSteps{.groups = steps / 4};
  return product;
}

// A copy for few rows takes as long as what reads it: of each step a piece that is as wide as the
// panels that are copied together.
TEST(ProductCost, CopiesPanelsOfFewRowsTogether) {
  const Machine machine = machine_of("sapphirerapids");
  const Product product = unit_product_of(16, 2560, 7592, machine);
  const auto of_panels = [&](int64_t at_once) {
    const ProductPlan plan{.panels = Panels::Packed, .tile = {16, 48}, .at_once = at_once};
    return product_cycles(product, plan, machine).all;
  };
  EXPECT_LT(of_panels(4), 0.95 * of_panels(1));
}

// Eight columns are left over, whose tiles have no room beside those of 32: with rows outside they
// are set for each tile of rows, with columns outside once.
TEST(ProductCost, SetsTilesForWhatIsLeftOver) {
  const Machine machine = machine_of("sapphirerapids");
  const auto core = [&](int64_t columns, bool columns_first) {
    const ProductPlan plan{
        .panels = Panels::AllInAdvance, .tile = {32, 32}, .columns_first = columns_first};
    return product_cycles(unit_product_of(1600, 64, columns, machine), plan, machine).core;
  };
  EXPECT_GT(core(104, false), core(104, true) + 48 * UnitCycles{}.setting);
  EXPECT_LT(core(112, false), core(104, false) - 45 * UnitCycles{}.setting);
}

TEST(ProductCost, CountsWhatCoresLeaveToOneOfThem) {
  const Machine machine = machine_of("znver5");
  Product product = product_of(96, 512, 96, machine);
  product.shares_rows = true;
  const auto share = [&](int64_t rows) { return in_place(product, {rows, 48}, machine).share; };
  EXPECT_EQ(share(8), 1);
  EXPECT_GT(share(14), 1);
}

/// Sums fit into the registers, numbers to the sizes, and no way takes less than its multiply-adds.
/// The sums of a small tile are stored while the next ones are computed, where a sum has few steps;
/// of long ones large tiles load less.
TEST(ProductCost, HasSmallTilesForShortSums) {
  const Machine machine = machine_of("znver4");
  const auto sums = [&](int64_t steps) {
    const TileShape tile =
        cheapest_plan(product_of(512, steps, 512, machine), Panels::InPlace, {}, machine).plan.tile;
    return tile.rows * tile.lanes / 16;
  };
  EXPECT_LE(sums(3), 4);
  EXPECT_LE(sums(4), 5);
  EXPECT_GE(sums(64), 12);
}

/// A row whose signs are turned is to serve several vectors of columns.
TEST(ProductCost, TurnsSignsForSeveralVectors) {
  ContractionSize size = product_of(512, 8, 512, machine_of("znver4")).size;
  size.column_registers = 2;
  const auto a_sum = [&](int64_t rows, int64_t lanes) {
    return tile_core_cycles(size, rows, lanes) / static_cast<double>(rows * lanes);
  };
  EXPECT_NEAR(a_sum(4, 16), a_sum(8, 32), 0.2 * a_sum(8, 32));
  size.sign_cycles = 0.75;
  EXPECT_GT(a_sum(4, 16), 1.15 * a_sum(8, 32));
}

TEST(ProductCost, ChoosesWhatCanBeComputed) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  for (int i = 0; i < 300; ++i) {
    const char* const archs[] = {"znver5", "znver4", "znver3", "sapphirerapids", "x86-64-v2"};
    const Machine machine = machine_of(archs[draw(5) - 1]);
    Product product = product_of(draw(2000), draw(2000), draw(2000), machine);
    product.batch = product.panel_batch = product.row_batch = draw(4);
    product.are_columns_apart = draw(2) == 1;
    product.are_rows_apart = draw(2) == 1;
    for (const Panels panels : {Panels::InPlace, Panels::Packed, Panels::AllInAdvance}) {
      const PlanLimits limits{.may_copy_rows = product.are_rows_apart, .may_cut_steps = true};
      const auto [plan, cycles] = cheapest_plan(product, panels, limits, machine);
      const ContractionSize& size = product.size;
      SCOPED_TRACE(::testing::Message()
                   << size.rows << " x " << size.steps << " x " << size.columns);
      EXPECT_EQ(plan.panels, panels);
      EXPECT_GE(plan.tile.rows, 1);
      EXPECT_LE(plan.tile.rows, size.rows);
      EXPECT_LE(plan.tile.lanes, size.columns);
      const int64_t vectors = (plan.tile.lanes + size.register_lanes - 1) / size.register_lanes;
      EXPECT_LT(plan.tile.rows * vectors + vectors, size.registers);
      EXPECT_TRUE(plan.depth == 0 || size.steps % plan.depth == 0) << plan.depth;
      EXPECT_TRUE(limits.may_copy_rows || !plan.copies_rows);
      const double sums = static_cast<double>(size.rows * size.columns * product.batch) /
                          static_cast<double>(size.register_lanes);
      EXPECT_GE(cycles, sums * static_cast<double>(size.steps) / machine.multiply_adds);
    }
  }
}

}  // namespace
}  // namespace kiln::autoschedule
