#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/random.h"

namespace kiln::testing {

/// What one change of a kernel's text is about.
enum class MutationKind : uint8_t {
  Index,      // an index of a tensor, on either side of an assignment
  Extent,     // a dimension of a tensor, a range of a reduction
  Axis,       // which axis: of an assignment, a reduction, a scan, a step
  Step,       // a step of a schedule: another, none, twice, elsewhere, a new one
  Factor,     // a number of a step
  Constant,   // a number among the values
  Type,       // of a tensor or a cast
  Operator,   // a sign, a function, a combiner
  Tensor,     // which tensor is read
  Statement,  // dropped, twice, or elsewhere
};

std::span<const MutationKind> mutation_kinds();
std::string_view name_of(MutationKind kind);

/// The text of a kernel file with one thing changed, which may make it wrong or not. It must parse;
/// nothing when it has no place for a change of this kind.
std::optional<std::string> mutate_kernel(std::string_view text, MutationKind kind, Random& random);

}  // namespace kiln::testing
