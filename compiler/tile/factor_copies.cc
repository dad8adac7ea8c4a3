// Looks at how the factors of a contraction lie in memory.
#include "compiler/tile/factor_copies.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/gpu_arch.h"
#include "compiler/tile/find_product.h"
#include "runtime/core/error.h"

namespace kiln::tile {

using namespace language;

namespace {

class CopyFinder {
 public:
  CopyFinder(const Kernel& kernel, std::string_view arch)
      : definition_(kernel.definition),
        finder_(kernel.definition),
        product_(finder_.find_sides()),
        turns_bytes_(ir::gpu_arch(arch).bytes_along_sums) {}

  std::vector<FactorCopy> run() {
    if (product_.rows.window) {
      add_window();
    } else {
      sum_ = finder_.longest_sum(product_);
      add(product_.rows, product_.rows.axes, product_.row_axes);
    }
    add(product_.columns, product_.columns.axes, {product_.column});
    return std::move(copies_);
  }

 private:
  Extent extent_of(language::AxisId axis) const {
    return finder_.extent_of(definition_.axes[axis].extent);
  }
  int64_t row_lanes(TensorId tensor) const {
    return kRowBytes / size_of(definition_.type_of(tensor));
  }
  bool is_aligned(TensorId tensor, const Extent& row) const {
    return row.size < 0 && row.constant % row_lanes(tensor) == 0;
  }

  /// A window may lie along any axis that is summed over whole: the last dimension, else the
  /// longest.
  void add_window() {
    const FactorRead& read = *product_.rows.window;
    const std::vector<ExprId> shape = definition_.shape_of(read.tensor);
    std::optional<size_t> along;
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::optional<language::AxisId> axis = read.indices[d].axis();
      const auto uses = [&](const AffineIndex& index) { return index.factors.contains(*axis); };
      if (!axis || std::ranges::count(product_.sums, *axis) == 0 ||
          std::ranges::count_if(read.indices, uses) > 1 || extent_of(*axis).size >= 0 ||
          extent_of(*axis) != finder_.extent_of(shape[d]))
        continue;
      const bool is_longer =
          !along || extent_of(*axis).constant >= extent_of(*read.indices[*along].axis()).constant;
      if (is_longer || d + 1 == shape.size()) along = d;
    }
    if (!along) {
      sum_ = product_.sums.back();
      return;
    }
    sum_ = *read.indices[*along].axis();
    const bool is_last = *along + 1 == shape.size();
    if (is_last && is_aligned(read.tensor, extent_of(sum_))) return;
    add_along(read.tensor, shape.size(), *along);
  }

  void add(const Element& factor, const std::vector<language::AxisId>& axes,
           const std::vector<language::AxisId>& sides) {
    if (factor.computed) return;  // on its way from where it lies
    const language::AxisId last = axes.back();
    const bool is_side = std::ranges::count(sides, last) > 0;
    const bool is_byte = size_of(definition_.type_of(factor.tensor)) == 1;
    const bool goes_well = last == sum_ || (is_side && !(is_byte && turns_bytes_));
    const bool is_aligned_row = is_aligned(factor.tensor, extent_of(last));
    if (axes.size() < 2 || (goes_well && is_aligned_row)) return;
    const bool stays = goes_well && (last == sum_ || sides.size() == 1);
    const language::AxisId row = stays ? last : sum_;
    const auto at = std::ranges::find(axes, row) - axes.begin();
    add_along(factor.tensor, axes.size(), static_cast<size_t>(at));
  }

  /// With this dimension last.
  void add_along(TensorId tensor, size_t rank, size_t dimension) {
    const auto found = std::ranges::find(definition_.parameters, tensor);
    KILN_CHECK(found != definition_.parameters.end());
    FactorCopy copy;
    copy.parameter = static_cast<uint32_t>(found - definition_.parameters.begin());
    // One of both factors.
    if (std::ranges::count(copies_, copy.parameter, &FactorCopy::parameter) > 0) return;
    for (uint32_t d = 0; d < rank; ++d)
      if (d != dimension) copy.order.push_back(d);
    copy.order.push_back(static_cast<uint32_t>(dimension));
    copy.row_multiple = row_lanes(tensor);
    const Extent row = finder_.extent_of(definition_.shape_of(tensor)[dimension]);
    copy.is_spared = row.size >= 0 && dimension + 1 == rank;
    copies_.push_back(std::move(copy));
  }

  const Definition& definition_;
  ProductFinder finder_;
  const Product& product_;
  const bool turns_bytes_;    // on the way to tensor cores, where they do not go along the sum
  language::AxisId sum_ = 0;  // that tiles go along
  std::vector<FactorCopy> copies_;
};

}  // namespace

std::vector<FactorCopy> factor_copies(const Kernel& kernel, std::string_view arch) {
  return CopyFinder(kernel, arch).run();
}

}  // namespace kiln::tile
