// Chooses the tile of sums of a block: of one shape where there are enough of its blocks, of a
// smaller one else; and of a window as many places of each axis as leave few beyond its end.
#include "compiler/tile/block_shape.h"

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/ir/gpu_arch.h"
#include "compiler/tile/part_sizes.h"

namespace kiln::tile {

using namespace language;

namespace {

// The first is what keeps tensor cores of sm_90 busiest; the others are for products that have too
// few of its blocks for all multiprocessors of an H100, of which there are 132.
constexpr BlockShape kShapes[] = {{.rows = 128, .columns = 256, .steps = 64, .warps = 8},
                                  {.rows = 128, .columns = 128, .steps = 64, .warps = 0},
                                  {.rows = 64, .columns = 128, .steps = 64, .warps = 0},
                                  {.rows = 64, .columns = 64, .steps = 64, .warps = 0}};
constexpr int64_t kStepBytes = 128;  // that a block moves of a row at once: 64 steps of 16 bits

bool is_byte_float(DType factor) { return is_float(factor) && size_of(factor) == 1; }

/// Powers of two whose product is `rows`, one for each axis: those that leave the least of blocks
/// beyond the ends of axes. An open axis may be 1 long; where that leaves a choice, it is long.
/// Else the last axes have the longest steps.
class RowSteps {
 public:
  explicit RowSteps(std::vector<Extent> extents)
      : extents_(std::move(extents)), steps_(extents_.size(), 1) {}

  std::vector<int64_t> run(int64_t rows) {
    choose(extents_.size(), rows);
    return best_;
  }

 private:
  void choose(size_t count, int64_t rows) {
    if (count > 0) {
      const int64_t least = count == 1 ? rows : 1;
      for (int64_t step = rows; step >= least; step /= 2) {
        steps_[count - 1] = step;
        choose(count - 1, rows / step);
      }
      return;
    }
    const std::pair cost(covered(1), covered(kOpenExtent));
    if (!best_.empty() && cost >= least_) return;
    least_ = cost;
    best_ = steps_;
  }
  /// All places of all blocks, where what is open is so long.
  double covered(int64_t open) const {
    double places = 1;
    for (size_t i = 0; i < extents_.size(); ++i) {
      const int64_t extent = extents_[i].size < 0 ? extents_[i].constant : open;
      const int64_t whole = (extent + steps_[i] - 1) / steps_[i] * steps_[i];
      places *= static_cast<double>(whole);
    }
    return places;
  }

  const std::vector<Extent> extents_;
  std::vector<int64_t> steps_;
  std::vector<int64_t> best_;
  std::pair<double, double> least_;
};

}  // namespace

std::vector<int64_t> row_steps(const Definition& definition, const ProductFinder& finder,
                               const Product& product, int64_t rows) {
  std::vector<Extent> extents;
  for (const language::AxisId axis : product.row_axes)
    extents.push_back(finder.extent_of(definition.axes[axis].extent));
  return RowSteps(std::move(extents)).run(rows);
}

int64_t step_of(const Product& product, const BlockShape& shape, std::span<const int64_t> row_steps,
                language::AxisId axis) {
  const auto row = std::ranges::find(product.row_axes, axis);
  if (row != product.row_axes.end())
    return row_steps[static_cast<size_t>(row - product.row_axes.begin())];
  if (axis == product.column) return shape.columns;
  return axis == product.sum() ? shape.steps : 1;
}

namespace {

/// Shapes for the product of a kernel.
class Chooser {
 public:
  Chooser(const Kernel& kernel, ByteFloatSums sums)
      : definition_(kernel.definition),
        finder_(kernel.definition),
        product_(finder_.find()),
        factor_(finder_.type_of(product_.rows)),
        sums_(is_byte_float(factor_) ? sums : ByteFloatSums::InFloat32) {}

  /// The first that has enough blocks, then those that are smaller.
  std::vector<BlockShape> run() const {
    const auto all = std::span(kShapes).subspan(has_sums_twice() ? 1 : 0);
    const auto has_enough = [&](const BlockShape& shape) { return blocks_of(shape) >= kFewBlocks; };
    auto first = std::ranges::find_if(all, has_enough);
    if (first == all.end()) --first;
    std::vector<BlockShape> shapes;
    for (const BlockShape& shape : std::span(first, all.end()))
      shapes.push_back(fitted(shape));
    return shapes;
  }

