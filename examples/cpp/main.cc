// Kernels written in C++, compiled and run by a Kiln service. Without KILN_ADDRESS a private daemon
// starts by itself.

#include <cstdint>
#include <iostream>
#include <numeric>
#include <vector>

#include <kiln/client.h>

namespace {

/// 0, 1, 2, ...
kiln::Array counting(std::vector<std::int64_t> shape) {
  kiln::Array array(std::move(shape));
  const auto values = array.values<float>();
  std::iota(values.begin(), values.end(), 0.0F);
  return array;
}

/// y = 2 x + y, for every length.
void saxpy(const kiln::Connection& service) {
  const auto n = kiln::var("n");
  const auto x = kiln::placeholder({n}, kiln::float32, "x");
  const auto y = kiln::placeholder({n}, kiln::float32, "y");
  const auto out = kiln::compute(
      {n}, [&](kiln::Expr i) { return 2 * x(i) + y(i); }, "out");

  const kiln::Kernel kernel = service.build({x, y, out}, {.name = "saxpy"});
  const kiln::Array result = kernel(counting({8}), counting({8}));
  std::cout << "saxpy: " << result << "\n";
}

/// Running sums over the columns, with a schedule of our own for the update.
void cumsum(const kiln::Connection& service) {
  const auto m = kiln::var("m");
  const auto n = kiln::var("n");
  const auto X = kiln::placeholder({m, n}, kiln::float32, "X");
  const auto state = kiln::placeholder({m, n}, kiln::float32, "state");
  const auto init = kiln::compute({1, n}, [&](kiln::Expr, kiln::Expr i) { return X(0, i); },
                                  {"init", {"t", "i"}});
  const auto update =
      kiln::compute({m, n}, [&](kiln::Expr t, kiln::Expr i) { return state(t - 1, i) + X(t, i); },
                    {"update", {"t", "i"}});
  const auto S = kiln::scan(init, update, state, {X}, "S");

  const auto schedule = kiln::create_schedule(S);
  const auto [outer, inner] = schedule[update].split(update.axis(1), 8);
  schedule[update].vectorize(inner);

  const kiln::Kernel kernel = service.build(schedule, {X, S}, {.name = "cumsum"});
  const kiln::Array X_values = counting({4, 10});
  const kiln::Array S_values({4, 10});
  kernel(X_values, S_values);
  std::cout << "cumsum:\n" << S_values << "\n";
}

/// C = A B, scheduled by the service, and submitted without waiting.
void matmul(const kiln::Connection& service) {
  const auto n = kiln::var("n");
  const auto m = kiln::var("m");
  const auto l = kiln::var("l");
  const auto A = kiln::placeholder({n, l}, kiln::float32, "A");
  const auto B = kiln::placeholder({l, m}, kiln::float32, "B");
  const auto k = kiln::reduce_axis(l, "k");
  const auto C = kiln::compute(
      {n, m}, [&](kiln::Expr i, kiln::Expr j) { return kiln::sum(A(i, k) * B(k, j), k); }, "C");

  const kiln::Kernel kernel = service.build({A, B, C}, {.name = "matmul"});
  kiln::Future future = kernel.submit(counting({2, 3}), counting({3, 4}));
  std::cout << "matmul:\n" << future.get()[0] << "\n";

  try {
    kernel(counting({2, 3}), counting({4, 4}));
  } catch (const kiln::InvalidArgument& error) {
    std::cout << "a wrong call: " << error.message() << "\n";
  }
}

}  // namespace

int main() {
  try {
    const kiln::Connection service = kiln::connect();
    saxpy(service);
    cumsum(service);
    matmul(service);
    return 0;
  } catch (const kiln::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
