#pragma once

#include "tests/support/kernel_writer.h"

/// The kinds of stages that random_kernel() draws; its tables name them. A new kind is a function
/// here and a row there.
namespace kiln::testing {

// False, having done nothing, when the source does not suit them.

// random_stages.cc

/// The same elements, in another order of dimensions, mixed with whatever fits.
bool add_pointwise(KernelWriter& writer, const DrawnTensor& source);
/// Another type.
bool add_cast(KernelWriter& writer, const DrawnTensor& source);
/// Which of two is larger, and a choice by that.
bool add_comparison(KernelWriter& writer, const DrawnTensor& source);
/// Reads three neighbours along one dimension, which shrinks by two.
bool add_stencil(KernelWriter& writer, const DrawnTensor& source);
/// A read that is in bounds only where a condition holds, on the left or on both sides.
bool add_padding(KernelWriter& writer, const DrawnTensor& source);

// random_functions.cc

/// An intrinsic of real numbers.
bool add_function(KernelWriter& writer, const DrawnTensor& source);

// random_integers.cc

/// The four divisions, by what may be zero.
bool add_division(KernelWriter& writer, const DrawnTensor& source);
/// Shifts, and, or, xor, the number of bits.
bool add_bits(KernelWriter& writer, const DrawnTensor& source);

// random_reductions.cc

/// Over any one dimension.
bool add_row_reduction(KernelWriter& writer, const DrawnTensor& source);
/// The sum over the last dimension of `source` times another tensor with that dimension.
bool add_product(KernelWriter& writer, const DrawnTensor& source);
/// Two reductions over the same axis, as two results of one stage.
bool add_two_results(KernelWriter& writer, const DrawnTensor& source);
/// As far as another axis or a tensor says.
bool add_ragged_reduction(KernelWriter& writer, const DrawnTensor& source);

// random_padding.cc

/// A window that slides over one dimension and beyond its ends, times weights, for some filters.
bool add_padded_product(KernelWriter& writer, const DrawnTensor& source);

// random_inner_reductions.cc

/// One reduction or two inside a larger expression, maybe in a branch.
bool add_inner_reduction(KernelWriter& writer, const DrawnTensor& source);
/// A reduction of what another one, which does not depend on it, is in.
bool add_nested_reduction(KernelWriter& writer, const DrawnTensor& source);

// random_reducers.cc

/// By a reducer of its own, of one value or two, with or without a condition and a start.
bool add_own_reducer(KernelWriter& writer, const DrawnTensor& source);
/// A combiner of the table with a condition, a start or both.
bool add_conditional_reduction(KernelWriter& writer, const DrawnTensor& source);

// random_indirect.cc

/// Elements at places that a tensor of integers gives.
bool add_gather(KernelWriter& writer, const DrawnTensor& source);
/// Updates of elements at such places.
bool add_scatter(KernelWriter& writer, const DrawnTensor& source);

// random_tensor_product.cc

/// A product that tensorize() has an intrinsic for; it brings its own inputs.
bool add_tensor_product(KernelWriter& writer, const DrawnTensor& source);

// random_scans.cc: time in any dimension, either way, with one to three initial steps; over an
// input or any tensor so far; sometimes only a step near the end is read.

/// Earlier states plus an input.
void add_plain_scan(KernelWriter& writer);
/// Sums of all rows so far, of constant sizes, that nothing else reads.
void add_running_scan(KernelWriter& writer);
/// A cell whose first stage, where time may be another dimension, is read by the second.
void add_scan_of_two_stages(KernelWriter& writer);
/// Two states, maybe of different ranks, one of which reads the first element of the other.
void add_scan_of_two_states(KernelWriter& writer);
/// A state that reads itself in reverse order.
void add_scan_reading_across(KernelWriter& writer);
/// A state times a matrix, as a stage or inside an expression.
void add_scan_of_products(KernelWriter& writer);
/// A state that reads itself at places that a tensor gives.
void add_scan_of_gathers(KernelWriter& writer);

}  // namespace kiln::testing
