// Tiles of a contraction for tensor cores, as CUTLASS's kernels for sm_80 have them: factors in
// shared memory, a part of the tile for each warp, sums in registers.
//
//   C[i, j] = sum[k](A[i, k] * B[k, j])
//     ->  blockIdx: tiles of 256 x 128; k in steps of 64:
//           threads copy A[256 rows, 64] and B[64, 128 columns], 16 bytes at once, two steps ahead
//           a warp adds 64 x 64, by products of 16 x 8 with 16 steps each
//
// Of 8-bit factors there are twice as many steps of everything, in as many bytes.
//
// Where a product has too few of those for the GPU, or rows that hardware cannot copy in the
// background, tiles are smaller, and fetched when they are needed: other blocks of the
// multiprocessor work meanwhile.
//
// The loops are ordered as the sums lie in the lanes of mma.sync (analysis/matrix_product.h), which
// is what makes them matrix instructions. Rows in shared memory are 16 bytes longer than they need
// to be, so that the eight of them that ldmatrix reads at once begin in different banks.
#include "compiler/autoschedule/templates/matrix_tiles.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "compiler/autoschedule/recognise/image.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/matrix_tile.h"
#include "compiler/ir/build.h"
#include "compiler/ir/gpu_arch.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kLineBytes = 128;  // of each row of a tile
constexpr int64_t kLeast = 64;       // of a side that is cut into tiles
// Memories of a tile that is copied in the background: one is read while two are filled.
constexpr int64_t kStages = 3;
// Instructions' steps between barriers, where elements of a window are fetched one by one.
constexpr int64_t kFewSteps = 2;
// Parts of a sum that are worth it: the first ones of a block wait for all that is copied.
constexpr int64_t kLeastParts = 4;

/// What a copy can be made of: a tensor with memory of its own.
bool has_memory(const StageGraph& graph, const ir::TensorRead& read) {
  const Stage& source = graph[read.stage];
  return source.attach.kind == schedule::Attach::Kind::Root && source.kind != Stage::Kind::Scan &&
         !source.is_touched;
}

bool is_box(const StageGraph& graph, const ir::TensorRead& read, const Stage& stage) {
  std::vector<AxisId> used = joined({stage.data, stage.reduce});
  std::erase_if(used, [&](AxisId axis) { return !is_used_in(graph, read, axis); });
  return only_reorders(graph, read, used);
}

/// What computes the products of a sum; nothing where they are rounded before they are added up,
/// or where the order of the sum is to be kept.
std::optional<ir::MatrixUnit> unit_of(const Chooser& chooser, const Stage& stage,
                                      const Contraction& contraction) {
  const auto takes_tensor_float = [](const ir::Expr& factor) {
    const ir::Call* call = ir::as<ir::Call>(factor);
    return call != nullptr && call->op == language::Operator::Tf32 &&
           ir::as<ir::TensorRead>(call->args[0]) != nullptr && call->type.element == DType::Float32;
  };
  const ir::Binary& product = *summed_product(stage);
  const auto unit = takes_tensor_float(product.a) && takes_tensor_float(product.b)
                        ? ir::tensor_float_unit()
                        : ir::matrix_unit(contraction.row_factor->type.element,
                                          contraction.column_factor->type.element);
  const bool serves = unit && ir::has_matrix_unit(chooser.arch, *unit) &&
                      (unit->is_exact || !chooser.options.strict) && stage.types[0] == unit->sums &&
                      summed_product(stage)->type.element == unit->sums;
  return serves ? unit : std::nullopt;
}

/// What all tiles of the stage have in common; nothing where it has none.
std::optional<MatrixTile> any_tile_of(const Chooser& chooser, StageId id) {
  const StageGraph& graph = chooser.graph;
  const Stage& stage = graph[id];
  const bool is_plain = stage.kind == Stage::Kind::Compute && stage.time_dimension < 0 &&
                        stage.conditions.empty() && reductions_inside(graph, id).empty();
  if (!is_plain) return std::nullopt;
  const auto contraction = find_contraction(graph, id);
  if (!contraction || !ir::as<ir::Reduce>(stage.bodies[0])->init.empty()) return std::nullopt;
  const auto unit = unit_of(chooser, stage, *contraction);
  const ir::TensorRead& rows = *contraction->row_factor;
  const ir::TensorRead& columns = *contraction->column_factor;
  // One tensor has one copy, which would have to hold the parts of both.
  const bool serves =
      unit && rows.stage != columns.stage && has_memory(graph, rows) && has_memory(graph, columns);
  if (!serves) return std::nullopt;
  return MatrixTile{.stage = id,
                    .contraction = *contraction,
                    .unit = *unit,
                    .type = rows.type.element,
                    .sides = {},
                    .sum = stage.reduce};
}

