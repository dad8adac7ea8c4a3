// How long a call of a small compiled kernel takes from C++, over the service that KILN_ADDRESS
// names or a private daemon. Usage: call_latency [CALLS]

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <kiln/client.h>

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 10'000;
  const auto n = kiln::var("n");
  const auto A = kiln::placeholder({n}, kiln::float32, "A");
  const auto B = kiln::compute(
      {n}, [&](kiln::Expr i) { return A(i) + 1; }, "B");
  try {
    const kiln::Kernel kernel = kiln::connect().build({A, B});
    const kiln::Array a({16});
    const kiln::Array b({16});
    for (int i = 0; i < 200; ++i)
      kernel(a, b);

    std::vector<double> microseconds;
    for (int i = 0; i < calls; ++i) {
      const auto start = std::chrono::steady_clock::now();
      kernel(a, b);
      const auto end = std::chrono::steady_clock::now();
      microseconds.push_back(std::chrono::duration<double, std::micro>(end - start).count());
    }
    std::sort(microseconds.begin(), microseconds.end());
    const auto last = static_cast<double>(microseconds.size() - 1);
    const auto percentile = [&](double part) {
      return microseconds[static_cast<std::size_t>(part * last)];
    };
    std::cout << calls << " calls: p50 " << percentile(0.5) << " us, p99 " << percentile(0.99)
              << " us, longest " << microseconds.back() << " us\n";
    return 0;
  } catch (const kiln::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
