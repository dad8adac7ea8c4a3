#pragma once

#include <map>
#include <optional>
#include <vector>

#include "compiler/language/kernel.h"

namespace kiln::tile {

/// An index as constant + sum of factor * axis.
struct AffineIndex {
  std::map<language::AxisId, int64_t> factors;
  int64_t constant = 0;

  /// The axis, where it is nothing else.
  std::optional<language::AxisId> axis() const;
  bool operator==(const AffineIndex&) const = default;
};

/// What the axes of a stage are where it is read.
using Substituted = std::map<language::AxisId, AffineIndex>;

/// An element of a parameter, and where it is read: `inside` holds what must not be negative for
/// that. Else the factor is 0.
struct FactorRead {
  language::TensorId tensor;
  std::vector<AffineIndex> indices;
  std::vector<AffineIndex> inside;
  bool in_tf32 = false;  // what tf32() leaves of it
};

/// The element that a factor of a sum is, in the type `sum`, through stages that are padded or
/// cast:
///
///   P[n, y, x, c] = if_then_else(y >= 1 && y < 57, X[n, y - 1, x, c], 0)
///   float32(P[n, i*2 + r, j*2 + s, c])  ->  X[n, i*2 + r - 1, j*2 + s, c]
///
/// Nothing where it is something else.
std::optional<FactorRead> find_factor(const language::Definition& definition, language::ExprId expr,
                                      const Substituted& axes);

/// Throws Unsupported TILE_FORM with the reason unless reading the element where it is in the
/// tensor, and 0 outside, is what the conditions say; and unless a row of it is `sum` axis, whole.
/// Returns that axis.
language::AxisId require_window(const language::Definition& definition, const FactorRead& read,
                                const std::vector<language::AxisId>& sums);

}  // namespace kiln::tile
