#include "tests/errors/cpp/wrong.h"

using kiln::compute, kiln::Expr, kiln::float32, kiln::placeholder, kiln::reduce_axis;

WRONG(too_few_indices) {
  const auto A = placeholder({4, 4}, float32, "A");
  compute(  // <-
      {4}, [&](Expr i) { return A(i); }, "B");
}

WRONG(body_of_another_number_of_indices) {
  const auto A = placeholder({4, 4}, float32, "A");
  compute(  // <-
      {4, 4}, [&](Expr i) { return A(i, i); }, "B");
}

WRONG(index_that_is_floating) {
  const auto A = placeholder({4}, float32, "A");
  compute(  // <-
      {4}, [&](Expr i) { return A(i * 0.5); }, "B");
}

WRONG(constant_index_outside_of_the_tensor) {
  const auto A = placeholder({4}, float32, "A");
  compute(  // <-
      {4}, [&](Expr) { return A(4); }, "B");
}

WRONG(integers_divided_by_a_slash) {
  const auto A = placeholder({4}, kiln::int32, "A");
  compute(  // <-
      {4}, [&](Expr i) { return A(i) / 2; }, "B");
}

WRONG(integer_and_floating_mixed) {
  const auto A = placeholder({4}, float32, "A");
  compute(  // <-
      {4}, [&](Expr i) { return A(i) & 1; }, "B");
}

WRONG(select_of_two_types) {
  const auto A = placeholder({4}, float32, "A");
  compute(  // <-
      {4}, [&](Expr i) { return kiln::select(A(i), A(i), 0.0F); }, "B");
}

WRONG(fraction_as_an_integer) {
  compute(  // <-
      {4}, [&](Expr) { return kiln::constant(0.5, kiln::int32); }, "B");
}

WRONG(negative_dimension) {
  placeholder({4, -3}, float32, "A");  // <-
}

WRONG(dimension_that_is_floating) {
  placeholder({2.5}, float32, "A");  // <-
}

WRONG(names_for_other_axes) {
  compute({4, 4}, [](Expr i, Expr j) { return i + j; }, {"B", {"i"}});  // <-
}

WRONG(reduction_that_ends_before_it_begins) {
  reduce_axis(8, 4, "k");  // <-
}

WRONG(reduction_over_no_axis) {
  const auto A = placeholder({4}, float32, "A");
  compute(  // <-
      {4}, [&](Expr i) { return kiln::sum(A(i), std::vector<kiln::ReduceAxis>{}); }, "B");
}

WRONG(logical_reduction_of_numbers) {
  const auto A = placeholder({4}, float32, "A");
  const auto k = reduce_axis(4, "k");
  compute(  // <-
      {}, [&] { return kiln::any(A(k), k); }, "B");
}

WRONG(reducer_with_an_identity_of_another_type) {
  kiln::comm_reducer(  // <-
      float32, [](Expr a, Expr b) { return a * b; }, kiln::constant(1, kiln::int64), "product");
}

WRONG(reducer_of_two_values_given_one) {
  const auto A = placeholder({4}, float32, "A");
  const auto k = reduce_axis(4, "k");
  const auto arg_max = kiln::comm_reducer(
      {kiln::int64, float32},
      [](auto a, auto b) {
        return std::vector<Expr>{kiln::select(a[1] >= b[1], a[0], b[0]), kiln::max(a[1], b[1])};
      },
      {-1, kiln::min_value(float32)}, "arg_max");
  compute(  // <-
      {}, [&] { return arg_max({A(k)}, k); }, "B");
}

WRONG(reduction_axis_outside_of_its_sum) {
  const auto A = placeholder({4, 4}, float32, "A");
  const auto k = reduce_axis(4, "k");
  const auto B = compute(  // <-
      {4}, [&](Expr i) { return A(i, k) * 2; }, "B");
  kiln::connect().build({A, B});
}

WRONG(read_past_the_end) {
  const auto n = kiln::var("n");
  const auto A = placeholder({n}, float32, "A");
  const auto B = compute(  // <-
      {n}, [&](Expr i) { return A(i + 1) - A(i); }, "B");
  kiln::connect().build({A, B}, {.name = "difference"});
}

WRONG(tensors_that_do_not_broadcast) {
  const auto A = placeholder({4}, float32, "A");
  const auto B = placeholder({3}, float32, "B");
  A + B;  // <-
}

WRONG(read_before_the_first) {
  const auto n = kiln::var("n");
  const auto A = placeholder({n}, float32, "A");
  const auto B = compute(  // <-
      {n}, [&](Expr i) { return A(i) - A(i - 1); }, {"B", {"i"}});
  kiln::connect().build({A, B}, {.name = "difference"});
}

WRONG(window_past_the_end) {
  const auto X = placeholder({8}, float32, "X");
  const auto k = reduce_axis(3, "k");
  const auto Y = compute(  // <-
      {8}, [&](Expr i) { return kiln::sum(X(i + k), k); }, {"Y", {"i"}});
  kiln::connect().build({X, Y}, {.name = "window"});
}

WRONG(shape_that_was_not_transposed) {
  const auto n = kiln::var("n"), m = kiln::var("m");
  const auto A = placeholder({n, m}, float32, "A");
  const auto B = compute(  // <-
      {m, n}, [&](Expr i, Expr j) { return A(i, j); }, "B");
  kiln::connect().build({A, B}, {.name = "transpose"})(kiln::Array({4, 3}));
}

WRONG(sum_over_the_rows_of_each_row) {
  const auto n = kiln::var("n"), m = kiln::var("m");
  const auto A = placeholder({n, m}, float32, "A");
  const auto k = reduce_axis(n, "k");
  const auto B = compute(  // <-
      {n}, [&](Expr i) { return kiln::sum(A(i, k), k); }, "B");
  kiln::connect().build({A, B}, {.name = "row_sums"})(kiln::Array({4, 3}));
}
