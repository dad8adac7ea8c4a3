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

/// The body of the loop over its sum.
const std::vector<tile::Instruction>& loop_of(const tile::Program& program) {
  for (const tile::Instruction& each : program.body)
    if (const auto* loop = std::get_if<tile::For>(&each.what)) return loop->body;
  KILN_CHECK(false);
}

const tile::Instruction& product_of(const tile::Program& program) {
  for (const tile::Instruction& each : loop_of(program))
    if (std::holds_alternative<tile::Mma>(each.what)) return each;
  KILN_CHECK(false);
}

/// "convolution of 16-bit floats"
std::string kind_of(const tile::Program& program) {
  const bool has_window = std::ranges::any_of(loop_of(program), [](const tile::Instruction& each) {
    return std::holds_alternative<tile::Window>(each.what);
  });
  const std::string_view kind = has_window ? "convolution" : "product";
  const tile::Instruction& product = product_of(program);
  if (std::get<tile::Mma>(product.what).in_tf32) return fmt::format("{} in tf32", kind);
  const DType type = program.values[product.operands[0]].element;
  return fmt::format("{} of {}-bit {}", kind, 8 * size_of(type),
                     is_float(type) ? "floats" : "integers");
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

/// What is said of sums that tensor cores of the architecture keep in few bits.
std::string_view text_of_sums(const tile::Program& program, tile::ByteFloatSums sums) {
  const tile::Instruction& product = product_of(program);
  const DType factor = program.values[product.operands[0]].element;
  const bool is_short = is_float(factor) && size_of(factor) == 1;
  if (!is_short || sums == tile::ByteFloatSums::InFloat32) return "";
  if (std::get<tile::Mma>(product.what).is_fast)
    return ", added up by tensor cores alone, in fewer bits than float32 has";
  return ", added up in float32 every 128 steps (with fast=True or --fast by tensor cores alone, "
         "in "
         "fewer bits)";
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
                                        const std::optional<TileBlock>& block,
                                        tile::ByteFloatSums sums) {
  constexpr size_t kMostTried = 2;
  std::vector<tile::BlockShape> shapes = form.shapes(sums);
  shapes.resize(std::min(shapes.size(), block ? 1 : kMostTried));
  if (!block) return shapes;
  tile::BlockShape& shape = shapes[0];
  shape.rows = block->rows.value_or(shape.rows);
  shape.columns = block->columns.value_or(shape.columns);
  shape.steps = block->steps.value_or(shape.steps);
  shape.warps = static_cast<int>(block->warps.value_or(shape.warps));
  return shapes;
}

std::vector<Tiled> tiled_form(const tile::ContractionForm& form,
                              const std::optional<TileBlock>& block, tile::ByteFloatSums sums) {
  std::vector<Tiled> tiled;
  for (const tile::BlockShape& shape : shapes_of(form, block, sums)) {
    tile::Sequence sequence = form.sequence(shape);
    std::string what = fmt::format("{}, in blocks of {} x {} with {} steps at once{}{}",
                                   kind_of(sequence.last()), shape.rows, shape.columns, shape.steps,
                                   text_of_sums(sequence.last(), sums), text_of_factors(form));
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
              const CompileOptions& options)
      : forms_(std::move(forms)),
        arch_(arch),
        block_(options.block),
        sums_(tile::byte_float_sums(arch, options.fast && !options.strict)) {}

  /// In the form that is predicted to take less time, of those that rows are copied of without
  /// threads; none where there is none.
  std::vector<Tiled> best(bool has_even_rows) {
    std::vector<Tiled> chosen;
    double least = std::numeric_limits<double>::infinity();
    for (const tile::ContractionForm& form : forms_) {
      if (form.has_even_rows() != has_even_rows) continue;
      try {
        std::vector<Tiled> tiled = tiled_form(form, block_, sums_);
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
  const tile::ByteFloatSums sums_;
  std::string why_;
};

std::vector<TileWay> tiled_product(const language::Kernel& kernel, const std::string& arch,
                                   const CompileOptions& options) {
  if (std::ranges::count(tile::product_architectures(), arch) == 0)
    refuse_form("Tile IR is used for {}, not for {}",
                fmt::join(tile::product_architectures(), ", "), arch);
  FormChooser chooser(tile::contraction_forms(kernel, arch), arch, options);
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
                               const CompileOptions& options) {
  if (tile::is_attention(kernel)) return {{tiled_attention(kernel, arch, options.block)}};
  return tiled_product(kernel, arch, options);
}

}  // namespace kiln
