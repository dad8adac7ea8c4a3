// Writes a contraction down on tiles: its rows and its last column are cut into tiles, all other
// axes into single places.
//
//   C[b, i, j] = sum[k](A[b, i, k] * B[b, k, j]):  b by 1, i by 128, j by 128; for k by 64
//   C[n, m, y, x] = sum[c](F[m, c] * X[n, c, y, x]):  n by 1, m by 256, y by 16, x by 8
#include "compiler/tile/contraction.h"

#include <algorithm>
#include <array>

#include "compiler/tile/find_product.h"
#include "compiler/tile/program_writer.h"
#include "runtime/core/gpu_name.h"

namespace kiln::tile {
namespace {

using namespace language;

/// Writes the program of a product.
class ContractionWriter {
 public:
  ContractionWriter(const Kernel& kernel, const BlockShape& shape)
      : definition_(kernel.definition),
        finder_(kernel.definition),
        product_(finder_.find()),
        shape_(shape),
        row_steps_(row_steps(kernel.definition, finder_, product_, shape.rows)),
        writer_(kernel, finder_) {}

  Program run() {
    for (const language::AxisId axis : product_.axes)
      add_axis(axis);
    writer_.end_blocks();
    const Sheet sheet{product_.row_axes, product_.column, [&] { return write_sum(); }};
    const ValueId result = writer_.value_of(sheet, finder_.compute_of(product_.output).bodies[0],
                                            same_names(product_.axes));
    writer_.store(sheet, product_.output, product_.axes, result);
    return writer_.finish();
  }

 private:
  void add_axis(language::AxisId axis) {
    writer_.add_axis(axis, step_of(product_, shape_, row_steps_, axis));
  }

  ValueId load_window(const FactorRead& read) {
    Window window;
    window.parameter = writer_.parameter_of(read.tensor);
    for (const AffineIndex& index : read.indices) {
      Index& written = window.indices.emplace_back();
      written.offset = index.constant;
      // In the order of axes, which is that of the definition for what it names.
      for (const auto& [axis, factor] : index.factors)
        written.terms.push_back({writer_.number_of(axis), factor});
      std::ranges::sort(written.terms, {}, &Term::axis);
    }
    for (const language::AxisId axis : product_.row_axes)
      window.rows.push_back(writer_.number_of(axis));
    window.along = writer_.number_of(product_.sum());
    return writer_.add({.what = std::move(window), .operands = {}, .results = {}},
                       {definition_.type_of(read.tensor), {shape_.rows, shape_.steps}});
  }

  /// A part of a computed factor, of these rows and this column of it.
  ValueId compute(const ComputedFactor& factor, std::vector<language::AxisId> rows,
                  language::AxisId column) {
    return writer_.value_of({std::move(rows), column, {}}, factor.expr, factor.renamed);
  }

  ValueId load_rows() {
    if (product_.rows.window) return load_window(*product_.rows.window);
    if (product_.rows.computed)
      return compute(*product_.rows.computed, product_.row_axes, product_.sum());
    std::vector<language::AxisId> axes = product_.row_axes;
    axes.push_back(product_.sum());
    return writer_.load(product_.rows, axes, {shape_.rows, shape_.steps});
  }

  ValueId load_columns() {
    if (product_.columns.computed)
      return compute(*product_.columns.computed, {product_.sum()}, product_.column);
    return writer_.load(product_.columns, {product_.sum(), product_.column},
                        {shape_.steps, shape_.columns});
  }

  ValueId write_sum() {
    const DType factor = finder_.type_of(product_.rows);
    const TileType type{sum_type_of(factor), {shape_.rows, shape_.columns}};
    const ValueId zero = writer_.constant(0, type);
    For loop;
    for (const language::AxisId axis : product_.sums) {
      add_axis(axis);
      loop.axes.push_back(writer_.number_of(axis));
    }
    const auto body = [&](std::span<const ValueId> carried) -> std::vector<ValueId> {
      const ValueId a = load_rows();
      const ValueId b = load_columns();
      const Mma mma{.in_tf32 = factor == DType::Float32, .is_fast = shape_.is_fast};
      return {writer_.add({.what = mma, .operands = {a, b, carried[0]}, .results = {}}, type)};
    };
    return writer_.loop(std::move(loop), {zero}, body)[0];
  }

  const Definition& definition_;
  ProductFinder finder_;
  const Product product_;
  const BlockShape shape_;
  const std::vector<int64_t> row_steps_;
  ProgramWriter writer_;
};

}  // namespace

Program contraction(const Kernel& kernel, const BlockShape& shape) {
  return ContractionWriter(kernel, shape).run();
}

std::span<const std::string_view> product_architectures() {
  static constexpr std::array<std::string_view, 4> kArchitectures = {"sm_90", "sm_100", "sm_103",
                                                                     "sm_110"};
  return kArchitectures;
}

bool is_plain_product(const Kernel& kernel, std::string_view arch) {
  if (std::ranges::count(product_architectures(), without_figures(arch)) == 0) return false;
  try {
    const Product product = ProductFinder(kernel.definition).find();
    // What is computed on the way to a product would be computed by each of its blocks.
    if (product.rows.window || product.rows.computed || product.columns.computed) return false;
    return unaligned_rows(contraction(kernel, block_shape(kernel))).empty();
  } catch (const Error& error) {
    if (error.reason() != "TILE_FORM") throw;
    return false;
  }
}

}  // namespace kiln::tile
