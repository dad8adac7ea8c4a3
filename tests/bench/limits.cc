// What this machine can do at most: prints the peak of float32 fused multiply-adds and the
// bandwidth of a streaming triad, for as many threads as the first argument says. compare.py
// compiles and runs it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <immintrin.h>

namespace {

#ifdef __AVX512F__
using Vector = __m512;
Vector all(float x) { return _mm512_set1_ps(x); }
Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
Vector load(const float* p) { return _mm512_load_ps(p); }
void stream(float* p, Vector x) { _mm512_stream_ps(p, x); }
#else
using Vector = __m256;
Vector all(float x) { return _mm256_set1_ps(x); }
Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
Vector load(const float* p) { return _mm256_load_ps(p); }
void stream(float* p, Vector x) { _mm256_stream_ps(p, x); }
#endif
constexpr long kLanes = sizeof(Vector) / sizeof(float);

/// Seconds of the quickest of some runs of `work` on all threads at once.
double best_of(int threads, const std::function<void(int)>& work) {
  double best = 1e9;
  for (int run = 0; run < 8; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
      others.emplace_back(work, t);
    work(0);
    for (std::thread& other : others)
      other.join();
    const auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double>(end - begin).count());
  }
  return best;
}

double fma_gflops(int threads) {
  constexpr long kRounds = 10'000'000;
  constexpr int kChains = 12;  // more than latency times units
  const double seconds = best_of(threads, [](int) {
    Vector sums[kChains];
    for (Vector& sum : sums)
      sum = all(1);
    const Vector a = all(0.999f);
    const Vector b = all(0.001f);
    for (long i = 0; i < kRounds; ++i) {
      for (Vector& sum : sums)
        sum = fma(sum, a, b);
    }
    for (Vector& sum : sums)
      asm volatile("" : : "x"(sum));
  });
  return 2.0 * kLanes * kChains * kRounds * threads / seconds / 1e9;
}

double triad_gbs(int threads) {
  constexpr long kElements = 64L << 20;  // 256 MiB an array, past any cache
  const auto array = [] { return static_cast<float*>(std::aligned_alloc(64, kElements * 4)); };
  float* a = array();
  float* b = array();
  float* c = array();
  const auto part = [&](int t, const auto& action) {
    const long size = kElements / threads / kLanes * kLanes;
    for (long i = t * size; i < (t + 1) * size; i += kLanes)
      action(i);
  };
  best_of(threads, [&](int t) {
    part(t, [&](long i) {
      std::fill_n(a + i, kLanes, 0.0f);
      std::fill_n(b + i, kLanes, 1.0f);
      std::fill_n(c + i, kLanes, 2.0f);
    });
  });
  const double seconds = best_of(threads, [&](int t) {
    part(t, [&](long i) { stream(a + i, fma(load(c + i), all(3), load(b + i))); });
    _mm_sfence();
  });
  return 3.0 * 4 * kElements / seconds / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  std::printf("{\"fma_gflops\": %.1f, \"triad_gbs\": %.2f}\n", fma_gflops(threads),
              triad_gbs(threads));
}