/// The tile of a form, whose sides and sum are known.
std::optional<MatrixTile> with_steps(const StageGraph& graph, MatrixTile tile) {
  const auto is_long = [&](const std::vector<AxisId>& side) {
    return constant_extent_of(graph, side).value_or(kLeast) >= kLeast;
  };
  const auto is_plain = [&](AxisId axis) {
    const ir::Expr& extent = graph.axes[axis].extent;
    return ir::as_const_int(extent) || ir::as<ir::Var>(extent) != nullptr;
  };
  const int64_t all = kLineBytes / size_of(tile.type);
  const int64_t sum = constant_extent_of(graph, tile.sum).value_or(all);
  const bool fits = is_long(tile.sides.rows) && is_long(tile.sides.columns) &&
                    sum >= tile.unit.steps && std::ranges::all_of(tile.sides.batch, is_plain);
  if (!fits) return std::nullopt;
  tile.steps = std::min(all, sum / tile.unit.steps * tile.unit.steps);
  return tile;
}

/// A tile of one row axis and one column axis, of boxes of both factors.
std::optional<MatrixTile> of_one_axis_a_side(const StageGraph& graph, MatrixTile tile) {
  const Stage& stage = graph[tile.stage];
  const Contraction& product = tile.contraction;
  if (stage.reduce.size() != 1 || !is_box(graph, *product.row_factor, stage) ||
      !is_box(graph, *product.column_factor, stage))
    return std::nullopt;
  tile.sides = {.batch = stage.data, .rows = {product.row}, .columns = {product.column}};
  std::erase_if(tile.sides.batch,
                [&](AxisId axis) { return axis == product.row || axis == product.column; });
  return with_steps(graph, std::move(tile));
}

/// Elements of both factors that are fetched at once.
int64_t fetched_at_once(const StageGraph& graph, const MatrixTile& tile) {
  return panel_of(graph, tile, true).lanes + panel_of(graph, tile, false).lanes;
}

/// The reduction in the order in which most elements are fetched at once: that of the definition,
/// or that of the dimensions of a factor. Matrix instructions keep no order of a sum.
std::vector<AxisId> order_of_sum(const StageGraph& graph, const MatrixTile& tile) {
  std::vector<AxisId> best = tile.sum;
  for (const ir::TensorRead* read : {tile.contraction.row_factor, tile.contraction.column_factor}) {
    MatrixTile other = tile;
    const auto dimension_of = [&](AxisId axis) {
      return std::ranges::find_if(read->indices, [&](const ir::Expr& index) {
        return ir::uses_var(index, graph.axes[axis].value);
      });
    };
    std::ranges::stable_sort(other.sum, {}, dimension_of);
    MatrixTile so_far = tile;
    so_far.sum = best;
    if (fetched_at_once(graph, other) > fetched_at_once(graph, so_far)) best = other.sum;
  }
  return best;
}

/// The axes of the sum that move within places, as those of a window do, first: then a part of the
/// sum mostly has one place of the window.
std::vector<AxisId> window_first(const StageGraph& graph, const MatrixTile& tile,
                                 const ir::TensorRead& image) {
  const auto is_of_window = [&](AxisId axis) {
    return std::ranges::any_of(image.indices, [&](const ir::Expr& index) {
      return ir::uses_var(index, graph.axes[axis].value) &&
             index != ir::Expr(graph.axes[axis].value);
    });
  };
  std::vector<AxisId> order = tile.sum;
  std::stable_partition(order.begin(), order.end(), is_of_window);
  return order;
}

/// Places of a window that lie side by side, beside filters that do not: these are copied first, so
/// that the sum can go over the channels of a place.
void pack_filters(const StageGraph& graph, MatrixTile& tile) {
  constexpr int64_t kManyPlaces = 1024;  // which are worth another launch
  for (const bool are_rows : {true, false}) {
    const ir::TensorRead& filters =
        are_rows ? *tile.contraction.row_factor : *tile.contraction.column_factor;
    const ir::TensorRead& image =
        are_rows ? *tile.contraction.column_factor : *tile.contraction.row_factor;
    const std::vector<AxisId>& places = are_rows ? tile.sides.columns : tile.sides.rows;
    const std::vector<AxisId>& side = are_rows ? tile.sides.rows : tile.sides.columns;
    const auto is_long = [&](AxisId axis) { return constant_extent(graph, axis) != 1; };
    const bool gains = std::ranges::count_if(tile.sum, is_long) > 1 &&
                       panel_of(graph, tile, !are_rows).lanes == 1 &&
                       is_contiguous_in(graph, image, places.back()) &&
                       !is_contiguous_in(graph, filters, side.back()) &&
                       constant_extent_of(graph, places).value_or(0) >= kManyPlaces &&
                       constant_extent_of(graph, side).has_value();
    if (!gains) continue;
    (are_rows ? tile.packs_rows : tile.packs_columns) = true;
    tile.sum = window_first(graph, tile, image);
    return;
  }
}

