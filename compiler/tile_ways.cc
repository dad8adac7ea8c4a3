// What a kernel is on tiles: an attention, or a product in the form that is predicted to take the
// least time, of several for calls whose rows begin at multiples of 16 bytes and for others.
//
//   C[m, n] = sum[k](A[m, k] * B[k, n]), of sizes that the call brings
//     ->  where k % 8 == 0 and n % 8 == 0: the product
//         else: copies of A and B, whose rows begin there, and the product of these
#include "compiler/tile_ways.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/ranges.h>

#include "compiler/autoschedule/templates/gpu_machine.h"
#include "compiler/predict/predict_tiles.h"
#include "compiler/tile/attention.h"
#include "compiler/tile/contraction.h"
#include "compiler/tile/contraction_form.h"
#include "compiler/tile/form_error.h"
#include "runtime/core/error.h"

namespace kiln {
namespace {

using tile::refuse_form;

/// The tensor cores' sums of integers stop at the largest int32, where those of the definition
/// wrap.
void require_sums_in_range(const tile::Program& program) {
  const auto is_loop = [](const tile::Instruction& each) {
    return std::holds_alternative<tile::For>(each.what);
  };
  const auto loop = std::ranges::find_if(program.body, is_loop);
  KILN_CHECK(loop != program.body.end());
  if (is_float(program.values[loop->results[0]].element)) return;
  double terms = 1;
  for (const tile::AxisId axis : std::get<tile::For>(loop->what).axes) {
    const tile::Extent& sum = program.axes[axis].extent;
    const int64_t count = sum.size >= 0 ? std::numeric_limits<int64_t>::max() : sum.constant;
    terms *= static_cast<double>(count);
  }
  constexpr int64_t kMostProduct = 255 * 255;
  constexpr int64_t kMostTerms = std::numeric_limits<int32_t>::max() / kMostProduct;
  if (terms > kMostTerms)
    refuse_form("its sums in int32 may have more than {} terms, and could be too large",
                kMostTerms);
}

/// "convolution of 16-bit floats"
std::string kind_of(const tile::Program& program) {
  std::string_view kind = "product";
  for (const tile::Instruction& each : program.body) {
    const auto* loop = std::get_if<tile::For>(&each.what);
    if (loop == nullptr) continue;
    for (const tile::Instruction& inner : loop->body) {
      if (std::holds_alternative<tile::Window>(inner.what)) kind = "convolution";
      const auto* mma = std::get_if<tile::Mma>(&inner.what);
      if (mma == nullptr) continue;
      if (mma->in_tf32) return fmt::format("{} in tf32", kind);
      const DType type = program.values[inner.operands[0]].element;
      return fmt::format("{} of {}-bit {}", kind, 8 * size_of(type),
                         is_float(type) ? "floats" : "integers");
    }
  }
  KILN_CHECK(false);
}

std::vector<Tiled> tiled_attention(const language::Kernel& kernel, const std::string& arch,
                                   const std::optional<TileBlock>& block) {
  // Some loads and stores beside the hundreds of instructions of a part of the keys.
  constexpr int64_t kMostSpilled = 256;
  std::vector<Tiled> tiled;
  std::vector<tile::AttentionShape> shapes = tile::attention_shapes(kernel, arch);
  if (block) {
    shapes.resize(1);
    shapes[0].queries = block->rows.value_or(shapes[0].queries);
    shapes[0].keys = block->columns.value_or(shapes[0].keys);
    shapes[0].warps = static_cast<int>(block->warps.value_or(shapes[0].warps));
  }
  for (const tile::AttentionShape& shape : shapes) {
    tile::Program program = tile::attention(kernel, shape);
    if (const std::string why = tile::unaligned_rows(program); !why.empty()) refuse_form("{}", why);
    tiled.push_back({tile::alone(std::move(program)), shape.warps,
                     fmt::format("attention, whose scores are not stored: {} queries a block, {} "
                                 "keys at once",
                                 shape.queries, shape.keys),
                     TileBlock{.rows = shape.queries,
                               .columns = shape.keys,
                               .steps = std::nullopt,
                               .warps = shape.warps},
                     kMostSpilled});
  }
  return tiled;
}

std::string text_of_factors(const tile::ContractionForm& form) {
  std::string text;
  if (form.stored().size() == 1) text += ", of a factor that is computed and stored before";
  if (form.stored().size() == 2) text += ", of factors that are computed and stored before";
  if (form.copies().size() == 1)
    text += ", from a copy of one factor whose rows tensor cores can read";
  if (form.copies().size() == 2)
    text += ", from copies of both factors whose rows tensor cores can read";
  return text;
}

/// Of a guess at what the call brings, whose rows are even where they have to be.
double predicted_seconds(const tile::Sequence& sequence, const std::string& arch, bool is_even) {
  const int64_t kGuess = is_even ? 4096 : 4095;
  const std::vector<int64_t> sizes(sequence.last().sizes.size(), kGuess);
  return predict::predict_tiles(sequence, sizes, autoschedule::gpu_machine(arch)).seconds();
}

/// Its best blocks first, or the one that is asked for.
std::vector<tile::BlockShape> shapes_of(const tile::ContractionForm& form,
                                        const std::optional<TileBlock>& block) {
  constexpr size_t kMostTried = 2;
  std::vector<tile::BlockShape> shapes = form.shapes();
  shapes.resize(std::min(shapes.size(), block ? 1 : kMostTried));
  if (!block) return shapes;
  shapes[0] = {.rows = block->rows.value_or(shapes[0].rows),
               .columns = block->columns.value_or(shapes[0].columns),
               .steps = block->steps.value_or(shapes[0].steps),
               .warps = static_cast<int>(block->warps.value_or(shapes[0].warps))};
  return shapes;
}

std::vector<Tiled> tiled_form(const tile::ContractionForm& form,
                              const std::optional<TileBlock>& block) {
  std::vector<Tiled> tiled;
  for (const tile::BlockShape& shape : shapes_of(form, block)) {
    tile::Sequence sequence = form.sequence(shape);
    std::string what =
        fmt::format("{}, in blocks of {} x {} with {} steps at once{}", kind_of(sequence.last()),
                    shape.rows, shape.columns, shape.steps, text_of_factors(form));
    tiled.push_back({std::move(sequence), shape.warps, std::move(what),
                     TileBlock{.rows = shape.rows,
                               .columns = shape.columns,
                               .steps = shape.steps,
                               .warps = shape.warps}});
  }
  return tiled;
}

/// Finds the best of the forms that are for the same calls.
class FormChooser {
 public:
  FormChooser(std::vector<tile::ContractionForm> forms, const std::string& arch,
              const std::optional<TileBlock>& block)
      : forms_(std::move(forms)), arch_(arch), block_(block) {}

