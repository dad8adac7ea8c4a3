// The forms that a contraction has as tiles of matrix instructions: with an axis a side, or with
// all axes of a factor as one, the sum in the order in which most is fetched at once.
//
//   Y[n, y, x, f] = sum[c, r, s](P[n, y + r, x + s, c] * F[r, s, c, f])
//     ->  rows n.y.x, columns f, sum r.s.c: channels of a place are fetched 16 bytes at a time
#include "compiler/autoschedule/templates/matrix_forms.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "compiler/analysis/matrix_fragments.h"
#include "compiler/autoschedule/recognise/prologue.h"
#include "compiler/autoschedule/templates/contraction_loops.h"
#include "compiler/autoschedule/templates/fetched_factors.h"
#include "compiler/ir/build.h"

namespace kiln::autoschedule {
namespace {

constexpr int64_t kLineBytes = 128;    // of each row of a tile
constexpr int64_t kLeast = 17;         // of a side that is cut into tiles
constexpr int64_t kMostLines = 65535;  // along blockIdx.y

bool is_box(const StageGraph& graph, const ir::TensorRead& read, const Stage& stage) {
  std::vector<AxisId> used = joined({stage.data, stage.reduce});
  std::erase_if(used, [&](AxisId axis) { return !is_used_in(graph, read, axis); });
  return is_permuted(graph, read, used);
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
  auto unit = takes_tensor_float(product.a) && takes_tensor_float(product.b)
                  ? ir::tensor_float_unit()
                  : ir::matrix_unit(contraction.row_factor->type.element,
                                    contraction.column_factor->type.element);
  const bool serves = unit && ir::has_matrix_unit(chooser.arch, *unit) &&
                      (unit->is_exact || !chooser.options.strict) && stage.types[0] == unit->sums &&
                      product.type.element == unit->sums;
  if (!serves) return std::nullopt;
  if (chooser.options.fast && ir::has_short_sums(chooser.arch)) unit->chained_steps = 0;
  return unit;
}

/// What all tiles of the stage have in common; nothing where it has none.
std::optional<MatrixTile> any_tile_of(const Chooser& chooser, StageId id) {
  const auto contraction = fetched_contraction(chooser.graph, id);
  if (!contraction) return std::nullopt;
  const Stage& stage = chooser.graph[id];
  const auto unit = unit_of(chooser, stage, *contraction);
  if (!unit) return std::nullopt;
  return MatrixTile{.stage = id,
                    .contraction = *contraction,
                    .unit = *unit,
                    .type = contraction->row_factor->type.element,
                    .sides = {},
                    .sum = stage.reduce};
}

/// The tile of a form, whose sides and sum are known.
std::optional<MatrixTile> with_steps(const StageGraph& graph, MatrixTile tile) {
  const auto is_long = [&](const std::vector<AxisId>& side) {
    return constant_extent_of(graph, side).value_or(kLeast) >= kLeast;
  };
  const int64_t all = kLineBytes / size_of(tile.type);
  const int64_t sum = constant_extent_of(graph, tile.sum).value_or(all);
  const bool fits = is_long(tile.sides.rows) && is_long(tile.sides.columns) &&
                    sum >= tile.unit.steps && have_plain_extents(graph, tile.sides.batch);
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
    const std::vector<AxisId> parts = joined({tile.sides.batch, {axis}});
    return std::ranges::any_of(image.indices, [&](const ir::Expr& index) {
      return ir::uses_var(index, graph.axes[axis].value) &&
             index != ir::Expr(graph.axes[axis].value) && !cut_dimension(graph, index, parts);
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
                       panel_of(graph, tile, !are_rows).lanes < tile.lanes() &&
                       is_contiguous_in(graph, image, places.back()) &&
                       !is_contiguous_in(graph, filters, side.back()) &&
                       constant_extent_of(graph, places).value_or(0) >= kManyPlaces &&
                       constant_extent_of(graph, side).has_value();
    if (!gains) continue;
    (are_rows ? tile.row_packing : tile.column_packing) = Packing::SideLast;
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
  tile.padding = padding_of_factors(graph, tile.stage, tile.contraction);
  std::optional<MatrixTile> found = with_steps(graph, std::move(tile));
  if (!found || !constant_extent(graph, reduce[0])) return found;
  found->sum = order_of_sum(graph, *found);
  pack_filters(graph, *found);
  return found;
}

bool has_known_size(const StageGraph& graph, const ir::TensorRead& read) {
  const std::vector<ir::Expr>& shape = graph[read.stage].shapes[read.output];
  return std::ranges::all_of(
      shape, [](const ir::Expr& extent) { return ir::as_const_int(extent).has_value(); });
}

/// The same with a copy of each factor whose rows begin anywhere and lie along one axis; nothing
/// where there is none.
std::optional<MatrixTile> with_copies(const StageGraph& graph, MatrixTile tile) {
  const Stage& stage = graph[tile.stage];
  bool has_any = false;
  for (const bool are_rows : {true, false}) {
    Packing& packing = are_rows ? tile.row_packing : tile.column_packing;
    const ir::TensorRead& read =
        are_rows ? *tile.contraction.row_factor : *tile.contraction.column_factor;
    const std::vector<AxisId>& side = are_rows ? tile.sides.rows : tile.sides.columns;
    const Panel panel = panel_of(graph, tile, are_rows);
    const std::vector<AxisId>& line = panel.is_along_sum ? tile.sum : side;
    const bool serves =
        packing == Packing::None && panel.lanes < tile.lanes() && line.size() == 1 &&
        constant_extent_of(graph, line).value_or(0) <= kMostLines * tile.unit.steps &&
        has_known_size(graph, read) && is_box(graph, read, stage);
    if (!serves) continue;
    packing = Packing::Lines;
    has_any = true;
  }
  return has_any ? std::optional(tile) : std::nullopt;
}

/// The forms of a tile, with copies of factors and without.
std::vector<MatrixTile> forms_of(const StageGraph& graph, const MatrixTile& any) {
  const auto plain = of_one_axis_a_side(graph, any);
  const auto joined = of_joined_axes(graph, any);
  // Where one tile computes the padding, all do, since it is no stage by itself then.
  const bool has_padding = joined && joined->padding;
  std::vector<MatrixTile> forms;
  if (plain && !has_padding) forms.push_back(*plain);
  const bool is_same = plain && joined && plain->sides.rows == joined->sides.rows &&
                       plain->sides.columns == joined->sides.columns;
  if (joined && (!is_same || has_padding)) forms.push_back(*joined);
  for (size_t i = 0, count = forms.size(); i < count; ++i) {
    if (const auto copied = with_copies(graph, forms[i])) forms.push_back(*copied);
  }
  return forms;
}

/// What lanes load of a panel at once, and threads, side by side along its lines, fill.
SharedLines lines_of(const Panel& panel, int64_t bytes, bool are_columns) {
  const bool is_turned = !panel.is_along_sum;
  const analysis::LoadsAtOnce at_once = analysis::loads_at_once(bytes, is_turned);
  const analysis::LinearLayout loads =
      analysis::loads_of_lanes(bytes, is_turned, are_columns).with_bits("lane", at_once.lane_bits);
  analysis::LinearLayout::Input lanes{.name = "lane", .bits = {}};
  for (const std::vector<int64_t>& flips : loads.input("lane").bits) {
    const auto [side, step] = std::pair(flips[0], flips[1]);
    lanes.bits.push_back(is_turned ? std::vector{step, side} : std::vector{side, step});
  }
  analysis::LinearLayout::Input filled{.name = "lane", .bits = {}};
  for (int64_t thread = 1; thread < ir::kWarp; thread *= 2) {
    const int64_t place = thread * panel.lanes;
    filled.bits.push_back({place / panel.width, place % panel.width});
  }
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(panel.width - 1)));
  return {.lines = panel.lines,
          .width = panel.width,
          .element_bytes = bytes,
          .touches = {{{{lanes}, {{"line", 5}, {"element", 3}}}, at_once.bytes},
                      {{{filled}, {{"line", 5}, {"element", bits}}}, panel.lanes * bytes}}};
}

}  // namespace

std::vector<StageId> prologues_of_matrix_tiles(const Chooser& chooser, StageId id) {
  const std::optional<MatrixTile> any = any_tile_of(chooser, id);
  return any ? prologues_of_factors(chooser.graph, id, any->contraction) : std::vector<StageId>{};
}

std::vector<MatrixTile> matrix_forms(const Chooser& chooser, StageId id,
                                     const std::vector<StageId>& prologues) {
  std::optional<MatrixTile> any = any_tile_of(chooser, id);
  if (!any) return {};
  std::vector<MatrixTile> all;
  for (PrologueChoice& choice : prologue_choices(prologues)) {
    any->prologues = std::move(choice);
    const std::vector<MatrixTile> forms = forms_of(chooser.graph, *any);
    all.insert(all.end(), forms.begin(), forms.end());
  }
  return all;
}

int64_t fetched_at_once(const StageGraph& graph, const MatrixTile& tile) {
  return panel_of(graph, tile, true).lanes + panel_of(graph, tile, false).lanes;
}

bool are_fetched_side_by_side(const StageGraph& graph, const MatrixTile& tile) {
  return panel_of(graph, tile, true).lanes > 1 && panel_of(graph, tile, false).lanes > 1;
}

Panel panel_of(const StageGraph& graph, const MatrixTile& tile, bool is_of_rows) {
  const Contraction& product = tile.contraction;
  const ir::TensorRead& read = is_of_rows ? *product.row_factor : *product.column_factor;
  const std::vector<AxisId>& side = is_of_rows ? tile.sides.rows : tile.sides.columns;
  const int64_t length = is_of_rows ? tile.block_rows() : tile.block_columns();
  const Packing packing = is_of_rows ? tile.row_packing : tile.column_packing;
  // Places of a window lie along both; the side has more of them.
  const bool is_along_sum = packing != Packing::SideLast &&
                            is_contiguous_in(graph, read, tile.sum.back()) &&
                            !is_contiguous_in(graph, read, side.back());
  Panel panel{.is_along_sum = is_along_sum,
              .width = is_along_sum ? tile.steps : length,
              .lines = is_along_sum ? length : tile.steps};
  const std::vector<AxisId>& line = is_along_sum ? tile.sum : side;
  // Of a size that is not known rows may begin anywhere.
  const int64_t in_order = packing == Packing::Lines ? panel.width
                           : packing == Packing::SideLast
                               ? constant_extent_of(graph, line).value_or(1)
                           : tile.is_joined ? elements_in_order(graph, read, line)
                                            : common_width(graph, read, line[0]);
  // Less than a word is not worth a vector, nor does hardware copy it in the background.
  panel.is_computed = packing == Packing::None && tile.prologues.computes(read.stage);
  const int64_t made_of = panel.is_computed ? aligned_elements(graph, read.stage) : 0;
  const int64_t lanes = std::gcd(std::gcd(in_order, made_of), tile.lanes());
  if (lanes * size_of(tile.type) >= ir::kBankBytes) panel.lanes = lanes;
  panel.has_turned_bytes = !is_along_sum && size_of(tile.type) == 1;
  SharedLines lines = lines_of(panel, size_of(tile.type), !is_of_rows);
  // Places of a window take the registers that addresses of a swizzle would: for sm_86 a loop of
  // 211 instructions would have 274 (3x3, 64 channels of 56 x 56, float16). So do the sums of a
  // chain: of 8-bit floats sm_89 would spill 24 bytes.
  const bool has_chains = size_of(tile.type) == 1 && !tile.unit.is_exact;
  lines.may_swizzle = !tile.is_joined && !has_chains;
  panel.spread = best_spread(lines);
  return panel;
}

}  // namespace kiln::autoschedule