 private:
  /// Each part of a sum is added to the whole in float32, which is in other registers.
  bool has_sums_twice() const { return sums_ == ByteFloatSums::InParts; }
  int64_t extent(language::AxisId axis) const {
    return extent_or_guess(definition_, finder_, axis);
  }
  double parts(language::AxisId axis, int64_t step) const {
    const int64_t whole = (extent(axis) + step - 1) / step;
    return static_cast<double>(whole);
  }
  double blocks_of(const BlockShape& shape) const {
    const std::vector<int64_t> steps = row_steps(definition_, finder_, product_, shape.rows);
    double blocks = 1;
    for (const language::AxisId axis : product_.axes)
      blocks *= parts(axis, step_of(product_, shape, steps, axis));
    return blocks;
  }
  bool goes_along_sums(const Element& element) const {
    return element.axes.back() == product_.sum();
  }

  /// With steps for the type, and no larger than the product.
  BlockShape fitted(BlockShape shape) const {
    shape.is_fast = sums_ == ByteFloatSums::InFewBits;
    shape.steps = kStepBytes / size_of(factor_);
    // A factor of 32 bits that does not go along its sums is turned by threads, at the same cost
    // for twice as many steps (sm_90: 109 instructions for 4 matrix instructions of 64 x 256, or
    // for 8).
    const bool are_along = goes_along_sums(product_.rows) && goes_along_sums(product_.columns);
    if (factor_ == DType::Float32 && !are_along) shape.steps *= 2;
    if (has_sums_twice() && shape.rows == kShapes[1].rows) {
      shape.warps = 8;
      // Rows of the factor that go along its sums need no turning, which takes registers, too.
      if (!goes_along_sums(product_.rows)) shape.steps /= 2;
    }
    // What is computed on the way takes registers, of which more warps have more.
    const bool is_computed = product_.rows.computed || product_.columns.computed;
    if (is_computed && shape.rows == kShapes[1].rows) shape.warps = 8;
    const BlockShape full = shape;
    int64_t rows = 1;
    double places = 1;  // of a window, of which each has its part of the loop
    for (const language::AxisId axis : product_.row_axes)
      rows = std::min(rows * extent(axis), shape.rows);
    for (const language::AxisId axis : std::span(product_.sums).first(product_.sums.size() - 1))
      places *= parts(axis, 1);
    shape.rows = shortened(shape.rows, rows);
    shape.columns = shortened(shape.columns, extent(product_.column));
    if (places * parts(product_.sum(), shape.steps) < kFewParts &&
        places * parts(product_.sum(), shape.steps / 2) >= kFewParts)
      shape.steps /= 2;
    shape.steps = shortened(shape.steps, extent(product_.sum()));
    if (product_.rows.window && product_.rows.window->inside.empty() && places > 1) {
      // Tiles that end where the channels do can be copied without threads.
      const int64_t divisor = extent(product_.sum()) & -extent(product_.sum());
      if (divisor >= kLeast * 2) shape.steps = std::min(shape.steps, divisor);
    }
    const bool is_full = shape.rows == full.rows && shape.columns == full.columns;
    if (!is_full) shape.warps = 0;
    return shape;
  }

  const Definition& definition_;
  ProductFinder finder_;
  const Product product_;
  const DType factor_;
  const ByteFloatSums sums_;
};

}  // namespace

ByteFloatSums byte_float_sums(std::string_view arch, bool fast) {
  // Those of Hopper keep 14 bits of a mantissa, its first 1 among them (DeepSeek-V3,
  // arXiv:2412.19437, 3.3.2), what later architectures of product_architectures() have is float32.
  if (ir::capability_of(arch) != 90) return ByteFloatSums::InFloat32;
  return fast ? ByteFloatSums::InFewBits : ByteFloatSums::InParts;
}

std::vector<BlockShape> block_shapes(const Kernel& kernel, ByteFloatSums sums) {
  return Chooser(kernel, sums).run();
}

BlockShape block_shape(const Kernel& kernel) { return block_shapes(kernel)[0]; }

}  // namespace kiln::tile