  /// In the form that is predicted to take less time, of those that rows are copied of without
  /// threads; none where there is none.
  std::vector<Tiled> best(bool has_even_rows) {
    std::vector<Tiled> chosen;
    double least = std::numeric_limits<double>::infinity();
    for (const tile::ContractionForm& form : forms_) {
      if (form.has_even_rows() != has_even_rows) continue;
      try {
        std::vector<Tiled> tiled = tiled_form(form, block_);
        why_ = tile::unaligned_rows(tiled[0].sequence.last());
        if (!why_.empty()) continue;
        require_sums_in_range(tiled[0].sequence.last());
        const double seconds = predicted_seconds(tiled[0].sequence, arch_, has_even_rows);
        if (!chosen.empty() && seconds >= least) continue;
        chosen = std::move(tiled);
        least = seconds;
      } catch (const Error& error) {
        if (error.reason() != "TILE_FORM") throw;
        why_ = error.message();
      }
    }
    return chosen;
  }
  /// Why the last form is none.
  const std::string& why() const { return why_; }

 private:
  const std::vector<tile::ContractionForm> forms_;
  const std::string& arch_;
  const std::optional<TileBlock>& block_;
  std::string why_;
};

std::vector<TileWay> tiled_product(const language::Kernel& kernel, const std::string& arch,
                                   const std::optional<TileBlock>& block) {
  if (std::ranges::count(tile::product_architectures(), arch) == 0)
    refuse_form("Tile IR is used for {}, not for {}",
                fmt::join(tile::product_architectures(), ", "), arch);
  FormChooser chooser(tile::contraction_forms(kernel, arch), arch, block);
  std::vector<TileWay> ways;
  for (const bool has_even_rows : {true, false}) {
    std::vector<Tiled> tiled = chooser.best(has_even_rows);
    if (!tiled.empty()) ways.push_back({std::move(tiled)});
  }
  if (ways.empty()) refuse_form("{}", chooser.why());
  return ways;
}

}  // namespace

std::vector<TileWay> tile_ways(const language::Kernel& kernel, const std::string& arch,
                               const std::optional<TileBlock>& block) {
  if (tile::is_attention(kernel)) return {{tiled_attention(kernel, arch, block)}};
  return tiled_product(kernel, arch, block);
}

}  // namespace kiln
