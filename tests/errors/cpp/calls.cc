#include <fstream>

#include "tests/errors/cpp/wrong.h"

using kiln::Array, kiln::compute, kiln::Expr, kiln::float32, kiln::placeholder;

namespace {

/// C = A B, ready to be called.
kiln::Kernel matmul() {
  const auto n = kiln::var("n"), l = kiln::var("l"), m = kiln::var("m");
  const auto A = placeholder({n, l}, float32, "A");
  const auto B = placeholder({l, m}, float32, "B");
  const auto k = kiln::reduce_axis(l, "k");
  const auto C = compute(
      {n, m}, [&](Expr i, Expr j) { return kiln::sum(A(i, k) * B(k, j), k); }, "C");
  return kiln::connect().build({A, B, C}, {.name = "matmul"});
}

/// B[i] = A[I[i]]
kiln::Kernel gather() {
  const auto n = kiln::var("n"), m = kiln::var("m");
  const auto A = placeholder({n}, float32, "A");
  const auto I = placeholder({m}, kiln::int64, "I");
  const auto B = compute(  // <- index_from_data_outside
      {m}, [&](Expr i) { return A(I(i)); }, "B");
  return kiln::connect().build({A, I, B}, {.name = "gather"});
}

}  // namespace

WRONG(too_few_arguments) {
  const kiln::Kernel f = matmul();
  f(Array({2, 3}));  // <-
}

WRONG(argument_of_another_rank) {
  const kiln::Kernel f = matmul();
  f(Array({2, 3}), Array({3}));  // <-
}

WRONG(argument_of_another_type) {
  const kiln::Kernel f = matmul();
  f(Array({2, 3}), Array({3, 4}, kiln::float64));  // <-
}

WRONG(sizes_that_do_not_agree) {
  const kiln::Kernel f = matmul();
  f(Array({2, 3}), Array({4, 4}));  // <-
}

WRONG(output_of_another_shape) {
  const kiln::Kernel f = matmul();
  f(Array({2, 3}), Array({3, 4}), Array({2, 5}));  // <-
}

WRONG(wrong_argument_of_a_call_without_waiting) {
  const kiln::Kernel f = matmul();
  auto future = f.submit(Array({2, 3}), Array({4, 4}));  // <-
  future.get();
}

WRONG(index_from_data_outside) {
  const kiln::Kernel f = gather();
  f(Array({4}), Array(std::vector<std::int64_t>{0, 9}, {2}));
}

WRONG(values_that_do_not_fill_the_array) {
  Array(std::vector<float>{1, 2, 3}, {2, 2});  // <-
}

WRONG(array_read_as_another_type) {
  const Array a({4}, kiln::float64);
  a.values<float>();  // <-
}

WRONG(array_of_a_negative_dimension) {
  Array({2, -1});  // <-
}

WRONG(array_larger_than_memory) {
  Array({std::int64_t{1} << 40, std::int64_t{1} << 40});  // <-
}

WRONG(unknown_source) {
  const kiln::Kernel f = matmul();
  f.source("opencl");  // <-
}

WRONG(upload_to_a_device_that_is_not_there) {
  kiln::connect().upload(Array({4}), "cuda:7");  // <-
}

WRONG(address_that_is_none) { kiln::connect("localhost"); }

WRONG(service_that_does_not_run) { kiln::connect("unix:/nowhere/kilnd.sock").describe(); }

WRONG(closed_connection) {
  const auto service = kiln::connect();
  service.close();
  service.describe();
}

WRONG(kernel_file_that_is_not_there) { kiln::load_file("matmull.kiln"); }

WRONG(mistake_in_the_text_of_a_kernel) {
  kiln::parse("kernel k(A: float32[n]) -> (B: float32[n]) {\n  B[i] = A[i] + b\n}\n", "add.kiln");
}

WRONG(operator_that_is_not_there) { kiln::load_operator("softmaxx"); }

WRONG(definition_called_on_another_shape) {
  const auto A = placeholder({4, 3}, float32, "A");
  const auto B = placeholder({4, 3}, float32, "B");
  kiln::load_operator("matmul")(A, B);  // <-
}

WRONG(one_array_of_two_outputs) {
  const auto A = placeholder({4}, float32, "A");
  const auto B = compute(
      {4}, [&](Expr i) { return A(i) + 1; }, "B");
  const auto C = compute(
      {4}, [&](Expr i) { return A(i) + 2; }, "C");
  const kiln::Kernel f = kiln::connect().build({A, B, C}, {.name = "two"});
  const Array both = f(Array({4}));
}

WRONG(array_for_two_outputs) {
  const auto A = placeholder({4}, float32, "A");
  const auto B = compute(
      {4}, [&](Expr i) { return A(i) + 1; }, "B");
  const auto C = compute(
      {4}, [&](Expr i) { return A(i) + 2; }, "C");
  const kiln::Kernel f = kiln::connect().build({A, B, C}, {.name = "two"});
  const Array result({4});
  f(Array({4}), result, result);  // <-
}

WRONG(more_stages_than_a_kernel_may_have) {
  kiln::Tensor last = placeholder({4}, float32, "A");
  for (int stage = 0; stage < 20'000; ++stage) {
    const auto step = [&](Expr i) { return last(i) + 1; };
    last = compute({4}, step, "B");  // <-
  }
}