/// A tile of all axes of a side, as those of the places of an image. What a window reads is laid
/// out for it.
std::optional<MatrixTile> of_joined_axes(const StageGraph& graph, MatrixTile tile) {
  const std::vector<AxisId>& reduce = graph[tile.stage].reduce;
  tile.sides = sides_of(graph, tile.stage, tile.contraction);
  tile.is_joined = true;
  const bool may_be_joined = may_be_one_loop(graph, tile.sides.rows) &&
                             may_be_one_loop(graph, tile.sides.columns) &&
                             may_be_one_loop(graph, reduce);
  if (!may_be_joined) return std::nullopt;
  for (const ir::TensorRead* read : {tile.contraction.row_factor, tile.contraction.column_factor}) {
    if (is_padding_for(graph, read->stage, tile.stage)) tile.padding = read->stage;
  }
  std::optional<MatrixTile> found = with_steps(graph, std::move(tile));
  if (!found || !constant_extent(graph, reduce[0])) return found;
  found->sum = order_of_sum(graph, *found);
  pack_filters(graph, *found);
  return found;
}

/// Both forms, where the stage has them, and they are not the same.
std::vector<MatrixTile> forms_of(const Chooser& chooser, StageId id) {
  const std::optional<MatrixTile> any = any_tile_of(chooser, id);
  if (!any) return {};
  const auto plain = of_one_axis_a_side(chooser.graph, *any);
  const auto joined = of_joined_axes(chooser.graph, *any);
  const bool is_other = joined && !(plain && plain->sides.rows == joined->sides.rows &&
                                    plain->sides.columns == joined->sides.columns);
  std::vector<MatrixTile> forms;
  // Where one tile computes the padding, all do, since it is no stage by itself then.
  if (plain && !(joined && joined->padding)) forms.push_back(*plain);
  if (is_other) forms.push_back(*joined);
  return forms;
}

/// The tile with as many steps at once as leave room for memories in turn; nothing where there is
/// no room, where the sum has few parts, or where hardware cannot copy its factors.
std::optional<MatrixTile> with_stages(const Chooser& chooser, MatrixTile tile) {
  const StageGraph& graph = chooser.graph;
  const int64_t room = ir::gpu_arch(chooser.arch).shared_bytes_of_block;
  const int64_t least = kLeastParts * tile.steps;
  if (constant_extent_of(graph, tile.sum).value_or(least) < least) return std::nullopt;
  tile.stages = kStages;
  for (; tile.steps >= 2 * tile.unit.steps; tile.steps /= 2) {
    const Panel rows = panel_of(graph, tile, true);
    const Panel columns = panel_of(graph, tile, false);
    if (rows.lanes == 1 || columns.lanes == 1) return std::nullopt;
    if (kStages * (rows.bytes(tile.type) + columns.bytes(tile.type)) <= room) return tile;
  }
  return std::nullopt;
}

/// "steps": of the sum between two barriers; "stages": memories that take turns, where hardware
/// copies to them. There is room for what is taken unmeasured, and so for less.
std::vector<Parameter> parameters_of(const MatrixTile& tile) {
  Parameter steps{.name = "steps", .values = {}, .preferred = tile.steps};
  for (int64_t count = tile.steps; count >= tile.unit.steps && count % tile.unit.steps == 0;
       count /= 2)
    steps.values.insert(steps.values.begin(), count);
  std::vector<Parameter> parameters = {steps};
  if (tile.stages > 1) {
    Parameter stages{.name = "stages", .values = {}, .preferred = tile.stages};
    for (int64_t count = 2; count <= tile.stages; ++count)
      stages.values.push_back(count);
    parameters.push_back(stages);
  }
  return parameters;
}

