// What the C++ client's part of the path costs, as JSON: a tiny call, transfers, and a call on
// large arrays. data_path.py runs it. Usage: data_path ADDRESS MIB

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <vector>

#include <kiln/client.h>

namespace {

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median_of(int count, const std::function<void()>& action) {
  for (int i = 0; i < count / 10; ++i)
    action();
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i)
    seconds.push_back(seconds_of(action));
  std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
  return seconds[static_cast<std::size_t>(count / 2)];
}

double best_of(int count, const std::function<void()>& action) {
  double best = 1e9;
  for (int i = 0; i < count; ++i)
    best = std::min(best, seconds_of(action));
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    const kiln::Connection connection = kiln::connect(argv[1]);
    const auto n = kiln::var("n");
    const auto A = kiln::placeholder({n}, kiln::float32, "A");
    const auto B = kiln::compute(
        {n}, [&](kiln::Expr i) { return A(i) + 1; }, "B");
    const kiln::Kernel kernel = connection.build({A, B});
    const kiln::Array small({16});
    const kiln::RemoteArray a = connection.upload(small);
    const kiln::RemoteArray b = connection.upload(small);
    const double tiny = median_of(3000, [&] { kernel(a, b); });
    const double put = median_of(1000, [&] { connection.upload(small); });

    const kiln::Array large({std::atoll(argv[2]) << 18});
    const auto bytes = static_cast<double>(large.bytes().size());
    const double up = best_of(7, [&] { connection.upload(large); });
    const kiln::RemoteArray remote = kernel.call_remote({large}).front();
    const double down = best_of(7, [&] { remote.download(); });
    const double call = best_of(7, [&] { kernel.call_remote({large}); });
    std::printf(
        "{\"tiny_us\": %.1f, \"put_us\": %.1f, \"up\": %.4g, \"down\": %.4g, \"call_ms\": %.1f, "
        "\"kernel_ms\": %.1f}\n",
        tiny * 1e6, put * 1e6, bytes / up, bytes / down, call * 1e3, kernel.timings().kernel * 1e3);
    return 0;
  } catch (const kiln::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
