// What the C++ client's part of the path costs, as JSON: a tiny call, calls that nobody waits for,
// transfers, and a call on large arrays. data_path.py runs it.
//
//   data_path ADDRESS MIB       {"tiny_us": 22.1, ...}
//   data_path ADDRESS           prints "ready", reads a line, calls for 3 s, prints how often

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string_view>
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

/// Seconds a call when many are under way, each with an output of its own.
double pipelined(const kiln::Connection& connection, const kiln::Kernel& kernel,
                 const kiln::RemoteArray& input) {
  constexpr size_t kOutputs = 128;
  constexpr size_t kCalls = 20 * kOutputs;
  std::vector<kiln::RemoteArray> outputs;
  for (size_t i = 0; i < kOutputs; ++i)
    outputs.push_back(connection.upload(kiln::Array({16})));
  const auto call_all = [&] {
    std::vector<kiln::Future> calls;
    for (size_t i = 0; i < kCalls; ++i)
      calls.push_back(kernel.submit(input, outputs[i % kOutputs]));
    for (kiln::Future& call : calls)
      call.get();
  };
  call_all();
  return best_of(3, call_all) / kCalls;
}

/// As one of several clients: as many calls as there is time for.
int call_for_a_while(const kiln::Kernel& kernel, const kiln::RemoteArray& a,
                     const kiln::RemoteArray& b) {
  kernel(a, b);
  std::printf("ready\n");
  std::fflush(stdout);
  std::getchar();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  long calls = 0;
  for (; std::chrono::steady_clock::now() < end; ++calls)
    kernel(a, b);
  std::printf("%ld\n", calls);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
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
    if (argc < 3) return call_for_a_while(kernel, a, b);
    const double tiny = median_of(3000, [&] { kernel(a, b); });
    const double put = median_of(1000, [&] { connection.upload(small); });
    // On this host each call has a connection and a thread for itself.
    const bool is_near = std::string_view(argv[1]).starts_with("unix:");
    const double piped = is_near ? 0 : pipelined(connection, kernel, a);

    const kiln::Array large({std::atoll(argv[2]) << 18});
    const auto bytes = static_cast<double>(large.bytes().size());
    const double up = best_of(7, [&] { connection.upload(large); });
    const kiln::RemoteArray remote = kernel.call_remote({large}).front();
    const double down = best_of(7, [&] { remote.download(); });
    const double call = best_of(7, [&] { kernel.call_remote({large}); });
    std::printf(
        "{\"tiny_us\": %.1f, \"put_us\": %.1f, \"piped_us\": %.1f, \"up\": %.4g, \"down\": %.4g, "
        "\"call_ms\": %.1f, \"kernel_ms\": %.1f}\n",
        tiny * 1e6, put * 1e6, piped * 1e6, bytes / up, bytes / down, call * 1e3,
        kernel.timings().kernel * 1e3);
    return 0;
  } catch (const kiln::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