/// The tiles of a form.
std::vector<MatrixTile> tiles_of(const Chooser& chooser, const MatrixTile& form) {
  struct Shape {
    int64_t down, across, rows, columns;
    bool is_late;  // copied in the background
  };
  static constexpr Shape kShapes[] = {{4, 2, 4, 8, true},  {4, 1, 4, 8, true},  {1, 4, 4, 8, true},
                                      {2, 2, 4, 8, false}, {2, 2, 4, 4, false}, {2, 2, 2, 8, false},
                                      {2, 2, 2, 4, false}};
  // What 8-bit floats are added up in takes registers, too: a warp has 64 x 32 of them.
  static constexpr Shape kSmallShapes[] = {
      {2, 4, 4, 4, true}, {2, 2, 4, 4, false}, {2, 2, 2, 4, false}};
  const bool is_small = size_of(form.type) == 1 && !form.unit.is_exact;
  std::vector<MatrixTile> tiles;
  for (const Shape& shape : is_small ? std::span<const Shape>(kSmallShapes) : kShapes) {
    MatrixTile tile = form;
    tile.warps_down = shape.down;
    tile.warps_across = shape.across;
    tile.rows = shape.rows;
    tile.columns = shape.columns;
    const auto found = shape.is_late ? with_stages(chooser, tile) : std::optional(tile);
    if (!found) continue;
    tiles.push_back(*found);
    // What is fetched one by one waits in registers, and of a window so do its places.
    const bool is_wide = fetched_at_once(chooser.graph, tile) == 2 * tile.lanes();
    if (!is_wide && tile.sum.size() > 1)
      tiles.back().steps = std::min(tile.steps, kFewSteps * tile.unit.steps);
  }
  return tiles;
}

}  // namespace

Panel panel_of(const StageGraph& graph, const MatrixTile& tile, bool is_of_rows) {
  const Contraction& product = tile.contraction;
  const ir::TensorRead& read = is_of_rows ? *product.row_factor : *product.column_factor;
  const std::vector<AxisId>& side = is_of_rows ? tile.sides.rows : tile.sides.columns;
  const int64_t length = is_of_rows ? tile.block_rows() : tile.block_columns();
  const bool is_packed = is_of_rows ? tile.packs_rows : tile.packs_columns;
  // Places of a window lie along both; the side has more of them.
  const bool is_along_sum = !is_packed && is_contiguous_in(graph, read, tile.sum.back()) &&
                            !is_contiguous_in(graph, read, side.back());
  Panel panel{.is_along_sum = is_along_sum,
              .width = is_along_sum ? tile.steps : length,
              .lines = is_along_sum ? length : tile.steps};
  const std::vector<AxisId>& line = is_along_sum ? tile.sum : side;
  // Of a size that is not known rows may begin anywhere.
  const int64_t in_order = is_packed        ? constant_extent_of(graph, line).value_or(1)
                           : tile.is_joined ? elements_in_order(graph, read, line)
                                            : constant_extent(graph, line[0]).value_or(1);
  if (in_order % tile.lanes() == 0) panel.lanes = tile.lanes();
  panel.has_turned_bytes = !is_along_sum && size_of(tile.type) == 1;
  panel.padding = tile.lanes();
  // What is not turned by hardware is loaded one by one, four lines at once: in different banks.
  if (!is_along_sum && size_of(tile.type) == kBankBytes) panel.padding = kBanks / 4;
  return panel;
}

std::optional<StageId> padding_of_matrix_tiles(const Chooser& chooser, StageId id) {
  const std::vector<MatrixTile> forms = forms_of(chooser, id);
  return forms.empty() ? std::nullopt : forms[0].padding;
}

std::vector<Sketch> matrix_tile_sketches(const Chooser& chooser, StageId id) {
  std::vector<MatrixTile> tiles;
  for (const MatrixTile& form : forms_of(chooser, id)) {
    const std::vector<MatrixTile> of_form = tiles_of(chooser, form);
    tiles.insert(tiles.end(), of_form.begin(), of_form.end());
  }
  const GpuMachine& machine = gpu_machine(chooser.arch);
  std::ranges::stable_sort(tiles, {}, [&](const MatrixTile& tile) {
    return matrix_cycles(chooser.graph, tile, machine);
  });
  std::vector<Sketch> sketches;
  for (const MatrixTile& tile : tiles) {
    sketches.push_back(
        {.name = fmt::format("matrix instructions{}, {} x {} a block",
                             tile.is_joined ? " of all axes" : "", tile.block_rows(),
                             tile.block_columns()),
         .parameters = parameters_of(tile),
         .write = [&graph = chooser.graph, tile](StepWriter& writer, const Values& values) {
           MatrixTile taken = tile;
           taken.steps = values.get("steps", tile.steps);
           taken.stages = values.get("stages", tile.stages);
           write_matrix_tile(graph, taken, writer);
         }});
  }
  return sketches;
}

}  // namespace kiln::autoschedule
