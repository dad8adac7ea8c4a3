#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compiler/language/definition.h"
#include "compiler/language/evaluate/host_tensor.h"
#include "compiler/language/evaluate/scalar.h"

namespace kiln::language {

/// What to make of the result of an operation, a cast or a step of a reduction.
using Rounding = std::function<Scalar(const Scalar&)>;

/// What a definition means, computed element by element: the first oracle. It shares nothing with
/// the compiler, knows no schedule, and is slow.
///
/// An intermediate element is computed when something reads it, and once. Floating numbers are
/// rounded to their type after every operation; reductions and scans run in the order of their
/// axes.
///
/// `sizes` has a value for each variable; `inputs` one tensor for each parameter that is a
/// placeholder, in their order. Returns the computed parameters in their order.
///
/// Throws InvalidArgument INDEX_OUT_OF_RANGE naming tensor, dimension and index when an element
/// that is needed reads outside a tensor, ResourceExhausted EVALUATION_LIMIT after `max_steps`
/// expressions.
///
/// A `rounding` that moves floating results at random by as much as they were rounded shows, in a
/// few evaluations, how far rounding may move the outputs: J. Vignes, "A stochastic arithmetic for
/// reliable scientific computation", 1993.
std::vector<HostTensor> evaluate(const Definition& definition, const SourceMap& names,
                                 std::span<const int64_t> sizes, std::span<const HostTensor> inputs,
                                 int64_t max_steps = 2'000'000'000,
                                 const Rounding& rounding = nullptr);

/// The value of an expression over sizes alone, such as an extent of a shape.
int64_t evaluate_size(const Definition& definition, ExprId expr, std::span<const int64_t> sizes);

}  // namespace kiln::language
